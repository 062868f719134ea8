"""How much of the budget it took to reach a target, whenever the run happened to be evaluated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from effbench.analysis.intervals import CONFIDENCE, Estimate, estimate
from effbench.records import Record


@dataclass(frozen=True, slots=True)
class TimeToTarget:
    """Over the seeds of a set: how many reached the target, and what it took those that did.

    Runs that stop short of the target are right-censored: they would have needed more than their budget. A mean
    over the others alone would flatter the set, so `estimate` has one only where all seeds got there.
    """

    reached: int
    seeds: int
    estimate: Estimate  # in the budget's unit


def spent_at_target(record: Record) -> float | None:
    """Return what was spent, in the budget's unit, when the curve first met the target; None if it never did.

    The curve is taken as straight between two evaluations, so that the result hardly depends on how often a
    run is evaluated. A target that the first evaluation already meets counts as met there.
    """
    if record.target is None or not record.metric:
        return None
    sign = 1.0 if record.higher_is_better else -1.0
    before: tuple[float, float] | None = None
    for row in record.curve:
        spent, value = row.get("spent", math.nan), row.get(record.metric, math.nan)
        if not (math.isfinite(spent) and math.isfinite(value)):
            continue
        missing = sign * (record.target - value)
        if missing <= 0.0:
            if before is None:
                return spent
            return before[0] + (spent - before[0]) * before[1] / (before[1] - missing)
        before = spent, missing
    return None


def time_to_target(records: Sequence[Record], confidence: float = CONFIDENCE) -> TimeToTarget | None:
    """Sum up what it took the tried runs of a set; None where there is no target.

    A run that broke down did not get there, whatever its curve did before.
    """
    if all(record.target is None for record in records):
        return None
    done = [spent_at_target(record) for record in records if record.status == "ok"]
    found = [spent for spent in done if spent is not None]
    complete = len(found) == len(records)
    return TimeToTarget(len(found), len(records), estimate(found, confidence) if complete else Estimate(0))
