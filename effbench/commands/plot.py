"""effbench plot: draw a figure for a paper. Never imports torch."""

from __future__ import annotations

import argparse
from pathlib import Path

from effbench.analysis.comparison import compare
from effbench.commands.table import RESULTS, newest
from effbench.errors import EffbenchError
from effbench.report.console import emit
from effbench.report.figures.kinds import KINDS
from effbench.report.paper import save
from effbench.store import read_records


def run(arguments: argparse.Namespace) -> int:
    """Draw the figures of one kind into one file."""
    folders = arguments.results or [newest(RESULTS)]
    records = read_records(folders)
    if not records:
        raise EffbenchError(f"there are no records in {', '.join(map(str, folders))}; run a suite into it first")
    figures = KINDS[arguments.kind](compare(records, arguments.metric, arguments.workload))
    file = Path(arguments.file or f"{arguments.kind}.pdf")
    save(figures, file)
    emit(f"{file}: {len(figures)} figure{'s' if len(figures) != 1 else ''}. {figures[0].about}")
    return 0
