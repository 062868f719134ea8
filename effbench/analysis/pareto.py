"""Quality against cost: which sets are worth their time, memory or energy, and by whom the others are dominated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from effbench.analysis.comparison import Comparison, SetResult
from effbench.analysis.costs import ON_THE_CLOCK, joules
from effbench.analysis.intervals import Estimate, estimate
from effbench.analysis.verdicts import is_told_apart, paired
from effbench.records import Record

#: cost -> what a run of it cost. Less is better in all of them.
COSTS: dict[str, Callable[[Record], float | None]] = {
    "seconds": lambda record: sum(record.ledger.get(line, 0.0) for line in ON_THE_CLOCK) or None,
    "peak_memory_mib": lambda record: record.peak_memory_mib,
    "joules": joules,
}

#: cost -> how a person calls it.
TITLES = {"seconds": "training, s", "peak_memory_mib": "peak memory, MiB", "joules": "energy, J"}


@dataclass(frozen=True, slots=True)
class Point:
    """A complete set: its quality against its cost.

    dominated_by: labels of sets whose means are no worse in both, and better in one; empty on the front.
    is_surely_dominated: whether one of them is, seed by seed, told apart as better in both.
    """

    label: str
    techniques: Mapping[str, Mapping[str, Any]]
    quality: Estimate
    cost: Estimate
    dominated_by: tuple[str, ...]
    is_surely_dominated: bool

    @property
    def is_on_front(self) -> bool:
        """Whether no other set is better in one and no worse in the other, by the means."""
        return not self.dominated_by


@dataclass(frozen=True, slots=True)
class Front:
    """All complete sets of one comparison against one cost, the cheapest first."""

    workload: str
    budget: str
    metric: str
    higher_is_better: bool
    cost: str  # "seconds", "peak_memory_mib" or "joules"
    points: tuple[Point, ...]

    @property
    def sentences(self) -> list[str]:
        """Return what is dominated, in words."""
        return [
            f"{p.label} is {'surely ' * p.is_surely_dominated}dominated by {', '.join(p.dominated_by)} "
            f"in {self.metric} and {TITLES[self.cost].partition(',')[0]}"
            for p in self.points
            if p.dominated_by
        ]


def fronts(comparison: Comparison) -> list[Front]:
    """Return one front for each cost that was measured of two complete sets or more.

    Incomplete sets are left out: the seeds that are left may be the lucky ones, and would dominate by luck.
    """
    higher = comparison.measure.higher_is_better
    if higher is None:
        return []
    found = []
    for cost, read in COSTS.items():
        costs = {each.label: _by_seed(each, read) for each in comparison.results if each.is_complete}
        known = [each for each in comparison.results if costs.get(each.label)]
        if len(known) > 1:
            prices = {each.label: estimate(list(costs[each.label].values())).mean or 0.0 for each in known}
            points = [_point(each, known, costs, prices, higher, comparison.confidence) for each in known]
            points.sort(key=lambda point: (point.cost.mean or 0.0, point.label))
            group = comparison.group
            found.append(Front(group.workload, group.budget, comparison.measure.title, higher, cost, tuple(points)))
    return found


def _by_seed(each: SetResult, read: Callable[[Record], float | None]) -> dict[int, float]:
    found = {record.seed: read(record) for record in each.records if record.seed in each.values}
    return {seed: value for seed, value in found.items() if value is not None}


def _point(
    each: SetResult,
    others: Sequence[SetResult],
    costs: Mapping[str, Mapping[int, float]],
    prices: Mapping[str, float],
    higher: bool,
    confidence: float,
) -> Point:
    price = estimate(list(costs[each.label].values()), confidence)
    dominating = [other for other in others if _dominates(other, each, prices, higher)]
    surely = any(
        is_told_apart(other.values, each.values, confidence)
        and _is_cheaper(costs[other.label], costs[each.label], confidence)
        for other in dominating
    )
    names = tuple(other.label for other in dominating)
    return Point(each.label, each.techniques, each.mean, price, names, surely)


def _dominates(one: SetResult, other: SetResult, prices: Mapping[str, float], higher: bool) -> bool:
    gain = ((one.mean.mean or 0.0) - (other.mean.mean or 0.0)) * (1.0 if higher else -1.0)
    mine, theirs = prices[one.label], prices[other.label]
    return gain >= 0.0 and mine <= theirs and (gain > 0.0 or mine < theirs)


def _is_cheaper(ours: Mapping[int, float], theirs: Mapping[int, float], confidence: float) -> bool:
    """Return whether the interval of the difference lies below zero; equal differences of a counted cost are sure."""
    found = paired(ours, theirs, confidence)
    return found is not None and found.high is not None and found.high < 0.0
