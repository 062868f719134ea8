"""How much sooner a set reaches what the baseline reaches at the end of its budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from effbench.analysis.intervals import CONFIDENCE
from effbench.analysis.ratios import Ratio, geometric_mean
from effbench.analysis.survival import Median, median_time
from effbench.analysis.targets import seen_for, spent_at
from effbench.records import Record


@dataclass(frozen=True, slots=True)
class SpeedUp:
    """What the baseline spent to reach its final quality, over what the set spent to reach the same.

    Seeds on which the set never got there are right-censored: its speed-up on them is below `bound`, and the mean is
    given only where there are none. The median counts them; it has no lower end where too many never got there. A set
    that was there before it spent anything is infinitely sooner, and has no mean either.
    """

    seeds: int  # pairs of runs
    mean: Ratio
    ratios: tuple[float, ...]  # of the seeds that got there
    bounds: tuple[float, ...]  # what the speed-up of the others is below; 0 where they broke down

    @property
    def reached(self) -> int:
        """On how many seeds the set got there."""
        return len(self.ratios)

    def median(self, confidence: float = CONFIDENCE) -> Median:
        """Return the median speed-up: the inverse of that of slow-downs, of which the censored are the longest."""
        watched = [1.0 / each if each else math.inf for each in self.bounds]
        slow = median_time([1.0 / each for each in self.ratios], watched, confidence)
        at, low, high = (None if end is None else 1.0 / end for end in (slow.at, slow.high, slow.low))
        return Median(slow.n, slow.events, at, low, high)


def goals_of(baseline: Sequence[Record]) -> dict[int, tuple[float, float]]:
    """Return seed -> the final quality of the baseline's run, and what it had spent when it first met that.

    Quality is the headline metric on validation, of which alone there are curves. A run that began with what it ended
    with sets no goal, for none can be sooner.
    """
    goals = {}
    for record in baseline:
        level = record.curve[-1].get(record.metric) if record.status == "ok" and record.curve else None
        if level is not None and math.isfinite(level) and (spent := spent_at(record, level)):
            goals[record.seed] = level, spent
    return goals


def speed_up(
    records: Sequence[Record], goals: Mapping[int, tuple[float, float]], confidence: float = CONFIDENCE
) -> SpeedUp | None:
    """Return the speed-up to the baseline's final quality over paired seeds; None where no seed pairs.

    goals: those of the baseline's runs (see `goals_of`), so that a set which trains the same has a speed-up of one.
    """
    ratios, bounds = [], []
    for record in records:
        if record.seed not in goals:
            continue
        level, usual = goals[record.seed]
        ours = spent_at(record, level) if record.status == "ok" else None
        if ours is not None:
            ratios.append(usual / ours if ours else math.inf)
        else:
            bounds.append(usual / seen_for(record) if record.status == "ok" and seen_for(record) else 0.0)
    n = len(ratios) + len(bounds)
    if not n:
        return None
    mean = Ratio(0) if bounds or math.inf in ratios else geometric_mean(ratios, confidence)
    return SpeedUp(n, mean, tuple(ratios), tuple(bounds))
