"""The score of a set over all workloads: its geometric mean ratio to the frozen baseline.

A set is held against the baseline alone, so its score stays the same whoever else is there.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from effbench.analysis.chances import chances_of_being_best
from effbench.analysis.comparison import Comparison, SetResult
from effbench.analysis.intervals import CONFIDENCE
from effbench.analysis.ratios import Ratio
from effbench.analysis.strata import strata_mean
from effbench.records import canonical


@dataclass(frozen=True, slots=True)
class Score:
    """A set over all workloads of a suite, at one budget of each.

    ratio: geometric mean, over workloads and the paired seeds in them, of quality over the baseline's; above 1 is
        better. Quality is the metric where more is better, one over it where less is. There is no interval, nor any
        chance, where a workload shows no spread to judge by: one seed, or equal differences other than zero.
    """

    label: str
    techniques: Mapping[str, Mapping[str, Any]]
    budget: str  # "" where workloads have budgets of their own
    workloads: int  # on which all its seeds are scored
    of: int  # how many workloads there are
    ratio: Ratio
    method: str  # of the interval: "Student's t" or "BCa bootstrap"
    p_better: float | None  # that it is better than the baseline
    p_best: float | None  # that it is the best of all complete sets, the baseline included
    by_workload: Mapping[str, Ratio] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether it is scored on every seed of every workload."""
        return self.workloads == self.of


def scores(comparisons: Sequence[Comparison], confidence: float = CONFIDENCE) -> list[list[Score]]:
    """Return the scores of all sets, for each rung of budgets; complete sets first, from best to worst.

    A set that lacks seeds or workloads, because it failed, diverged or does not apply, is scored on what is left, says
    so, and stands below the complete ones: what it lacks may be where it is worst. So does one that has no ratio to the
    baseline, as where the metric is not positive or nobody says which way is better.
    """
    return [_scored(rung, confidence) for rung in rungs(comparisons)]


def rungs(comparisons: Sequence[Comparison]) -> list[list[Comparison]]:
    """Split comparisons into those that make one score: by budget, or all where each workload has just one."""
    by_clock: dict[tuple[str, str], list[Comparison]] = {}
    for each in comparisons:
        by_clock.setdefault((each.group.clock, each.group.version), []).append(each)
    found = []
    for alike in by_clock.values():
        if len({each.group.workload for each in alike}) == len(alike):
            found.append(alike)
            continue
        by_budget: dict[str, list[Comparison]] = {}
        for each in alike:
            by_budget.setdefault(each.group.budget, []).append(each)
        found += by_budget.values()
    return found


def log_gains(each: SetResult, baseline: SetResult, higher: bool | None) -> dict[int, float]:
    """Return, for each paired seed, the logarithm of quality over the baseline's: positive is better.

    None of values that are not positive, nor where nobody says which way is better.
    """
    if higher is None:
        return {}
    sign = 1.0 if higher else -1.0
    pairs = {seed: (value, baseline.values[seed]) for seed, value in each.values.items() if seed in baseline.values}
    return {seed: sign * (math.log(a) - math.log(b)) for seed, (a, b) in pairs.items() if a > 0.0 and b > 0.0}


def _scored(rung: Sequence[Comparison], confidence: float) -> list[Score]:
    gains: dict[str, dict[str, dict[int, float]]] = {}  # set -> workload -> seed -> logarithm of the ratio
    results: dict[str, SetResult] = {}
    whole: dict[str, set[str]] = {}
    blind: set[str] = set()  # whose differences are equal on all seeds of a workload, but not zero
    for comparison in rung:
        baseline = next((each for each in comparison.results if each.is_baseline), None)
        for each in comparison.results:
            name = each.key
            results.setdefault(name, each)
            found = log_gains(each, baseline, comparison.measure.higher_is_better) if baseline else {}
            if found:
                gains.setdefault(name, {})[comparison.group.workload] = found
            if each.difference is not None and each.difference.spread == 0.0 != each.difference.mean:
                blind.add(name)
            if len(found) == each.planned:
                whole.setdefault(name, set()).add(comparison.group.workload)
    complete = {name: gains[name] for name, where in whole.items() if len(where) == len(rung)}
    best = chances_of_being_best(complete)
    budgets = {each.group.budget for each in rung}
    made = [
        _score(each, gains.get(name, {}), len(whole.get(name, ())), len(rung), best.get(name), confidence)
        for name, each in results.items()
    ]
    made = [_without_chances(score) if canonical(score.techniques) in blind else score for score in made]
    budget = budgets.pop() if len(budgets) == 1 else ""
    return sorted((dataclasses.replace(each, budget=budget) for each in made), key=_rank)


def _score(
    each: SetResult,
    gains: Mapping[str, Mapping[int, float]],
    workloads: int,
    of: int,
    p_best: float | None,
    confidence: float,
) -> Score:
    by_workload = {name: list(found.values()) for name, found in gains.items()}
    found = strata_mean(list(by_workload.values()), confidence)
    shares = {name: strata_mean([values], confidence).as_ratio() for name, values in by_workload.items()}
    return Score(
        label=each.label,
        techniques=each.techniques,
        budget="",
        workloads=workloads,
        of=of,
        ratio=Ratio(found.n, 1.0) if each.is_baseline else found.as_ratio(),
        method=found.method,
        p_better=None if each.is_baseline else found.p_positive,
        p_best=p_best,
        by_workload=shares,
    )


def _without_chances(score: Score) -> Score:
    ratio = Ratio(score.ratio.n, score.ratio.mean)
    return dataclasses.replace(score, ratio=ratio, p_better=None, p_best=None)


def _rank(each: Score) -> tuple[bool, float, str]:
    return not each.is_complete, -(each.ratio.mean or 0.0), each.label
