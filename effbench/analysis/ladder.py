"""Quality against budget: the same comparison at several budgets, the baseline retrained at each, and what crosses."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from effbench.analysis.comparison import Comparison, SetResult
from effbench.analysis.intervals import Estimate
from effbench.analysis.verdicts import Verdict
from effbench.budget import Budget
from effbench.errors import InvalidBudget


@dataclass(frozen=True, slots=True)
class Rung:
    """A set at one budget."""

    budget: str
    amount: float  # in the unit of the budget
    scored: int  # seeds
    planned: int
    mean: Estimate
    difference: Estimate | None  # to the baseline at the same budget, as in the table; None for the baseline itself
    verdict: Verdict | None


@dataclass(frozen=True, slots=True)
class Crossing:
    """A budget at which a set begins to pay, or ceases to.

    at: where the mean difference is zero, straight between two rungs on the logarithm of the budget.
    low, high: where the ends of the interval of the difference are zero; None where that is not between rungs.
    is_sure: whether the verdict is `better` on one side, and `worse` on the other.
    """

    begins: bool
    at: float  # in the unit of the budget
    low: float | None
    high: float | None
    is_sure: bool


@dataclass(frozen=True, slots=True)
class Ladder:
    """A set on a workload, from the smallest budget to the largest."""

    workload: str
    clock: str  # unit of the budgets
    label: str
    techniques: Mapping[str, Mapping[str, Any]]
    metric: str
    higher_is_better: bool | None
    rungs: tuple[Rung, ...]
    crossings: tuple[Crossing, ...]

    @property
    def sentence(self) -> str:
        """What the ladder says in words: `mixup pays from 40s reference on`; "" for the baseline."""
        judged = [rung.verdict for rung in self.rungs if rung.verdict is not None]
        if not judged:
            return ""
        if not self.crossings:
            return f"{self.label} {_SAME.get(judged[0], _MIXED) if len(set(judged)) == 1 else _MIXED}"
        parts = [
            f"{'pays from' if each.begins else 'pays up to'} {_written(each.at, self.clock)}{' on' * each.begins}"
            for each in self.crossings
        ]
        hedge = "" if all(each.is_sure for each in self.crossings) else " by its means, which intervals do not settle"
        return f"{self.label} {', '.join(parts)}{hedge}"


_SAME = {
    Verdict.BETTER: "pays at every budget",
    Verdict.WORSE: "does not pay at any budget",
    Verdict.BREAKS: "breaks at every budget",
    Verdict.NO_EVIDENCE: "is not told apart from the baseline at any budget",
    Verdict.SKIPPED: "does not apply",
}
_MIXED = "shows no crossing between its budgets"


def ladders(comparisons: Sequence[Comparison]) -> list[Ladder]:
    """Return the ladder of each set, the baseline first, on each workload and clock that has two budgets or more.

    A budget of which nobody knows how much it is, as one of a plugin's clock that no record names, is no rung.
    """
    by_workload: dict[tuple[str, str, str], list[Comparison]] = {}
    for each in comparisons:
        by_workload.setdefault((each.group.workload, each.group.clock, each.group.version), []).append(each)
    found = []
    for (workload, clock, _), alike in by_workload.items():
        known = [(amount, each) for each in alike if (amount := amount_of(each)) is not None]
        if len(known) < 2:
            continue
        ordered = sorted(known, key=lambda pair: pair[0])
        rungs = [(at, each, {one.key: one for one in each.results}) for at, each in ordered]
        seen = {name: one for *_, by_name in reversed(rungs) for name, one in by_name.items()}
        for name, one in sorted(seen.items(), key=lambda item: (not item[1].is_baseline, item[1].label)):
            own = [_rung(at, each, by_name[name]) for at, each, by_name in rungs if name in by_name]
            found.append(_ladder(workload, clock, one, own, ordered[-1][1]))
    return found


def amount_of(comparison: Comparison) -> float | None:
    """Return the budget of a comparison, in its unit; None where its unit is a plugin's, and no record names it."""
    try:
        return Budget.parse(comparison.group.budget, more_units=[comparison.group.clock]).amount
    except InvalidBudget:
        return None


def _rung(amount: float, comparison: Comparison, each: SetResult) -> Rung:
    budget = comparison.group.budget
    return Rung(budget, amount, len(each.values), each.planned, each.mean, each.difference, each.verdict)


def _ladder(workload: str, clock: str, like: SetResult, rungs: Sequence[Rung], largest: Comparison) -> Ladder:
    measure = largest.measure
    crossings = crossings_of(rungs, measure.higher_is_better)
    return Ladder(
        workload, clock, like.label, like.techniques, measure.title, measure.higher_is_better, tuple(rungs), crossings
    )


def crossings_of(rungs: Sequence[Rung], higher: bool | None) -> tuple[Crossing, ...]:
    """Return where the mean difference changes its sign between neighbouring rungs; incomplete rungs have no say.

    A rung whose mean difference is zero is where it changes its sign, if it does.
    """
    sign = -1.0 if higher is False else 1.0
    known = [rung for rung in rungs if rung.difference is not None and rung.scored == rung.planned]
    signed = [i for i, rung in enumerate(known) if _gain(rung, sign)[1] != 0.0]
    found = []
    for i, j in itertools.pairwise(signed):
        before, after = known[i], known[j]
        left, right = _gain(before, sign), _gain(after, sign)
        if left[1] * right[1] > 0.0:
            continue
        begins = right[1] > 0.0
        ends = [_zero(before.amount, after.amount, a, b) for a, b in zip(left, right, strict=True)]
        at = known[i + 1].amount if j > i + 1 else ends[1]
        # What begins to pay may do so as soon as the upper end of its difference is zero, and as late as the lower is.
        low, high = (ends[2], ends[0]) if begins else (ends[0], ends[2])
        sure = {before.verdict, after.verdict} == {Verdict.BETTER, Verdict.WORSE}
        found.append(Crossing(begins, after.amount if at is None else at, low, high, sure))
    return tuple(found)


def _gain(rung: Rung, sign: float) -> tuple[float | None, float, float | None]:
    """Return (low, mean, high) of the difference, positive where the set is better."""
    found = rung.difference
    if found is None or found.mean is None:
        return None, 0.0, None
    if found.low is None or found.high is None:
        return None, sign * found.mean, None
    low, high = sorted((sign * found.low, sign * found.high))
    return low, sign * found.mean, high


def _zero(before: float, after: float, left: float | None, right: float | None) -> float | None:
    """Return the budget at which a line from `left` to `right` is zero, on the logarithm of the budget."""
    if left is None or right is None or left * right >= 0.0:
        return None
    share = left / (left - right)
    return math.exp(math.log(before) + share * (math.log(after) - math.log(before)))


def _written(amount: float, clock: str) -> str:
    return str(Budget(float(f"{amount:.2g}"), clock))
