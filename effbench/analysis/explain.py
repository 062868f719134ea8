"""Why two sets of results differ: what ran, on what, how fast, and where runs of one seed part ways."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from effbench.analysis.caveats import machine, version_of
from effbench.analysis.ratios import Ratio, geometric_mean
from effbench.records import Record, canonical

Key = tuple[str, str, str, int]  # workload, set, budget, seed


@dataclass(frozen=True, slots=True)
class Change:
    """A fact on which the two disagree: what each has, with how many records say so."""

    what: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class LineRatio:
    """Seconds a step of one line of the ledger: those of the second over those of the first."""

    workload: str
    line: str  # "data", "forward_backward", ..., or "all on the clock"
    ratio: Ratio  # over the runs that both have
    first_seconds: float  # of a step, on average
    second_seconds: float


@dataclass(frozen=True, slots=True)
class Parting:
    """Two runs of the same seed that are not the same.

    step: the first step at which their curves differ; None where no common point of the curves does.
    since: the last common step at which they are equal; 0 where there is none.
    """

    workload: str
    label: str
    budget: str
    seed: int
    since: float
    step: float | None
    first_value: float | None  # of the headline metric at `step`
    second_value: float | None
    first_final: float | None  # of the headline metric on test
    second_final: float | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that tells two sets of results apart."""

    common: int  # trials that both have
    only_first: tuple[str, ...]  # what one has and the other has not: "mnist1d_cnn, ema, 5s reference"
    only_second: tuple[str, ...]
    changes: tuple[Change, ...]
    lines: tuple[LineRatio, ...]
    partings: tuple[Parting, ...]
    equal: int  # common trials whose curves and metrics are the same, bit by bit

    @property
    def is_same(self) -> bool:
        """Whether both have the same trials with the same results."""
        return not (self.only_first or self.only_second or self.partings)


def explain(first: Iterable[Record], second: Iterable[Record]) -> Explanation:
    """Compare two sets of results, trial by trial: same workload, set, budget and seed."""
    ours, theirs = _by_key(first), _by_key(second)
    common = [key for key in ours if key in theirs]
    pairs = [(ours[key], theirs[key]) for key in common]
    partings = [parting for one, other in pairs if (parting := _parting(one, other)) is not None]
    return Explanation(
        common=len(common),
        only_first=_named(ours[key] for key in ours if key not in theirs),
        only_second=_named(theirs[key] for key in theirs if key not in ours),
        changes=tuple(_changes([*ours.values()], [*theirs.values()])),
        lines=tuple(_line_ratios(pairs)),
        partings=tuple(partings),
        equal=len(common) - len(partings),
    )


def _by_key(records: Iterable[Record]) -> dict[Key, Record]:
    return {(r.workload, canonical(r.techniques), r.budget, r.seed): r for r in records}


def _named(records: Iterable[Record]) -> tuple[str, ...]:
    seeds: dict[str, list[int]] = {}
    for record in records:
        seeds.setdefault(f"{record.workload}, {record.label}, {record.budget}", []).append(record.seed)
    return tuple(f"{name}: seeds {', '.join(map(str, sorted(found)))}" for name, found in seeds.items())


#: fact -> how a record tells it.
_FACTS: dict[str, Callable[[Record], str]] = {
    "machine": machine,
    "memory, GiB": lambda record: str(record.environment.get("memory_gib", "")),
    "threads of a trial": lambda record: str(record.threads),
    "trials at a time": lambda record: str(record.jobs),
    "clock": lambda record: record.clock,
    "order of composition": lambda record: " > ".join(record.order) if len(record.order) > 1 else "",
}


def _changes(first: Sequence[Record], second: Sequence[Record]) -> Iterable[Change]:
    facts = dict(_FACTS)
    for package in sorted({name for record in (*first, *second) for name in record.versions}):
        facts[package] = version_of(package)
    for part in sorted({name for record in (*first, *second) for name in record.identity if _is_code(name)}):
        facts[part] = _identity_of(part)
    for what, read in facts.items():
        ours, theirs = _values(first, read), _values(second, read)
        if ours != theirs:
            yield Change(what, ", ".join(ours) or "none", ", ".join(theirs) or "none")
    yield from _prices(first, second)


def _identity_of(part: str) -> Callable[[Record], str]:
    return lambda record: record.identity.get(part, "")


def _is_code(part: str) -> bool:
    return part in {"data", "harness"} or part.startswith("code of")


def _values(records: Iterable[Record], read: Callable[[Record], str]) -> list[str]:
    return sorted({value for record in records if record.status != "not_started" and (value := read(record))})


def _prices(first: Iterable[Record], second: Iterable[Record]) -> Iterable[Change]:
    """Yield the sets whose steps have another price: they bought another number of steps."""
    ours, theirs = _price_of(first), _price_of(second)
    for cell in ours:
        if cell in theirs and ours[cell] != theirs[cell]:
            yield Change(f"price of {cell[1]} on {cell[0]}", ours[cell], theirs[cell])


def _price_of(records: Iterable[Record]) -> dict[tuple[str, str], str]:
    found = {}
    for record in records:
        if record.price:
            phases = [f"{phase['ratio']:.3g}" for phase in record.price["phases"]]
            found[record.workload, record.label] = f"{' then '.join(phases)} of the baseline's step"
    return found


def _line_ratios(pairs: Sequence[tuple[Record, Record]]) -> Iterable[LineRatio]:
    by_workload: dict[str, list[tuple[Mapping[str, float], Mapping[str, float]]]] = {}
    for one, other in pairs:
        if one.status == other.status == "ok" and one.steps and other.steps:
            by_workload.setdefault(one.workload, []).append((_a_step(one), _a_step(other)))
    for workload, steps in by_workload.items():
        for line in dict.fromkeys(line for one, _ in steps for line in one):
            both = [(one[line], other.get(line, 0.0)) for one, other in steps if one[line] > 0.0]
            ratios = [b / a for a, b in both if b > 0.0]
            if ratios:
                means = [math.fsum(side) / len(both) for side in zip(*both, strict=True)]
                yield LineRatio(workload, line, geometric_mean(ratios), *means)


def _a_step(record: Record) -> dict[str, float]:
    """Return the seconds of one step, line by line; off the clock, those of the run, which steps do not share."""
    found = {line: seconds / record.steps for line, seconds in record.ledger.items()}
    return {**found, "the whole run": record.wall_seconds / record.steps}


def _parting(one: Record, other: Record) -> Parting | None:
    """Return where two runs of one seed part; None where they are the same."""
    finals = [record.metrics.get("test", {}).get(record.metric) for record in (one, other)]
    ours, theirs = ({row.get("steps", math.nan): row.get(r.metric) for row in r.curve} for r in (one, other))
    since, where = 0.0, None
    for step in sorted(step for step in ours if step in theirs):
        if not _is_same(ours[step], theirs[step]):
            where = step
            break
        since = step
    if where is None and _is_same(*finals) and one.steps == other.steps and one.status == other.status:
        return None
    values = (ours[where], theirs[where]) if where is not None else (None, None)
    return Parting(one.workload, one.label, one.budget, one.seed, since, where, *values, *finals)


def _is_same(one: float | None, other: float | None) -> bool:
    """Return whether two numbers are the same; one NaN is as good as another."""
    return one == other or (one is not None and other is not None and math.isnan(one) and math.isnan(other))
