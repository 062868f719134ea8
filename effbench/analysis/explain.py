"""Why two sets of results differ: what ran, on what, how fast, and where runs of one seed part ways."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from effbench.analysis.caveats import machine, version_of
from effbench.analysis.costs import ON_THE_CLOCK
from effbench.analysis.ratios import Ratio, geometric_mean
from effbench.records import Record, canonical

_FINGERPRINT = 8  # digits of a hash that a person compares

Key = tuple[str, str, str, int]  # workload, set, budget, seed


@dataclass(frozen=True, slots=True)
class Change:
    """A fact on which the two disagree: what each has, with how many records say so."""

    what: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Missing:
    """Trials of one set that one of the two has, and the other has not."""

    workload: str
    budget: str
    label: str
    seeds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LineRatio:
    """Seconds of one line of the ledger: those of the second over those of the first, by geometric means."""

    workload: str
    line: str  # "data", "forward_backward", ..., or "whole run"
    ratio: Ratio  # over the runs that both have
    first_seconds: float
    second_seconds: float
    of_a_step: bool  # else of a run, for what is off the clock, and does not grow with the steps


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
    first_status: str
    second_status: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that tells two sets of results apart."""

    common: int  # trials that both have
    only_first: tuple[Missing, ...]
    only_second: tuple[Missing, ...]
    changes: tuple[Change, ...]
    lines: tuple[LineRatio, ...]
    partings: tuple[Parting, ...]
    equal: int  # common trials whose curves and metrics are the same, bit by bit

    @property
    def is_same(self) -> bool:
        """Whether both have the same trials with the same results."""
        return not (self.only_first or self.only_second or self.partings)


def explain(first: Iterable[Record], second: Iterable[Record]) -> Explanation:
    """Compare two sets of results, trial by trial: same workload, set, budget and seed. What never ran is not there."""
    ours, theirs = _by_key(first), _by_key(second)
    common = [key for key in ours if key in theirs]
    pairs = [(ours[key], theirs[key]) for key in common]
    partings = [parting for one, other in pairs if (parting := _parting(one, other)) is not None]
    return Explanation(
        common=len(common),
        only_first=_missing(ours[key] for key in ours if key not in theirs),
        only_second=_missing(theirs[key] for key in theirs if key not in ours),
        changes=tuple(_changes([*ours.values()], [*theirs.values()])),
        lines=tuple(_line_ratios(pairs)),
        partings=tuple(partings),
        equal=len(common) - len(partings),
    )


def _by_key(records: Iterable[Record]) -> dict[Key, Record]:
    ran = [record for record in records if record.status != "not_started"]
    return {(r.workload, canonical(r.techniques), r.budget, r.seed): r for r in ran}


def _missing(records: Iterable[Record]) -> tuple[Missing, ...]:
    seeds: dict[tuple[str, str, str], list[int]] = {}
    for record in records:
        seeds.setdefault((record.workload, record.budget, record.label), []).append(record.seed)
    return tuple(Missing(*cell, tuple(sorted(found))) for cell, found in seeds.items())


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
    for what, read in facts.items():
        ours, theirs = _values(first, read), _values(second, read)
        if ours != theirs:
            yield Change(what, ", ".join(ours) or "none", ", ".join(theirs) or "none")
    for what, (mine, other) in _fingerprints(first, second).items():
        if mine != other:
            yield Change(what, ", ".join(sorted(mine)), ", ".join(sorted(other)))
    yield from _prices(first, second)


def _values(records: Iterable[Record], read: Callable[[Record], str]) -> list[str]:
    return sorted({value for record in records if (value := read(record))})


def _fingerprints(first: Iterable[Record], second: Iterable[Record]) -> dict[str, tuple[set[str], set[str]]]:
    """Return the fingerprints of all code and data that both have."""
    ours, theirs = _by_part(first), _by_part(second)
    return {part: (ours[part], theirs[part]) for part in sorted(ours) if part in theirs}


def _by_part(records: Iterable[Record]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for record in records:
        names = {"harness": "code of effbench itself", "data": f"data of {record.workload}"}
        names["code of the workload"] = f"code of {record.workload}"
        for part, value in record.identity.items():
            if value and (part in names or part.startswith("code of ")):
                found.setdefault(names.get(part, part), set()).add(value[:_FINGERPRINT])
    return found


def _prices(first: Iterable[Record], second: Iterable[Record]) -> Iterable[Change]:
    """Yield the sets whose steps have another price: they bought another number of steps."""
    ours, theirs = _price_of(first), _price_of(second)
    for cell in ours:
        if cell in theirs and ours[cell] != theirs[cell]:
            yield Change(f"price of {cell[1]} on {cell[0]}", ours[cell], theirs[cell])


def _price_of(records: Iterable[Record]) -> dict[tuple[str, str], str]:
    found = {}
    for record in records:
        if record.price and record.price.get("phases"):  # another version may write prices in another way
            phases = [f"{phase['ratio']:.3g}" for phase in record.price["phases"]]
            found[record.workload, record.label] = f"{' then '.join(phases)} of the baseline's step"
    return found


def _line_ratios(pairs: Sequence[tuple[Record, Record]]) -> Iterable[LineRatio]:
    by_workload: dict[str, list[tuple[dict[str, float], dict[str, float]]]] = {}
    for one, other in pairs:
        if one.status == other.status == "ok" and one.steps and other.steps:
            by_workload.setdefault(one.workload, []).append((_seconds(one), _seconds(other)))
    for workload, found in by_workload.items():
        for line in dict.fromkeys(line for one, _ in found for line in one):
            pairs_of_line = [(one.get(line, 0.0), other.get(line, 0.0)) for one, other in found]
            both = [(a, b) for a, b in pairs_of_line if 0.0 < a < math.inf and 0.0 < b < math.inf]
            if both:
                ours, theirs = (geometric_mean(side).mean or 0.0 for side in zip(*both, strict=True))
                ratio = geometric_mean([b / a for a, b in both])
                yield LineRatio(workload, line, ratio, ours, theirs, of_a_step=line in ON_THE_CLOCK)


def _seconds(record: Record) -> dict[str, float]:
    """Return the seconds of a run line by line; of one step, where the line is on the clock. These come first."""
    paid = {line: record.ledger[line] / record.steps for line in ON_THE_CLOCK if line in record.ledger}
    rest = {line: seconds for line, seconds in record.ledger.items() if line not in paid}
    return {**paid, **rest, "whole run": record.wall_seconds}


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
    return Parting(
        workload=one.workload,
        label=one.label,
        budget=one.budget,
        seed=one.seed,
        since=since,
        step=where,
        first_value=None if where is None else ours[where],
        second_value=None if where is None else theirs[where],
        first_final=finals[0],
        second_final=finals[1],
        first_status=one.status,
        second_status=other.status,
    )


def _is_same(one: float | None, other: float | None) -> bool:
    """Return whether two numbers are the same; one NaN is as good as another."""
    return one == other or (one is not None and other is not None and math.isnan(one) and math.isnan(other))
