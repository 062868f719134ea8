"""Two questions apart: does an idea help, step for step, and does it pay, once its own cost is on the clock?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from effbench.analysis.comparison import Comparison, SetResult
from effbench.analysis.costs import Cost, cost
from effbench.analysis.intervals import Estimate
from effbench.analysis.ladder import amount_of
from effbench.analysis.verdicts import Verdict

#: Clocks on which a technique's own work costs nothing: all sets take as many steps, or see as much data.
PER_STEP = frozenset({"steps", "epochs", "examples", "tokens"})


class Finding(StrEnum):
    """What the two tracks say together."""

    PAYS = "helps, and pays for itself"
    DOES_NOT_PAY = "helps, but does not pay for itself"
    UNSETTLED = "helps at equal steps; no evidence that it pays for itself"
    PAYS_ONLY = "pays for itself; no evidence that it helps at equal steps"
    NEITHER = "neither helps nor pays, as far as can be told"
    COSTS = "does not pay for itself; no evidence that it helps at equal steps"
    CHEAP = "pays by being cheaper: step for step it harms"
    BALANCED = "harms at equal steps; no evidence of it at an equal budget"
    HARMS = "harms, at equal steps and at an equal budget"
    BREAKS = "breaks"
    OPEN = "one of the two tracks is incomplete"


@dataclass(frozen=True, slots=True)
class TwoTracks:
    """A set on a workload at equal steps and at an equal budget.

    waived: the difference to the baseline if the set's own extra work were free: that at equal steps, for the steps
        are those that the budget buys the baseline.
    """

    workload: str
    label: str
    techniques: Mapping[str, Mapping[str, Any]]
    metric: str
    higher_is_better: bool | None
    steps: str  # the budget of the track per step
    budget: str  # the budget of the track per budget
    per_step: Estimate | None  # difference to the baseline
    per_step_verdict: Verdict | None
    per_budget: Estimate | None
    per_budget_verdict: Verdict | None
    cost: Cost
    finding: Finding

    @property
    def waived(self) -> Estimate | None:
        """What the set would be worth if its own extra work were free."""
        return self.per_step


def tracks(comparisons: Sequence[Comparison]) -> list[TwoTracks]:
    """Return both tracks of each set, for each budget whose equal-steps counterpart was run too.

    A budget's counterpart counts steps (or examples, tokens, epochs), and its baseline trained as many steps as under
    the budget, within one per cent; `per_step = true` in a suite asks for it.
    """
    found = []
    at_equal_steps: dict[tuple[str, str], list[Comparison]] = {}
    for each in comparisons:
        if each.group.clock in PER_STEP:
            at_equal_steps.setdefault((each.group.workload, each.group.version), []).append(each)
    for paying in comparisons:
        if paying.group.clock in PER_STEP:
            continue
        free = _counterpart(paying, at_equal_steps.get((paying.group.workload, paying.group.version), ()))
        if free is not None:
            at_steps = {each.key: each for each in free.results}
            baseline = next(each for each in paying.results if each.is_baseline)
            found += [
                _both(at_steps[each.key], each, free, paying, baseline)
                for each in paying.results
                if not each.is_baseline and each.key in at_steps
            ]
    return found


def _counterpart(paying: Comparison, at_equal_steps: Sequence[Comparison]) -> Comparison | None:
    taken = _baseline_steps(paying) if at_equal_steps else None
    for each in at_equal_steps:
        steps = _baseline_steps(each)
        if steps and taken and abs(steps - taken) <= max(1.0, 0.01 * taken):
            return each
    return None


def _baseline_steps(comparison: Comparison) -> float | None:
    """Return the steps of the baseline's runs, on average; by the budget where none ended well."""
    taken = [r.steps for each in comparison.results if each.is_baseline for r in each.records if r.status == "ok"]
    if taken:
        return sum(taken) / len(taken)
    return amount_of(comparison) if comparison.group.clock == "steps" else None


def _both(free: SetResult, paying: SetResult, at: Comparison, by: Comparison, baseline: SetResult) -> TwoTracks:
    return TwoTracks(
        workload=by.group.workload,
        label=paying.label,
        techniques=paying.techniques,
        metric=by.measure.title,
        higher_is_better=by.measure.higher_is_better,
        steps=at.group.budget,
        budget=by.group.budget,
        per_step=free.difference,
        per_step_verdict=free.verdict,
        per_budget=paying.difference,
        per_budget_verdict=paying.verdict,
        cost=cost(paying.records, baseline.records, by.confidence),
        finding=finding(free.verdict, paying.verdict),
    )


def finding(per_step: Verdict | None, per_budget: Verdict | None) -> Finding:
    """Return what two verdicts say together."""
    both = {per_step, per_budget}
    if Verdict.BREAKS in both:
        return Finding.BREAKS
    if both & {Verdict.INCOMPLETE, Verdict.SKIPPED, None}:
        return Finding.OPEN
    return _FOUND[per_step, per_budget]


#: verdict at equal steps, at an equal budget -> what they say; of "no evidence" nothing follows.
_FOUND: dict[tuple[Verdict | None, Verdict | None], Finding] = {
    (Verdict.BETTER, Verdict.BETTER): Finding.PAYS,
    (Verdict.BETTER, Verdict.NO_EVIDENCE): Finding.UNSETTLED,
    (Verdict.BETTER, Verdict.WORSE): Finding.DOES_NOT_PAY,
    (Verdict.NO_EVIDENCE, Verdict.BETTER): Finding.PAYS_ONLY,
    (Verdict.NO_EVIDENCE, Verdict.NO_EVIDENCE): Finding.NEITHER,
    (Verdict.NO_EVIDENCE, Verdict.WORSE): Finding.COSTS,
    (Verdict.WORSE, Verdict.BETTER): Finding.CHEAP,
    (Verdict.WORSE, Verdict.NO_EVIDENCE): Finding.BALANCED,
    (Verdict.WORSE, Verdict.WORSE): Finding.HARMS,
}
