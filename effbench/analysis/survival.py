"""Times of which some are only known to be longer than a run was watched: right-censored ones."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from effbench.analysis.intervals import CONFIDENCE


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
    Crowley, A Confidence Interval for the Median Survival Time, Biometrics 38, 1982). One time has no interval.

    times: when it happened. censored: until when it had not; infinite where it never will.
    """
    n = len(times) + len(censored)
    if not times:
        return Median(n, 0)
    from scipy.stats import CensoredData, ecdf

    last = max([*times, *(each for each in censored if math.isfinite(each))])
    watched = [each if math.isfinite(each) else 2.0 * last + 1.0 for each in censored]
    alive = ecdf(CensoredData(uncensored=list(times), right=watched)).sf
    at = _first_below_half(alive.quantiles, alive.probabilities, last)
    if n == 1:
        return Median(1, 1, at)
    with warnings.catch_warnings():  # where all or none are alive, the transform has no spread
        warnings.simplefilter("ignore", RuntimeWarning)
        found = alive.confidence_interval(confidence, method="log-log")
    low = _first_below_half(found.low.quantiles, found.low.probabilities, last)
    high = _first_below_half(found.high.quantiles, found.high.probabilities, last)
    return Median(n, len(times), at, low, high)


def _first_below_half(times: Sequence[float], alive: Sequence[float], last: float) -> float | None:
    for time, share in zip(times, alive, strict=True):
        if share <= 0.5 and time <= last:
            return float(time)
    return None
