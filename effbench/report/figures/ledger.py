"""Where the time of a trial went: the ledgers' lines as stacked bars, one a set."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean

from effbench.analysis.comparison import Comparison
from effbench.report.figures.figure import Axis, Stacks

#: Lines of a ledger, in the order in which they are stacked; what a plugin adds comes last.
LINES = ("forward_backward", "update", "data", "extra", "setup", "evaluation", "metering", "checkpoint", "idle")

#: Line -> how a person calls it, where that is not its name.
TITLES = {"forward_backward": "forward and backward", "extra": "technique's own work", "setup": "set-up"}

MOST = 24  # bars


def title(part: str) -> str:
    """Return how a person calls a line of the ledger."""
    return TITLES.get(part, part.replace("_", " "))


def _is_known(lines: Mapping[str, float]) -> bool:
    return bool(lines) and all(map(math.isfinite, lines.values()))


def ledger(comparison: Comparison) -> Stacks:
    """Return the mean seconds a trial of each set, line by line; sets without a finished trial are left out."""
    rows = []
    found = {name for record in comparison.group.records for name in record.ledger}
    parts = tuple(name for name in (*LINES, *sorted(found - set(LINES))) if name in found)
    for each in comparison.results:
        ledgers = [record.ledger for record in each.records if record.status == "ok" and _is_known(record.ledger)]
        if ledgers:
            rows.append((each.label, tuple(fmean(one.get(part, 0.0) for one in ledgers) for part in parts)))
    return Stacks(
        title=f"{comparison.group.workload}, {comparison.group.budget}",
        about="Mean wall seconds of a trial, by what they were spent on. Only training is on the budget's clock.",
        x=Axis("wall seconds a trial"),
        parts=parts,
        rows=tuple(rows[:MOST]),
        left_out=max(0, len(rows) - MOST),
    )
