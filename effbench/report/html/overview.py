"""The main table: every set of techniques on every workload, at the largest budget of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from effbench.analysis.comparison import Comparison, SetResult
from effbench.analysis.ladder import amount_of
from effbench.analysis.tracks import PER_STEP
from effbench.analysis.verdicts import Verdict
from effbench.report import numbers


@dataclass(frozen=True, slots=True)
class Cell:
    """A set on a workload: the difference, its verdict, and where its interval lies in a small drawing."""

    text: str = ""
    interval: str = ""
    verdict: str = ""
    value: float | None = None
    places: tuple[float, float, float] | None = None  # low, mean and high in [0, 100]; right is better


@dataclass(frozen=True, slots=True)
class Line:
    """A set on all workloads."""

    label: str
    techniques: tuple[str, ...]
    counts: tuple[tuple[str, int], ...]  # verdict -> on how many workloads
    cells: tuple[Cell, ...]
    score: int  # workloads where it is better, less those where it is worse or breaks

    @property
    def verdicts(self) -> str:
        """All its verdicts, for filters."""
        return " ".join(sorted({cell.verdict.replace(" ", "-") for cell in self.cells if cell.verdict}))


def main_comparisons(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparison of each workload's largest budget.

    Amounts of several clocks do not compare: a clock on which a technique's own work costs goes before one on which it
    is free, then that with most records.
    """
    records = Counter[tuple[str, str]]()
    for each in comparisons:
        records[each.group.workload, each.group.clock] += len(each.group.records)

    def rank(each: Comparison) -> tuple[bool, bool, int, str, float]:
        clock = each.group.clock
        found = records[each.group.workload, clock]
        return bool(each.results), clock not in PER_STEP, found, clock, amount_of(each) or 0.0

    best: dict[str, Comparison] = {}
    for each in comparisons:
        known = best.get(each.group.workload)
        if known is None or rank(each) > rank(known):
            best[each.group.workload] = each
    return list(best.values())


def overview(comparisons: Sequence[Comparison]) -> list[Line]:
    """Return one line a set, those that help on most workloads first."""
    keys = {key: each for found in comparisons for key, each in _by_key(found).items() if not each.is_baseline}
    tables = [(_by_key(found), found) for found in comparisons]
    lines = []
    for key, each in keys.items():
        cells = [_cell(results[key], found) if key in results else Cell() for results, found in tables]
        counts = Counter(cell.verdict for cell in cells if cell.verdict)
        score = counts[Verdict.BETTER] - counts[Verdict.WORSE] - counts[Verdict.BREAKS]
        shown = tuple((verdict.value, counts[verdict]) for verdict in Verdict if counts[verdict])
        lines.append(Line(each.label, tuple(each.techniques), shown, tuple(cells), score))
    return sorted(lines, key=lambda line: (-line.score, -dict(line.counts).get("better", 0), line.label))


def _by_key(comparison: Comparison) -> dict[str, SetResult]:
    return {each.key: each for each in comparison.results}


def _cell(each: SetResult, comparison: Comparison) -> Cell:
    verdict, difference = str(each.verdict or ""), each.difference
    if difference is None or difference.mean is None:
        return Cell(numbers.NOTHING, verdict=verdict)
    written = numbers.difference(difference)
    head, _, interval = written.partition(" ")
    return Cell(head, interval, verdict, difference.mean, _places(each, comparison))


def _places(each: SetResult, comparison: Comparison) -> tuple[float, float, float] | None:
    """Return where the interval lies between the ends that the complete sets of the workload span."""
    difference = each.difference
    if difference is None or difference.mean is None or difference.low is None or difference.high is None:
        return None
    span = reach(comparison)
    if span == 0.0:
        return None
    better_right = comparison.measure.higher_is_better is not False
    unit = (50.0 if better_right else -50.0) / span
    ends = (difference.low, difference.mean, difference.high)
    low, middle, high = (round(min(100.0, max(0.0, 50.0 + unit * value)), 1) for value in ends)
    return min(low, high), middle, max(low, high)


def reach(comparison: Comparison) -> float:
    """Return the largest end of the intervals of the sets that are judged."""
    judged = {Verdict.BETTER, Verdict.WORSE, Verdict.NO_EVIDENCE}
    ends = [
        abs(end)
        for each in comparison.results
        if each.verdict in judged and each.difference is not None
        for end in (each.difference.low, each.difference.high)
        if end is not None
    ]
    return max(ends, default=0.0)
