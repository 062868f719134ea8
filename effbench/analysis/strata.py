"""The mean of workload means, whose seeds are drawn inside each workload."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from effbench.analysis.intervals import CONFIDENCE, estimate, t_quantile
from effbench.analysis.ratios import Ratio, of_logarithms

#: Seeds in every workload from which the bootstrap is trusted. Resampling n values shrinks their spread by
#: sqrt((n - 1) / n), and knows nothing of values not yet seen; Student's t allows for both.
BOOTSTRAP_FROM = 20
_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class StrataMean:
    """A mean of workload means: workloads are given, seeds are drawn."""

    n: int  # values in all
    mean: float | None = None
    error: float | None = None  # standard error
    freedom: float | None = None
    low: float | None = None
    high: float | None = None
    method: str = "Student's t"

    @property
    def p_positive(self) -> float | None:
        """The probability that the mean is above zero, as Student's t has it with a flat prior."""
        if self.mean is None or not self.error or self.freedom is None:
            return None
        from scipy.special import stdtr

        return float(stdtr(self.freedom, self.mean / self.error))

    def as_ratio(self) -> Ratio:
        """Return the mean of logarithms as a ratio."""
        return of_logarithms(self.n, self.mean, self.low, self.high)


def strata_mean(strata: Sequence[Sequence[float]], confidence: float = CONFIDENCE) -> StrataMean:
    """Return the mean of the strata's means with its interval.

    Few seeds: Student's t, its degrees of freedom after Satterthwaite (An Approximate Distribution of Estimates of
    Variance Components, Biometrics Bulletin 2, 1946), for the strata spread differently. From `BOOTSTRAP_FROM` values
    in every stratum: the BCa bootstrap (Efron, Better Bootstrap Confidence Intervals, JASA 82, 1987), each stratum
    resampled by itself. A stratum of one value, or no spread at all, gives no interval.
    """
    found = [estimate(values) for values in strata if values]
    means = [each.mean for each in found if each.mean is not None]
    n = sum(each.n for each in found)
    if not means:
        return StrataMean(0)
    mean = math.fsum(means) / len(means)
    spreads = [each.spread for each in found]
    if None in spreads or not any(spreads):
        return StrataMean(n, mean)
    shares = [(each.spread or 0.0) ** 2 / each.n / len(means) ** 2 for each in found]
    error = math.sqrt(math.fsum(shares))
    freedom = error**4 / math.fsum(share**2 / (each.n - 1) for share, each in zip(shares, found, strict=True))
    if min(each.n for each in found) >= BOOTSTRAP_FROM:
        low, high = _bootstrapped([values for values in strata if values], confidence)
        return StrataMean(n, mean, error, freedom, low, high, "BCa bootstrap")
    half = t_quantile(freedom, confidence) * error
    return StrataMean(n, mean, error, freedom, mean - half, mean + half)


def _bootstrapped(strata: Sequence[Sequence[float]], confidence: float) -> tuple[float, float]:
    import numpy as np
    from scipy.stats import bootstrap

    def mean_of_means(*samples: np.ndarray, axis: int = -1) -> np.ndarray:
        means: np.ndarray = sum(sample.mean(axis) for sample in samples) / len(samples)
        return means

    found = bootstrap(
        [np.asarray(values) for values in strata],
        mean_of_means,
        n_resamples=_RESAMPLES,
        vectorized=True,
        confidence_level=confidence,
        method="BCa",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return float(found.low), float(found.high)
