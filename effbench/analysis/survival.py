"""Times of which some are only known to be longer than a run was watched: right-censored ones."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from effbench.analysis.intervals import CONFIDENCE

#: Shares that differ by less are equal: the rest is rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Median:
    """A median time with its interval. None is "later than the runs were watched", or not known."""

    n: int
    events: int  # how many times are known
    at: float | None = None
    low: float | None = None
    high: float | None = None


def median_time(times: Sequence[float], censored: Sequence[float], confidence: float = CONFIDENCE) -> Median:
    """Return the Kaplan-Meier median of times, given how long the others were watched in vain.

    The interval holds the times at which the survival function's log-log interval holds one half (Brookmeyer and
    Crowley, A Confidence Interval for the Median Survival Time, Biometrics 38, 1982). So few times that all of them may
    lie on one side of the median more often than is allowed, four at 95 %, have no interval.

    times: when it happened. censored: until when it had not; infinite where it never will.
    """
    n = len(times) + len(censored)
    if not times:
        return Median(n, 0)
    from scipy.stats import CensoredData, ecdf

    last = max([*times, *(each for each in censored if math.isfinite(each))])
    watched = [each if math.isfinite(each) else 2.0 * last + 1.0 for each in censored]
    alive = ecdf(CensoredData(uncensored=list(times), right=watched)).sf
    at = _half(alive.quantiles, alive.probabilities, last)
    if 0.5**n > 1.0 - confidence:
        return Median(n, len(times), at)
    with warnings.catch_warnings():  # where all or none are alive, the transform has no spread
        warnings.simplefilter("ignore", RuntimeWarning)
        found = alive.confidence_interval(confidence, method="log-log")
    low = _half(found.low.quantiles, found.low.probabilities, last)
    high = _half(found.high.quantiles, found.high.probabilities, last)
    return Median(n, len(times), at, low, high)


def _half(times: Sequence[float], alive: Sequence[float], last: float) -> float | None:
    """Return when half are left: where the curve falls below a half, or the middle of the step on which it is one half.

    So it is the plain median where nothing is censored. None where the curve does not fall so far.
    """
    fallen = [float(t) for t, share in zip(times, alive, strict=True) if share < 0.5 - _ROUNDING and t <= last]
    half = [float(t) for t, share in zip(times, alive, strict=True) if abs(share - 0.5) <= _ROUNDING and t <= last]
    if not fallen:
        return None
    return (half[0] + fallen[0]) / 2.0 if half else fallen[0]
