"""Sets that were stopped when they were decided: how a run knows when, and what a table makes of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from effbench.analysis.groups import BASELINE, BROKEN, Group
from effbench.analysis.intervals import CONFIDENCE, Estimate
from effbench.analysis.measures import Measure, measure
from effbench.analysis.sequential import FIRST_LOOK, Decision, Design, decide, design
from effbench.analysis.sizes import Size
from effbench.records import Record, canonical

DECIDED = "decided"  # the stop reason of a trial that was not needed any more


def stopped(group: Group) -> bool:
    """Whether trials of a group were left out because their set was decided."""
    return any(record.stop_reason == DECIDED for record in group.records)


def left_out(records: Sequence[Record]) -> int:
    """Return how many trials of a set were left out because it was decided."""
    return sum(record.stop_reason == DECIDED for record in records)


def design_of(seeds: int, sets: int, confidence: float = CONFIDENCE) -> Design:
    """Return the design of a table: alpha is shared out evenly between its sets, each of which may be stopped alone."""
    return design(seeds, round((1.0 - confidence) / max(1, sets), 12))


def intervals(group: Group, differences: Sequence[Estimate | None], confidence: float) -> list[Estimate | None]:
    """Return the repeated confidence intervals of a group's differences, as wide as looking often makes them."""
    plan = design_of(len(group.seeds), len(group.sets) - (BASELINE in group.sets), confidence)
    return [None if each is None else plan.interval(each) for each in differences]


class Cell(Protocol):
    """What a run asks about: a set on a workload under a budget, which writes itself as records have it."""

    @property
    def workload(self) -> str:
        """The workload's name."""

    @property
    def techniques(self) -> Mapping[str, Mapping[str, Any]]:
        """The set."""

    @property
    def budget(self) -> object:
        """The budget."""


def until_decided(
    sets_of: Callable[[str], Sequence[Mapping[str, Mapping[str, Any]]]], seeds: Sequence[int], margin: str
) -> Callable[[Sequence[Record], Cell], str]:
    """Return what says why a cell of a suite need not run on: it is decided, or serves nobody any more.

    sets_of: workload -> the sets that the suite compares on it.
    seeds: the suite's, in its order.
    margin: "1%" of the baseline's mean, or "0.002": differences up to this size are none.

    Raises:
        EffbenchError: the margin is no size.
    """
    size = Size.parse(margin)
    index: dict[tuple[str, str, str], dict[int, Record]] = {}  # workload, budget, set -> seed -> record
    settled: dict[tuple[str, str, str], str] = {}  # what is decided stays decided
    seen = 0

    def why(workload: str, budget: str, techniques: Mapping[str, Mapping[str, Any]], sets: int) -> str:
        place = (workload, budget, canonical(techniques))
        if place not in settled:
            own, usual = index.get(place, {}), index.get((workload, budget, BASELINE), {})
            if found := why_decided(own, usual, seeds, sets, size):
                settled[place] = found
        return settled.get(place, "")

    def enough(records: Sequence[Record], cell: Cell) -> str:
        nonlocal seen
        for record in records[seen:]:
            index.setdefault((record.workload, record.budget, canonical(record.techniques)), {})[record.seed] = record
        seen = len(records)
        workload, budget = cell.workload, str(cell.budget)
        others = [chosen for chosen in sets_of(workload) if chosen]
        if cell.techniques:
            return why(workload, budget, cell.techniques, len(others))
        done = all(
            why(workload, budget, chosen, len(others))
            or _is_refused(index.get((workload, budget, canonical(chosen)), {}))
            for chosen in others
        )
        return "all sets are decided" if others and done else ""

    return enough


def _is_refused(own: Mapping[int, Record]) -> bool:
    return any(record.status == "skipped" for record in own.values())


def why_decided(
    own: Mapping[int, Record], usual: Mapping[int, Record], seeds: Sequence[int], sets: int, margin: Size
) -> str:
    """Say what is decided of a set, with how many seeds; "" where nothing is yet, or there is nothing to decide.

    own, usual: seed -> record of the set, and of the baseline, on one workload under one budget.
    seeds: the planned ones, in the order in which they run; the looks follow this order, whatever ends first.
    sets: how many the table will have, without the baseline.
    margin: differences up to this size are none.
    """
    if 2 * sum(record.status in BROKEN for record in own.values()) > len(seeds):
        return "breaks on more than half of the seeds"
    differences, theirs, chosen = _in_order(own, usual, seeds)
    if chosen is None or chosen.higher_is_better is None or not differences:
        return ""
    size = margin.of(math.fsum(theirs) / len(theirs))
    found, at = decide(differences, design_of(len(seeds), sets), size)
    done = seeds[: len(differences)]
    if found is Decision.OPEN and len(done) >= FIRST_LOOK and all(_is_same_run(own[s], usual[s]) for s in done):
        found = Decision.NO_DIFFERENCE  # it does nothing here: equal weights give equal numbers, down to the last digit
    if found is Decision.OPEN:
        return ""
    if found is Decision.NO_DIFFERENCE:
        return f"no difference beyond {margin} after {at.n} of {len(seeds)} seeds"
    better = (found is Decision.HIGHER) is chosen.higher_is_better
    return f"{'better' if better else 'worse'} after {at.n} of {len(seeds)} seeds"


def _is_same_run(one: Record, other: Record) -> bool:
    """Return whether two runs gave the same numbers all along, whatever time they took."""
    seen = [
        [{name: value for name, value in row.items() if name not in {"progress", "spent"}} for row in record.curve]
        for record in (one, other)
    ]
    return bool(one.curve) and seen[0] == seen[1] and one.metrics == other.metrics


def _in_order(
    own: Mapping[int, Record], usual: Mapping[int, Record], seeds: Sequence[int]
) -> tuple[list[float], list[float], Measure | None]:
    """Return the differences and the baseline's values of the seeds that are done, up to the first that is not."""
    differences, theirs, chosen = [], [], None
    for seed in seeds:
        pair = (own.get(seed), usual.get(seed))
        if pair[0] is None or pair[1] is None or {pair[0].status, pair[1].status} != {"ok"}:
            break
        chosen = chosen or measure([pair[1]])
        values = [chosen.read(record) for record in pair if record is not None]
        if None in values or not all(math.isfinite(value or 0.0) for value in values):
            break
        differences.append((values[0] or 0.0) - (values[1] or 0.0))
        theirs.append(values[1] or 0.0)
    return differences, theirs, chosen
