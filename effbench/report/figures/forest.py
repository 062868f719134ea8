"""The differences to the baseline as a forest: one row a set, its interval, a line at zero."""

from __future__ import annotations

from effbench.analysis.comparison import Comparison, SetResult
from effbench.report import numbers
from effbench.report.figures.figure import BETTER, Axis, Effect, Forest

MOST = 20  # rows of one forest


def forest(comparison: Comparison, most: int = MOST) -> Forest:
    """Return the forest of a comparison: complete sets from best to worst, then the others, as in its table.

    most: how many sets there is room for; the worst of the rest and the best are kept, the middle goes.
    """
    measure, group = comparison.measure, comparison.group
    found = [each for each in comparison.results if each.difference is not None and each.difference.mean is not None]
    shown = found if len(found) <= most else [*found[: most - most // 3], *found[len(found) - most // 3 :]]
    better = f" {BETTER}" if measure.higher_is_better is not None else ""
    percent = f"{100 * comparison.confidence:g} %"
    return Forest(
        title=f"{group.workload}, {group.budget}",
        about=f"Difference of {measure.title} to the baseline, paired by seed, with its {percent} interval. "
        "Further right is better."
        if measure.higher_is_better is not None
        else f"Difference of {measure.title} to the baseline, paired by seed, with its {percent} interval.",
        x=Axis(f"Δ {measure.title} vs baseline{better}", flipped=measure.higher_is_better is False),
        rows=tuple(effect(each) for each in shown),
        left_out=len(found) - len(shown),
    )


def effect(each: SetResult) -> Effect:
    """Return the row of a set that pairs with the baseline."""
    difference = each.difference
    if difference is None or difference.mean is None:
        raise ValueError(f"{each.label} has no seed in common with the baseline")
    return Effect(
        label=each.label,
        value=difference.mean,
        low=difference.low,
        high=difference.high,
        verdict=str(each.verdict or ""),
        text=numbers.difference(difference),
    )
