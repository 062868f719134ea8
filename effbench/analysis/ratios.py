"""Geometric means of ratios, times and speeds, with intervals: from Student's t on the logarithms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from effbench.analysis.intervals import CONFIDENCE, estimate


@dataclass(frozen=True, slots=True)
class Ratio:
    """A geometric mean of ratios, or of other positive amounts, with its two-sided interval.

    Of one value there is no interval, of none no mean.
    """

    n: int
    mean: float | None = None
    low: float | None = None
    high: float | None = None


def geometric_mean(ratios: Sequence[float], confidence: float = CONFIDENCE) -> Ratio:
    """Return the geometric mean of positive ratios; the interval is Student's t on their logarithms.

    Times and losses are skewed and positive, so that a ratio of 2 and one of 1/2 should cancel out, as logarithms do.
    """
    found = estimate([math.log(ratio) for ratio in ratios], confidence)
    return of_logarithms(found.n, found.mean, found.low, found.high)


def of_logarithms(n: int, *ends: float | None) -> Ratio:
    """Return the ratio whose mean and ends of the interval have these logarithms; infinite where too large."""
    return Ratio(n, *(None if end is None else _exp(end) for end in ends))


def positive_mean(values: Sequence[float], confidence: float = CONFIDENCE) -> Ratio:
    """Return the geometric mean of times, speeds or other positive amounts, whose interval never falls below zero.

    Zero, as of a set-up that took no time, has no logarithm: with a zero among them, the plain mean has no interval.
    """
    if values and min(values) <= 0.0:
        return Ratio(len(values), math.fsum(values) / len(values))
    return geometric_mean(values, confidence)


def _exp(exponent: float) -> float:
    try:
        return math.exp(exponent)
    except OverflowError:
        return math.inf


def paired_ratios(ours: Mapping[int, float], theirs: Mapping[int, float]) -> list[float]:
    """Return ours / theirs for each seed at which both are positive and finite."""
    pairs = [(ours[seed], theirs[seed]) for seed in ours if seed in theirs]
    return [a / b for a, b in pairs if a > 0.0 and b > 0.0 and math.isfinite(a) and math.isfinite(b)]
