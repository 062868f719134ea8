"""Performance profiles over workloads, and the score that AlgoPerf makes of them (arXiv:2306.07179).

A profile counts on how many workloads a set is at most tau times slower than the fastest to reach the target. The
fastest depends on who is there, so a profile, unlike our score, changes when a rival leaves. Against a fixed reference,
such as the baseline, it does not.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from effbench.analysis.comparison import Comparison, SetResult
from effbench.analysis.intervals import CONFIDENCE
from effbench.analysis.stopping import DECIDED
from effbench.analysis.strata import BOOTSTRAP_FROM
from effbench.analysis.targets import ended_well, spent_at_target
from effbench.records import Record, canonical

R_MAX = 4.0  # how many times slower than the fastest is too slow to count: AlgoPerf's
_RESAMPLES = 1000

Times = Mapping[str, Mapping[str, float]]  # set -> workload -> time to target; infinite where it was not reached


@dataclass(frozen=True, slots=True)
class Profile:
    """The performance profile of one set.

    steps: (tau, share of the workloads with a ratio of at most tau), where the share rises; tau from 1, or from 0 where
        the reference is a fixed set.
    score: the area below it up to r_max, as a share of the greatest there could be, in [0, 1].
    """

    label: str
    ratios: Mapping[str, float]  # workload -> time over the reference's; infinite above r_max or without target
    steps: tuple[tuple[float, float], ...]
    score: float
    low: float | None = None  # interval of the score, seeds drawn inside workloads
    high: float | None = None
    techniques: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # the set, where `profiles` made it


def performance_profiles(times: Times, *, reference: str | None = None, r_max: float = R_MAX) -> list[Profile]:
    """Return the profile and score of each set, from best to worst.

    times: of all sets on the same workloads.
    reference: the set whose time is 1; None: the fastest on each workload, as AlgoPerf has it. Where the reference
        itself did not reach a target, the workload counts as not reached for all.

    The score is AlgoPerf's 1 / (r_max - 1) * integral of the profile from 1 to r_max, taken exactly: a workload with
    ratio r <= r_max gives (r_max - r) / (r_max - 1). Against a fixed reference, ratios may be below 1, and the
    integral begins at 0: it gives (r_max - r) / r_max.
    """
    workloads = list(dict.fromkeys(name for found in times.values() for name in found))
    least = 0.0 if reference is not None else 1.0
    one = {w: times[reference][w] if reference is not None else min(t[w] for t in times.values()) for w in workloads}
    found = []
    for label, own in times.items():
        ratios = {name: _ratio(own[name], one[name], r_max) for name in workloads}
        areas = [(r_max - ratio) / (r_max - least) for ratio in ratios.values() if ratio <= r_max]
        found.append(Profile(label, ratios, _steps(list(ratios.values())), math.fsum(areas) / len(workloads)))
    return sorted(found, key=lambda each: (-each.score, each.label))


def profiles(
    comparisons: Sequence[Comparison], *, against_baseline: bool = False, confidence: float = CONFIDENCE
) -> list[Profile]:
    """Return the profiles of all sets over the workloads of one rung that have a target.

    The time of a set on a workload is the median over its seeds of the budget spent at the interpolated crossing; a
    seed that did not get there counts as infinite, and so does one that is missing; seeds that were left out when a set
    was decided count for nothing. The interval of the score is the percentile bootstrap, seeds drawn inside workloads,
    the same for all sets; of fewer than `strata.BOOTSTRAP_FROM` seeds there is none.
    """
    spent = _spent(comparisons)
    sets, reference = _sets(comparisons), canonical({}) if against_baseline else None
    if not spent or (reference is not None and reference not in spent):
        return []
    times = {name: {w: _median(values) for w, values in found.items()} for name, found in spent.items()}
    whole = performance_profiles(times, reference=reference)
    ends = _score_intervals(spent, reference, confidence)
    return [
        dataclasses.replace(p, label=sets[p.label].label, techniques=sets[p.label].techniques, low=low, high=high)
        for p in whole
        for low, high in [ends[p.label]]
    ]


def _score_intervals(
    spent: Mapping[str, Mapping[str, Sequence[float]]], reference: str | None, confidence: float
) -> dict[str, tuple[float | None, float | None]]:
    """Return the interval of each set's score; none from few seeds, of which it would hold the truth too seldom."""
    import numpy as np

    names = list(spent)
    workloads = [np.array([spent[name][w] for name in names]) for w in spent[names[0]]]  # (sets, seeds) each
    if min(each.shape[1] for each in workloads) < BOOTSTRAP_FROM or any(np.isnan(each).any() for each in workloads):
        return dict.fromkeys(names, (None, None))
    from scipy.stats import bootstrap  # which takes a second to import

    least = 0.0 if reference is not None else 1.0

    def scored(*drawn: np.ndarray, axis: int = -1) -> np.ndarray:
        """Return (sets, resamples) scores of drawn seeds, (resamples, seeds) for each workload."""
        areas = []
        for each, seeds in zip(workloads, drawn, strict=True):
            times = np.sort(each[:, seeds], axis=axis)[..., each.shape[1] // 2]
            one = times[names.index(reference)] if reference is not None else times.min(0)
            there = np.isfinite(times) & np.isfinite(one) & (one > 0.0)
            ratios = np.divide(times, one, out=np.where((times == 0.0) & (one == 0.0), 1.0, np.inf), where=there)
            areas.append(np.where(ratios <= R_MAX, (R_MAX - np.minimum(ratios, R_MAX)) / (R_MAX - least), 0.0))
        scores: np.ndarray = np.mean(areas, axis=0)
        return scores

    interval = bootstrap(
        [np.arange(each.shape[1]) for each in workloads],
        scored,
        n_resamples=_RESAMPLES,
        vectorized=True,
        confidence_level=confidence,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return dict(zip(names, zip(map(float, interval.low), map(float, interval.high), strict=True), strict=True))


def _ratio(time: float, reference: float, r_max: float) -> float:
    if not (math.isfinite(time) and math.isfinite(reference)):
        return math.inf
    if reference == 0.0:  # there before it spent anything
        return 1.0 if time == 0.0 else math.inf
    ratio = time / reference
    return ratio if ratio <= r_max else math.inf


def _steps(ratios: Sequence[float]) -> tuple[tuple[float, float], ...]:
    reached = sorted(ratio for ratio in ratios if math.isfinite(ratio))
    last = {ratio: (position + 1) / len(ratios) for position, ratio in enumerate(reached)}
    return tuple(last.items())


def _median(times: Sequence[float]) -> float:
    """Return the upper median of what is known, so that half of the seeds at an infinite time make it infinite."""
    known = sorted(time for time in times if not math.isnan(time))
    return known[len(known) // 2] if known else math.inf


def _sets(comparisons: Sequence[Comparison]) -> dict[str, SetResult]:
    return {each.key: each for found in comparisons for each in found.results}


def _spent(comparisons: Sequence[Comparison]) -> dict[str, dict[str, list[float]]]:
    """Return, for each set and workload with a target, what each planned seed spent to reach it; NaN if left out."""
    found: dict[str, dict[str, list[float]]] = {}
    targeted = [each for each in comparisons if any(record.target is not None for record in each.group.records)]
    for name in _sets(targeted):
        found[name] = {}
        for comparison in targeted:
            by_seed = {record.seed: _time(record) for record in comparison.group.sets.get(name, ())}
            found[name][comparison.group.workload] = [by_seed.get(seed, math.inf) for seed in comparison.group.seeds]
    return found


def _time(record: Record) -> float:
    if record.stop_reason == DECIDED:
        return math.nan
    spent = spent_at_target(record) if ended_well(record) else None
    return math.inf if spent is None else spent
