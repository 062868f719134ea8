"""Performance profiles: on which share of the workloads a set is at most so many times slower than the fastest."""

from __future__ import annotations

from collections.abc import Sequence

from effbench.analysis.profiles import R_MAX, Profile
from effbench.report.figures.figure import Axis, Chart, Line

MOST = 6  # lines


def profiles(found: Sequence[Profile]) -> Chart:
    """Return the profiles of the best sets, and the baseline's."""
    baseline = [each for each in found if each.label == "baseline"]
    others = [each for each in found if each.label != "baseline"][: MOST - len(baseline)]
    lines = [_line(each, 0) for each in baseline]
    lines += [_line(each, slot) for slot, each in enumerate(others, start=1)]
    return Chart(
        title="time to target",
        about=f"Share of the workloads on which a set reaches the target within so many times the fastest's time, "
        f"up to {R_MAX:g} times (AlgoPerf, arXiv:2306.07179). Higher is better.",
        x=Axis("times the fastest set's time to target", low=1.0, high=R_MAX),
        y=Axis("share of the workloads, %"),
        lines=tuple(lines),
    )


def _line(each: Profile, slot: int) -> Line:
    steps = [(1.0, 0.0), *each.steps] if not each.steps or each.steps[0][0] > 1.0 else list(each.steps)
    steps.append((R_MAX, steps[-1][1]))
    return Line(each.label, slot, tuple(x for x, _ in steps), tuple(100.0 * y for _, y in steps), stepped=True)
