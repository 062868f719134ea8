"""Quality against cost: each complete set as a point with its intervals; what nothing beats in both stands out."""

from __future__ import annotations

from collections.abc import Sequence

from effbench.analysis.intervals import Estimate
from effbench.analysis.pareto import TITLES, Front, Point
from effbench.report.figures.figure import Axis, Chart, Dot

BASELINE = "baseline"


#: Of what points span: how far an axis goes on beyond them, at least and at most, lest a wide interval squeezes all.
_WITHIN, _BEYOND = 0.05, 0.35


def pareto(front: Front) -> Chart:
    """Return a front as a chart: up is better, left is cheaper."""
    costs, qualities = [point.cost for point in front.points], [point.quality for point in front.points]
    cheapest, dearest = _ends(costs)
    lowest, highest = _ends(qualities)
    return Chart(
        title=f"{front.workload}, {front.budget}",
        about=f"Mean {front.metric} against {TITLES[front.cost]}, with intervals. "
        "Up is better, left is cheaper; named sets are beaten by no other in both.",
        x=Axis(TITLES[front.cost], low=max(0.0, cheapest), high=dearest),
        y=Axis(front.metric, flipped=not front.higher_is_better, low=lowest, high=highest),
        dots=tuple(_dot(point) for point in sorted(front.points, key=lambda point: point.is_on_front)),
    )


def tells(front: Front) -> bool:
    """Return whether there is something to weigh: sets that all cost the same have no front."""
    return len({point.cost.mean for point in front.points}) > 1


def _dot(point: Point) -> Dot:
    slot = 0 if point.label == BASELINE else 1 if point.is_on_front else 8
    return Dot(
        point.label,
        slot,
        point.cost.mean or 0.0,
        point.quality.mean or 0.0,
        _interval(point.cost),
        _interval(point.quality),
        ringed=point.is_on_front,
    )


def _interval(found: Estimate) -> tuple[float, float] | None:
    return None if found.low is None or found.high is None else (found.low, found.high)


def _ends(found: Sequence[Estimate]) -> tuple[float, float]:
    """Return the ends of an axis: those of the intervals, as far as they do not lie far from all points."""
    means = [each.mean for each in found if each.mean is not None]
    lows = [each.low for each in found if each.low is not None]
    highs = [each.high for each in found if each.high is not None]
    low, high = min(means), max(means)
    span = (high - low) or 0.1 * abs(high) or 1.0
    least, most = _WITHIN * span, _BEYOND * span
    return max(low - most, min([low - least, *lows])), min(high + most, max([high + least, *highs]))
