"""The scores: each set's quality over the baseline's, as a geometric mean over the workloads, in per cent."""

from __future__ import annotations

from collections.abc import Sequence

from effbench.analysis.scores import Score
from effbench.report import numbers
from effbench.report.figures.figure import BETTER, Axis, Effect, Forest

MOST = 20  # rows


def scores(found: Sequence[Score]) -> Forest:
    """Return the scores of one rung of budgets; of many sets the best and the worst."""
    known = [each for each in found if each.techniques and each.ratio.mean is not None]
    shown = known if len(known) <= MOST else [*known[: MOST - MOST // 3], *known[len(known) - MOST // 3 :]]
    budget = next((each.budget for each in found if each.budget), "")
    return Forest(
        title=f"all workloads, {budget}" if budget else "all workloads",
        about="Geometric mean over the workloads of quality over the baseline's, less one, with its interval. "
        "It does not change when another set joins.",
        x=Axis(f"quality over the baseline's, % more {BETTER}"),
        rows=tuple(map(_row, shown)),
        left_out=len(known) - len(shown),
    )


def _row(each: Score) -> Effect:
    mean, low, high = (
        None if end is None else 100.0 * (end - 1.0) for end in (each.ratio.mean, each.ratio.low, each.ratio.high)
    )
    told = low is not None and high is not None and not low <= 0.0 <= high
    verdict = (
        "incomplete"
        if not each.is_complete
        else "no evidence"
        if not told
        else "better"
        if (mean or 0.0) > 0.0
        else "worse"
    )
    text = numbers.significant(mean or 0.0, 3)
    if low is not None and high is not None:
        text += f" [{numbers.significant(low, 3)}, {numbers.significant(high, 3)}]"
    return Effect(each.label, mean or 0.0, low, high, verdict, f"{text} %")
