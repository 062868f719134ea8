"""What can be compared: the metrics of the workloads, and what a run cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from effbench.errors import UnknownName
from effbench.records import Record

#: Costs that every record has: field -> (title, whether more is better).
COSTS: dict[str, tuple[str, bool]] = {
    "examples_per_second": ("examples/s", True),
    "steps": ("steps", True),
    "peak_memory_mib": ("peak memory, MiB", False),
    "setup_seconds": ("set-up, s", False),
    "wall_seconds": ("wall, s", False),
    "cpu_seconds": ("CPU, s", False),
    "flop": ("FLOP", False),
    "parameters": ("parameters", False),
}

#: Words in the names of metrics that say which way is better.
_HIGHER = frozenset({"accuracy", "auc", "bleu", "f1", "precision", "r2", "recall"})
_LOWER = frozenset({"bits", "ece", "error", "loss", "mae", "mse", "nats", "nll", "perplexity", "rmse"})


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of a record, and which way is better."""

    name: str  # "accuracy", or a field of a record, such as "steps"
    split: str  # "test" or "validation"; "" for a cost
    title: str  # as a table's column is called
    higher_is_better: bool | None  # None where nobody said

    @property
    def is_cost(self) -> bool:
        """Whether it is what a run cost, such as seconds or memory, rather than how good its model got."""
        return not self.split

    def read(self, record: Record) -> float | None:
        """Return the number, which may be NaN or infinite, or None where the record has none."""
        found = record.metrics.get(self.split, {}).get(self.name) if self.split else getattr(record, self.name)
        return None if found is None else float(found)

    def better(self, a: float, b: float) -> bool:
        """Return whether `a` is better than `b`."""
        return a > b if self.higher_is_better else a < b

    def badness(self, value: float) -> float:
        """Return a key that sorts the best first."""
        return -value if self.higher_is_better else value


def measure(records: Sequence[Record], name: str | None = None) -> Measure:
    """Return the measure of this name: a metric, `split/metric`, or a cost; by default the headline metric.

    Metrics are those on test; on validation where no record has a test.

    Raises:
        UnknownName: no record has such a number.
    """
    name = headline(records) if name is None else name
    if name in COSTS:
        return Measure(name, "", *COSTS[name])
    split, _, metric = name.rpartition("/")
    for each in [split] if split else ["test", "validation"]:
        if any(metric in record.metrics.get(each, {}) for record in records):
            return Measure(metric, each, metric, _direction(metric, records))
    if name == headline(records) and not any(record.metrics for record in records):  # nothing came of any trial
        return Measure(metric, "test", metric or "metric", _direction(metric, records))
    raise UnknownName("metric", name, known_measures(records))


def headline(records: Iterable[Record]) -> str:
    """Return the headline metric of most records, or "" where none says."""
    named = Counter(record.metric for record in records if record.metric)
    return named.most_common(1)[0][0] if named else ""


def known_measures(records: Iterable[Record]) -> list[str]:
    """Return the names that `measure` knows for these records."""
    splits = [(split, metric) for record in records for split, found in record.metrics.items() for metric in found]
    names = {metric for _, metric in splits} | {f"{split}/{metric}" for split, metric in splits}
    return sorted(names | set(COSTS))


def _direction(metric: str, records: Iterable[Record]) -> bool | None:
    if said := {record.higher_is_better for record in records if record.metric == metric}:
        return said.pop() if len(said) == 1 else None
    words = set(metric.split("_"))
    return True if words & _HIGHER else False if words & _LOWER else None
