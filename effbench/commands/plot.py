"""effbench plot: draw a figure for a paper. Never imports torch."""

from __future__ import annotations

import argparse
from pathlib import Path

from effbench.analysis.comparison import compare
from effbench.commands.table import RESULTS, newest, records_in
from effbench.report.abbreviations import abbreviated
from effbench.report.console import emit
from effbench.report.figures.kinds import KINDS
from effbench.report.paper import save
from effbench.report.words import counted


def run(arguments: argparse.Namespace) -> int:
    """Draw the figures of one kind into one file."""
    folders = arguments.results or [newest(RESULTS)]
    records = records_in(folders)
    comparisons, explained = abbreviated(compare(records, arguments.metric, arguments.workload))
    figures = KINDS[arguments.kind](comparisons)
    file = Path(arguments.file or f"{arguments.kind}.pdf")
    save(figures, file)
    emit("\n".join([f"{file}: {counted(len(figures), 'figure')}. {figures[0].about}", *explained]))
    return 0
