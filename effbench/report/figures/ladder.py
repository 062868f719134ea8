"""The budget ladder: the difference to the baseline at each budget, the baseline retrained at each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from effbench.analysis.ladder import Ladder
from effbench.report.figures.figure import SLOTS, Axis, Chart, Line

#: Clock -> its unit, where the two have not the same name.
_UNITS = {"cpu": "CPU seconds", "reference": "reference-seconds"}

MOST = 6  # lines: their bands lie over each other


def ladder(found: Sequence[Ladder], slots: Mapping[str, int] | None = None) -> Chart:
    """Return the ladders of one workload and clock; those that do best at the largest budget.

    Sets with a difference at one budget alone are left out.

    slots: label -> its colour, where several drawings agree on them; see `shared_slots`.
    """
    first = found[0]
    others = [each for each in found if sum(rung.difference is not None for rung in each.rungs) > 1]
    flipped = first.higher_is_better is False
    budgets = sorted({rung.amount for each in found for rung in each.rungs})
    better = 1.0 if flipped else -1.0
    shown = sorted(others, key=lambda each: better * _last(each))[:MOST]
    return Chart(
        title=first.workload,
        about=f"Difference of {first.metric} to the baseline trained at the same budget, with its interval."
        + (" Upwards is better." if first.higher_is_better is not None else ""),
        x=Axis(f"budget, {_UNITS.get(first.clock, first.clock)}", log=True, ticks=tuple(budgets)),
        y=Axis(f"Δ {first.metric}", flipped=flipped),
        lines=tuple(_line(each, (slots or {}).get(each.label, slot)) for slot, each in enumerate(shown, start=1)),
        level=0.0,
        level_title="baseline",
    )


def shared_slots(every: Sequence[Ladder]) -> dict[str, int]:
    """Return the colour of each set in all ladders; nothing where there are more sets than colours."""
    labels = list(dict.fromkeys(each.label for each in every))
    return {label: slot for slot, label in enumerate(labels, start=1)} if len(labels) <= SLOTS else {}


def _last(each: Ladder) -> float:
    found = [rung.difference.mean for rung in each.rungs if rung.difference and rung.difference.mean is not None]
    return found[-1] if found else 0.0


def _line(each: Ladder, slot: int) -> Line:
    rungs = [(r.amount, r.difference) for r in each.rungs if r.difference and r.difference.mean is not None]
    means = tuple(found.mean or 0.0 for _, found in rungs)
    ends = [(found.low, found.high) for _, found in rungs]
    known = all(low is not None and high is not None for low, high in ends)
    return Line(
        each.label,
        slot,
        tuple(amount for amount, _ in rungs),
        means,
        tuple(low or 0.0 for low, _ in ends) if known else (),
        tuple(high or 0.0 for _, high in ends) if known else (),
    )
