"""effbench plot: draw a figure for a paper. Never imports torch."""

from __future__ import annotations

import argparse
from pathlib import Path

from effbench.analysis.comparison import compare
from effbench.commands.table import RESULTS, newest, records_in
from effbench.report.console import emit
from effbench.report.figures.kinds import KINDS
from effbench.report.paper import save


def run(arguments: argparse.Namespace) -> int:
    """Draw the figures of one kind into one file."""
    folders = arguments.results or [newest(RESULTS)]
    records = records_in(folders)
    figures = KINDS[arguments.kind](compare(records, arguments.metric, arguments.workload))
    file = Path(arguments.file or f"{arguments.kind}.pdf")
    save(figures, file)
    emit(f"{file}: {len(figures)} figure{'s' if len(figures) != 1 else ''}. {figures[0].about}")
    return 0
