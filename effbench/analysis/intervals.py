"""Student's t intervals of means, and Holm's correction for looking many times."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95  # two-sided

#: Values that differ by less than this share of their size are equal: the rest is rounding.
ROUNDING = 1e-9

#: Sizes above this are scaled before they are squared, as the perplexity of a model that is about to diverge.
LARGE = 1e150


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its two-sided Student's t interval.

    One value has a mean and no interval; no value has neither. Equal values have no interval either, for they show no
    spread to judge by: an accuracy on 360 examples moves in steps of 1/360, and few seeds often fall on the same step.
    """

    n: int
    mean: float | None = None
    spread: float | None = None  # sample standard deviation
    low: float | None = None
    high: float | None = None

    @property
    def half_width(self) -> float | None:
        """Half the width of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def p_value(self) -> float | None:
        """Two-sided p value of a mean of zero; None where there is no spread to judge by."""
        if self.mean is None or not self.spread:
            return None
        return p_value(self.mean / self.spread * math.sqrt(self.n), self.n - 1)

    def at(self, confidence: float) -> Estimate:
        """Return the same mean with the interval of another confidence."""
        if self.mean is None or not self.spread:
            return Estimate(self.n, self.mean, self.spread)
        half = t_quantile(self.n - 1, confidence) * self.spread / math.sqrt(self.n)
        return Estimate(self.n, self.mean, self.spread, self.mean - half, self.mean + half)


def estimate(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """Return the mean of finite values with its interval; NIST/SEMATECH e-Handbook of Statistics, 1.3.5.2."""
    n = len(values)
    if n == 0:
        return Estimate(0)
    largest = max(map(abs, values))
    if largest > LARGE:
        found = estimate([value / largest for value in values])
        scaled = [None if part is None else part * largest for part in (found.mean, found.spread)]
        return Estimate(n, *scaled).at(confidence)
    mean = math.fsum(values) / n
    if n == 1:
        return Estimate(1, mean)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    if spread <= ROUNDING * largest:
        spread = 0.0
    return Estimate(n, mean, spread).at(confidence)


@functools.cache
def t_quantile(freedom: int, confidence: float) -> float:
    """Return how many standard errors a two-sided interval reaches on each side."""
    from scipy.special import stdtrit  # scipy.stats would take three times as long to import

    return float(stdtrit(freedom, (1.0 + confidence) / 2.0))


def p_value(t: float, freedom: int) -> float:
    """Return the two-sided p value of Student's t with so many degrees of freedom."""
    from scipy.special import stdtr

    return float(2.0 * stdtr(freedom, -abs(t)))


@dataclass(frozen=True, slots=True)
class Holm:
    """What Holm's correction makes of one p value of a family."""

    adjusted: float  # compare with 1 - confidence
    level: float  # of the step that decided: the p value is below it exactly when Holm rejects


def holm(p_values: Sequence[float], confidence: float = CONFIDENCE) -> list[Holm]:
    """Correct a family of p values so that, with the given confidence, none of its rejections is false.

    The i-th smallest of m is held against alpha / (m - i + 1), until one fails; it and all larger ones fail
    (Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scand. J. Statist. 6, 1979). An interval
    of confidence 1 - `level` excludes zero exactly when its hypothesis is rejected.
    """
    alpha, m = 1.0 - confidence, len(p_values)
    order = sorted(range(m), key=lambda i: p_values[i])
    found: dict[int, Holm] = {}
    adjusted, failed_at = 0.0, 0.0
    for rank, i in enumerate(order):
        step = alpha / (m - rank)
        adjusted = max(adjusted, min(1.0, p_values[i] * (m - rank)))
        if not failed_at and p_values[i] > step:
            failed_at = step
        found[i] = Holm(adjusted, failed_at or step)
    return [found[i] for i in range(m)]
