"""How many seeds it takes to see an effect, and how small an effect so many seeds can see."""

from __future__ import annotations

import math

from effbench.analysis.intervals import CONFIDENCE, t_quantile

POWER = 0.8  # the usual chance of seeing an effect that is there
MOST_SEEDS = 10_000


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
    from scipy.special import nctdtr

    freedom = seeds - 1
    edge = t_quantile(freedom, 1.0 - (1.0 - confidence) / comparisons)
    shift = abs(effect) / spread * math.sqrt(seeds)
    if shift > edge + 30.0:  # beyond what the distribution function can be computed for, and certain
        return 1.0
    wrong_side = float(nctdtr(freedom, shift, -edge))  # NaN where it is too small to be computed
    return float(1.0 - nctdtr(freedom, shift, edge)) + (0.0 if math.isnan(wrong_side) else wrong_side)


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
