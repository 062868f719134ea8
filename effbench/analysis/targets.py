"""How much of the budget it took to reach a target, whenever the run happened to be evaluated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from effbench.analysis.intervals import CONFIDENCE
from effbench.analysis.ratios import Ratio, positive_mean
from effbench.analysis.survival import Median, median_time
from effbench.records import Record
from effbench.rows import columns


@dataclass(frozen=True, slots=True)
class TimeToTarget:
    """Over the seeds of a set: how many reached the target, and what it took those that did.

    Runs that stop short of the target are right-censored: they would have needed more than their budget. A mean
    over the others alone would flatter the set, so `mean` has one only where all seeds got there.
    """

    reached: int
    seeds: int
    mean: Ratio  # geometric, in the budget's unit
    times: tuple[float, ...] = ()  # of those that got there
    censored: tuple[float, ...] = ()  # until when the others were watched in vain; infinite where they broke down

    def median(self, confidence: float = CONFIDENCE) -> Median:
        """Return the median time, in the budget's unit; a censored run counts as longer than it was watched."""
        return median_time(self.times, self.censored, confidence)


def spent_at(record: Record, level: float) -> float | None:
    """Return what was spent, in the budget's unit, when the curve first met `level`; None if it never did.

    The curve is taken as straight between two evaluations, so that the result hardly depends on how often a
    run is evaluated. A level that the first evaluation already meets counts as met there. A point that says less was
    spent than nothing does not count.
    """
    sign = 1.0 if record.higher_is_better else -1.0
    before: tuple[float, float] | None = None
    amounts, values = columns(record.curve, "spent", record.metric)
    best = (max if record.higher_is_better else min)(values, default=math.nan)  # NaN where the first one is
    if math.isfinite(best) and sign * (level - best) > 0.0:
        return None  # most runs, at once
    for spent, value in zip(amounts, values, strict=True):
        if not (math.isfinite(spent) and spent >= 0.0 and math.isfinite(value)):
            continue
        missing = sign * (level - value)
        if missing <= 0.0:
            if before is None:
                return spent
            return before[0] + (spent - before[0]) * before[1] / (before[1] - missing)
        before = spent, missing
    return None


def spent_at_target(record: Record) -> float | None:
    """Return what was spent, in the budget's unit, when the curve first met the record's own target, or None."""
    return None if record.target is None or not record.metric else spent_at(record, record.target)


def seen_for(record: Record) -> float:
    """Return how much of its budget a run was seen to spend: what it spent, or the last point of its curve."""
    (spent,) = columns(record.curve, "spent")
    return max([record.spent, *filter(math.isfinite, spent)])


def time_to_target(records: Sequence[Record], confidence: float = CONFIDENCE) -> TimeToTarget | None:
    """Sum up what it took the tried runs of a set; None where there is no target.

    A run that broke down, or ended with no number, did not get there, whatever its curve did before.
    """
    if all(record.target is None for record in records):
        return None
    done = {id(record): spent_at_target(record) for record in records if ended_well(record)}
    found = [spent for spent in done.values() if spent is not None]
    # What broke down will never get there, however long it lasts.
    short = [seen_for(r) if id(r) in done else math.inf for r in records if done.get(id(r)) is None]
    whole = positive_mean(found, confidence) if len(found) == len(records) else Ratio(0)
    return TimeToTarget(len(found), len(records), whole, tuple(found), tuple(short))


def ended_well(record: Record) -> bool:
    """Return whether a run came to its end, and to a number there."""
    finals = [found.get(record.metric) for found in record.metrics.values()]
    return record.status == "ok" and all(final is None or math.isfinite(final) for final in finals)
