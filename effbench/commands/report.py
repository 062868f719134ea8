"""effbench report: write one HTML page about results, which needs no network. Never imports torch."""

from __future__ import annotations

import argparse
from pathlib import Path

from effbench import collecting
from effbench.commands.table import RESULTS, newest, records_in
from effbench.report.console import emit
from effbench.report.files import write
from effbench.report.html.page import report
from effbench.report.sources import technique_sources
from effbench.store import Store

NAME = "report.html"


def run(arguments: argparse.Namespace) -> int:
    """Write the page of all records in the folders."""
    with collecting.put_off(for_good=True):
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    folders = arguments.results or [str(newest(RESULTS))]
    records = records_in(folders)
    kept = [Store(folder).read_json("suite") for folder in folders if Path(folder).is_dir()]
    page = report(
        records,
        sources=technique_sources(arguments.plugin),
        suites=[suite for suite in kept if isinstance(suite, dict)],
        folders=folders,
        title=arguments.title or "",
    )
    file = Path(arguments.file or NAME)
    write(file, page)
    emit(f"{file}: {len(records)} records, {len(page.encode(errors='backslashreplace')) / 2**20:.1f} MiB")
    return 0
