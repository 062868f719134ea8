"""Main effects and interactions of a factorial design as a forest."""

from __future__ import annotations

from effbench.analysis.interactions import Effect as Found
from effbench.analysis.interactions import Interactions
from effbench.report import numbers
from effbench.report.figures.figure import BETTER, Axis, Effect, Forest


def interactions(found: Interactions) -> Forest:
    """Return the effects of one workload, main effects first."""
    rows = tuple(_effect(each, found.higher_is_better) for each in found.effects if each.effect.mean is not None)
    better = f" {BETTER}" if found.higher_is_better is not None else ""
    return Forest(
        title=f"{found.workload}, {found.budget}",
        about=f"What turning a technique on changes, and, for pairs, how much more it changes while the other is on: "
        f"{found.points} of {found.planned} points of the design, {found.seeds} seeds.",
        x=Axis(f"effect on {found.metric}{better}", flipped=found.higher_is_better is False),
        rows=rows,
    )


def _effect(each: Found, higher: bool | None) -> Effect:
    low, high = each.effect.low, each.effect.high
    mean = each.effect.mean or 0.0
    told = low is not None and high is not None and not low <= 0.0 <= high
    verdict = "no evidence" if not told or higher is None else "better" if (mean > 0.0) == higher else "worse"
    return Effect(f" {numbers.TIMES} ".join(each.of), mean, low, high, verdict, numbers.difference(each.effect))
