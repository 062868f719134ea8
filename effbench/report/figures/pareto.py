"""Quality against cost: each complete set as a point with its intervals; what nothing beats in both stands out."""

from __future__ import annotations

from effbench.analysis.intervals import Estimate
from effbench.analysis.pareto import TITLES, Front, Point
from effbench.report.figures.figure import Axis, Chart, Dot

BASELINE = "baseline"


def pareto(front: Front) -> Chart:
    """Return a front as a chart: up is better, left is cheaper."""
    return Chart(
        title=f"{front.workload}, {front.budget}",
        about=f"Mean {front.metric} against {TITLES[front.cost]}, with intervals. "
        "Up is better, left is cheaper; named sets are beaten by no other in both.",
        x=Axis(TITLES[front.cost]),
        y=Axis(front.metric, flipped=not front.higher_is_better),
        dots=tuple(_dot(point) for point in sorted(front.points, key=lambda point: point.is_on_front)),
    )


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
