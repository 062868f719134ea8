"""Stop when it is decided: a group-sequential test that looks after every seed, and errs no more often for it.

Looking at a t test after each seed and stopping when it says something errs far more often than the test promises. So
the error that is allowed, alpha, is *spent* over the looks by a rule that is fixed before (Lan and DeMets, Discrete
Sequential Boundaries for Clinical Trials, Biometrika 70, 1983). The rule here is alpha * share ** 2, where the share is
that of the planned seeds (Kim and DeMets, Design and Analysis of Group Sequential Tests Based on the Type I Error
Spending Rate Function, Biometrika 74, 1987, with rho = 2): between Pocock's, which stops early and costs much at the
end, and O'Brien and Fleming's, which hardly stops early at all.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from effbench.analysis.intervals import CONFIDENCE, Estimate, estimate, t_quantile

FIRST_LOOK = 3  # seeds: of two, Student's t knows next to nothing
_PATHS = 200_000  # simulated to find the levels, at least, unless that were more than so many
_VALUES = 8_000_000  # seeds of all paths together
_ENOUGH = 400  # paths that each look should decide, and
_LEAST = 25  # how many it must decide for its level to rest on them


def _obrien_fleming(share: float, alpha: float) -> float:
    from scipy.special import ndtr, ndtri

    return float(2.0 * (1.0 - ndtr(ndtri(1.0 - alpha / 2.0) / math.sqrt(share))))


#: name -> share of alpha that is spent when a share of the planned seeds is seen.
SPENDING: dict[str, Callable[[float, float], float]] = {
    "kim_demets": lambda share, alpha: alpha * share**2,
    "pocock": lambda share, alpha: alpha * math.log(1.0 + (math.e - 1.0) * share),
    "obrien_fleming": _obrien_fleming,
}


class Decision(StrEnum):
    """What a sequential test says so far."""

    HIGHER = "higher"
    LOWER = "lower"
    NO_DIFFERENCE = "no difference"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Design:
    """When to look, and how sure to be there.

    levels: for each look the two-sided p value of the paired t test below which it is decided. An interval of
        confidence 1 - level is a repeated confidence interval (Jennison and Turnbull, Interim Analyses: The Repeated
        Confidence Interval Approach, J. R. Statist. Soc. B 51, 1989): those of all looks together hold the true
        difference with confidence 1 - alpha, whatever is stopped when and why.
    """

    looks: tuple[int, ...]  # in seeds
    alpha: float
    rule: str
    levels: tuple[float, ...]

    def level(self, seeds: int) -> float:
        """Return the level of the last look that so many seeds allow; 0 before the first."""
        taken = [level for n, level in zip(self.looks, self.levels, strict=True) if n <= seeds]
        return taken[-1] if taken else 0.0

    def interval(self, found: Estimate) -> Estimate:
        """Return the repeated confidence interval of a mean; none before the first look, nor of equal values."""
        level = self.level(found.n)
        return found.at(1.0 - level) if level > 0.0 else Estimate(found.n, found.mean, found.spread)


@functools.cache
def design(seeds: int, alpha: float = 1.0 - CONFIDENCE, rule: str = "kim_demets") -> Design:
    """Return the design that looks after each seed from the third to the last of `seeds`.

    Levels come from simulating the t statistics of all looks together, which under "no difference" do not depend on
    how the differences spread: they hold for few seeds, where the usual normal approximation does not. The first look,
    and one at which too few paths are left to tell a level, takes what it may spend as its level. That is exact for the
    first and on the safe side for others, since a p value is never below a level more often than that; what is saved is
    spent later.
    """
    import numpy as np
    from scipy.special import stdtr

    looks = tuple(range(min(FIRST_LOOK, seeds), seeds + 1)) if seeds > 1 else ()
    spending = [0.0, *(SPENDING[rule](n / seeds, alpha) for n in looks)]
    least = min((after - before for before, after in itertools.pairwise(spending)), default=1.0)
    paths = min(max(_PATHS, math.ceil(_ENOUGH / max(least, _ENOUGH / _VALUES))), _VALUES // max(1, seeds))
    dice = np.random.default_rng(0)
    values = dice.standard_normal((paths, seeds))
    sums, squares = values.cumsum(1), (values**2).cumsum(1)
    undecided = np.ones(paths, dtype=bool)
    levels: list[float] = []
    for n, (before, after) in zip(looks, itertools.pairwise(spending), strict=True):
        mean = sums[:, n - 1] / n
        t = np.abs(mean) / np.sqrt((squares[:, n - 1] - n * mean**2) / (n - 1) / n)
        share = max(after - before, after - 1.0 + float(undecided.mean()))
        if levels and share * paths >= _LEAST:
            edge = float(np.partition(t[undecided], -int(share * paths))[-int(share * paths)])
            levels.append(float(2.0 * stdtr(n - 1, -edge)))
        else:
            edge = t_quantile(n - 1, 1.0 - share)
            levels.append(share)
        undecided &= t < edge
    return Design(looks, alpha, rule, tuple(levels))


def decide(differences: Sequence[float], plan: Design, margin: float) -> tuple[Decision, Estimate]:
    """Look after each seed in turn; return the first decision, or "open", with the interval of the last look taken.

    differences: of paired seeds, in the order in which these were planned.
    margin: differences up to this size are none. It is decided that there is none when the whole interval lies within,
        which errs with at most alpha / 2 where the true difference is as large as the margin.
    """
    last = Estimate(len(differences))
    for n in plan.looks:
        if n > len(differences):
            break
        last = plan.interval(estimate(differences[:n]))
        if last.low is None or last.high is None:
            continue
        if last.low > 0.0:
            return Decision.HIGHER, last
        if last.high < 0.0:
            return Decision.LOWER, last
        if -margin <= last.low and last.high <= margin:
            return Decision.NO_DIFFERENCE, last
    return Decision.OPEN, last
