"""How many seeds it takes to see an effect, and how small an effect so many seeds can see."""

from __future__ import annotations

import math

from effbench.analysis.intervals import CONFIDENCE, t_quantile

POWER = 0.8  # the usual chance of seeing an effect that is there
MOST_SEEDS = 10_000

_REACH, _STEP = 9.0, 0.005  # of the normal distribution: how far, and how finely


def power(effect: float, spread: float, seeds: int, *, confidence: float = CONFIDENCE, comparisons: int = 1) -> float:
    """Return the chance that the paired t test sees an effect: that its interval excludes zero.

    effect: the true mean difference.
    spread: standard deviation of the differences of paired seeds, in the unit of the effect.
    comparisons: sets in one table; each is held against (1 - confidence) / comparisons, the first step of Holm's
        correction, which is the hardest.

    By the noncentral t distribution (Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, chapter 2).
    """
    if seeds < 2:
        return 0.0
    if spread == 0.0:
        return 1.0 if effect else 0.0
    edge = t_quantile(seeds - 1, 1.0 - (1.0 - confidence) / comparisons)
    return _beyond(seeds - 1, abs(effect) / spread * math.sqrt(seeds), edge)


def _beyond(freedom: int, shift: float, edge: float) -> float:
    """Return the chance that noncentral t, of this shift, lies outside [-edge, edge].

    t is (Z + shift) / sqrt(V / freedom), with a normal Z and a chi-squared V: for each Z it lies outside when V is
    small enough. The mean of that chance over Z is taken by the trapezoid rule, which is exact to 1e-6 here. The
    distribution function of scipy is NaN in a tail below 1e-15, and beyond a shift of about 38.
    """
    import numpy as np
    from scipy.special import chdtr

    normal = np.arange(-_REACH, _REACH + _STEP / 2, _STEP)
    weights = np.exp(-0.5 * normal**2)
    chances = chdtr(freedom, freedom * ((normal + shift) / edge) ** 2)
    return float(weights @ chances / weights.sum())


def seeds_needed(
    effect: float, spread: float, *, chance: float = POWER, confidence: float = CONFIDENCE, comparisons: int = 1
) -> int | None:
    """Return the fewest paired seeds with that chance of seeing an effect; None where `MOST_SEEDS` are too few."""

    def is_enough(seeds: int) -> bool:
        return power(effect, spread, seeds, confidence=confidence, comparisons=comparisons) >= chance

    if not is_enough(MOST_SEEDS):
        return None
    low, high = 1, 2
    while not is_enough(high):
        low, high = high, min(2 * high, MOST_SEEDS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def detectable(
    seeds: int, spread: float, *, chance: float = POWER, confidence: float = CONFIDENCE, comparisons: int = 1
) -> float | None:
    """Return the smallest effect that so many paired seeds see with that chance; None for one seed."""
    if seeds < 2:
        return None
    if spread == 0.0:
        return 0.0
    from scipy.optimize import brentq

    def missing(effect: float) -> float:
        return power(effect, spread, seeds, confidence=confidence, comparisons=comparisons) - chance

    high = spread
    while missing(high) < 0.0:
        high *= 2.0
    return float(brentq(missing, 0.0, high, xtol=1e-6 * high))
