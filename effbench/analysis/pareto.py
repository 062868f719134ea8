"""Quality against cost: which sets are worth their time, memory or energy, and by whom the others are dominated."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from effbench.analysis.comparison import Comparison, SetResult
from effbench.analysis.costs import ON_THE_CLOCK, joules
from effbench.analysis.intervals import ROUNDING, Estimate, estimate, holm
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
    is_surely_dominated: whether one of them is, seed by seed, told apart as better in both, by Holm's correction for
        all pairs of which one dominates the other.
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
        rivals = [
            _Rival(each, costs, estimate([*costs.values()], comparison.confidence))
            for each in comparison.results
            if each.is_complete and (costs := _by_seed(each, read))
        ]
        if len(rivals) > 1:
            points = sorted(_points(rivals, higher, comparison.confidence), key=lambda p: (p.cost.mean or 0.0, p.label))
            group = comparison.group
            found.append(Front(group.workload, group.budget, comparison.measure.title, higher, cost, tuple(points)))
    return found


@dataclass(frozen=True, slots=True)
class _Rival:
    result: SetResult
    costs: Mapping[int, float]  # by seed
    cost: Estimate


def _by_seed(each: SetResult, read: Callable[[Record], float | None]) -> dict[int, float]:
    found = {record.seed: read(record) for record in each.records if record.seed in each.values}
    return {seed: value for seed, value in found.items() if value is not None and math.isfinite(value)}


def _points(rivals: Sequence[_Rival], higher: bool, confidence: float) -> list[Point]:
    sign = 1.0 if higher else -1.0
    places = [(sign * (each.result.mean.mean or 0.0), -(each.cost.mean or 0.0)) for each in rivals]  # more is better
    pairs = [(i, j) for j, b in enumerate(places) for i, a in enumerate(places) if _dominates(a, b)]
    # With many sets some pair is always told apart by luck, so that these are as many tests as there are pairs.
    steps = holm(_p_values(rivals, pairs), confidence)
    sure = {j for (_, j), step in zip(pairs, steps, strict=True) if step.adjusted <= 1.0 - confidence}
    by: dict[int, list[str]] = {}
    for i, j in pairs:
        by.setdefault(j, []).append(rivals[i].result.label)
    return [
        Point(each.label, each.techniques, each.mean, rival.cost, tuple(by.get(j, ())), j in sure)
        for j, rival in enumerate(rivals)
        for each in [rival.result]
    ]


def _dominates(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[0] >= other[0] and one[1] >= other[1] and one != other


def _p_values(rivals: Sequence[_Rival], pairs: Sequence[tuple[int, int]]) -> list[float]:
    """Return, for each pair, the p value of the first being no better, or no cheaper, than the second.

    That is the larger of both, for both have to be refused. A cost that differs by as much on all seeds is a count, as
    of bytes, and sure; equal differences of quality are no proof.
    """
    quality, _ = _paired_p_values([each.result.values for each in rivals], pairs)
    cost, is_counted = _paired_p_values([each.costs for each in rivals], pairs)
    cheaper = zip(cost, is_counted, strict=True)
    return [max(q, 0.0 if counted else c) for q, (c, counted) in zip(quality, cheaper, strict=True)]


def _paired_p_values(
    values: Sequence[Mapping[int, float]], pairs: Sequence[tuple[int, int]]
) -> tuple[list[float], list[bool]]:
    """Return the p values of `verdicts.paired`, all at once, and which pairs differ by as much on all of many seeds.

    The p value of differences without any spread is 1.
    """
    import numpy as np
    from scipy.special import stdtr

    seeds = sorted({seed for each in values for seed in each})
    table = np.array([[each.get(seed, math.nan) for seed in seeds] for each in values])
    first, second = np.array(pairs, dtype=int).reshape(-1, 2).T
    apart = table[first] - table[second]  # (pairs, seeds)
    there = np.isfinite(apart)
    n = there.sum(1)
    with np.errstate(all="ignore"):  # pairs without two seeds, or too far apart to be squared, have no p value
        mean = np.where(there, apart, 0.0).sum(1) / n
        spread = np.sqrt((np.where(there, apart - mean[:, None], 0.0) ** 2).sum(1) / (n - 1))
        is_equal = (n > 1) & (spread <= ROUNDING * np.abs(np.where(there, apart, 0.0)).max(1, initial=0.0))
        p = 2.0 * stdtr(n - 1, -np.abs(mean) / spread * np.sqrt(n))
    return np.where(np.isfinite(p) & ~is_equal, p, 1.0).tolist(), (is_equal & (mean != 0.0)).tolist()
