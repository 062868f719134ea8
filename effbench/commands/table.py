"""effbench table: compare what was run. Imports torch only where a plugin's format is asked for."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from effbench.analysis.noise import read_aa
from effbench.commands.plugins_of import plugins_of
from effbench.errors import EffbenchError, UnknownName
from effbench.records import Record
from effbench.report.console import emit
from effbench.report.files import write as write_file
from effbench.report.formats import Format, formats
from effbench.report.layouts import laid_out
from effbench.report.sources import said_in, technique_sources, with_said
from effbench.report.tables import comparison_table
from effbench.sets import parse_set
from effbench.store import read_records

RESULTS = Path("results")  # where `run` puts the folders of suites


def run(arguments: argparse.Namespace) -> int:
    """Write the tables of all records in the folders."""
    write = format_of(arguments)
    folders = arguments.results or [newest(RESULTS)]
    records = records_in(folders)
    against = parse_set(arguments.against) if arguments.against else None
    tables = laid_out(
        comparison_table(records, arguments.metric, arguments.workload, aa=read_aa(folders), against=against),
        by=arguments.by,
        columns=[key.strip() for key in (arguments.columns or "").split(",") if key.strip()],
        sort=arguments.sort or "",
        style=arguments.style,
        leaves=leaves_of(arguments.plugin, folders) if arguments.by == "leaf" else None,
    )
    text = write(tables)
    if arguments.file:
        write_file(Path(arguments.file), text.rstrip("\n") + "\n")
    else:
        emit(text.rstrip("\n"))
    return 0


def records_in(folders: Sequence[str | Path]) -> list[Record]:
    """Return the records that count, of which there are some.

    Raises:
        EffbenchError: there are none, or a folder cannot be read.
    """
    records = read_records(folders)
    if not records:
        raise EffbenchError(f"there are no records in {', '.join(map(str, folders))}; run a suite into it first")
    return records


def leaves_of(named: Sequence[str], folders: Iterable[str | Path] = ()) -> dict[str, str]:
    """Return the leaf of each technique that results folders tell of, or whose source is on this machine."""
    cards = with_said(technique_sources(named), said_in(folders))
    return {name: card.leaf for name, card in cards.items()}


def format_of(arguments: argparse.Namespace) -> Format:
    """Return the format by name, one that a plugin offers too; raise UnknownName where there is none."""
    known = formats()
    if arguments.format not in known or arguments.plugin:
        known = {**known, **plugins_of(arguments).offers["effbench_table_formats"]}
    if arguments.format not in known:
        raise UnknownName("format", arguments.format, known, where="--format: ")
    return known[arguments.format]


def newest(results: Path) -> Path:
    """Return the folder below `results` whose records were written last.

    Raises:
        EffbenchError: there is none.
    """
    files = [file for file in results.glob("*/records.jsonl") if file.stat().st_size]
    if not files:
        raise EffbenchError(f"there are no results below {results.resolve()}; run a suite first, or name a folder")
    return max(files, key=lambda file: file.stat().st_mtime).parent
