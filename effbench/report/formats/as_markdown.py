"""Tables as GitHub-flavoured Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

from effbench.report.console import visible
from effbench.report.said_once import Block, said_once
from effbench.report.table import Column, Row, Table

#: What GitHub's Markdown or HTML would act on in a cell. An underscore inside a word is no mark-up there.
_ACTIVE = re.compile(r"([\\|*`<~]|(?<!\w)_|_(?!\w)|\](?=\()|&(?=#?\w+;))")


def to_markdown(tables: Sequence[Table]) -> str:
    """Write tables with a heading each; names appear as they are, whatever characters they have."""
    said = said_once(tables)
    sections = [_section(table, blocks) for table, blocks in zip(tables, said.below, strict=True)]
    return "\n\n".join([*sections, *(_lines(block, "### ") for block in said.at_the_end)])


def _section(table: Table, blocks: Sequence[Block]) -> str:
    caption = _escaped(f"{table.caption[:1].upper()}{table.caption[1:]}.")
    return "\n\n".join([f"### {_escaped(table.title)}", caption, _grid(table), *map(_lines, blocks)])


def _lines(block: Block, mark: str = "") -> str:
    title = [f"{mark}{block.title.capitalize()}{'' if mark else ':'}"] if block.title else []
    return "\n\n".join([*title, "\n".join(f"- {_escaped(text)}" for text in block.lines)])


def _grid(table: Table) -> str:
    """Return the table itself; cells are text as it stands, so that an id such as 1E10 is no number."""
    from tabulate import tabulate

    return tabulate(
        [_cells(row, table.columns) for row in table.rows],
        headers=[_escaped(column.title) for column in table.columns],
        tablefmt="pipe",
        disable_numparse=True,
        colalign=["left" if column.align == "left" else "right" for column in table.columns],
    )


def _cells(row: Row, columns: Sequence[Column]) -> list[str]:
    """Return the cells of a row; the best are bold."""
    cells = [_escaped(cell) for cell in row.cells]
    if not row.best:
        return cells
    bold = {"technique", "mean", "verdict"}
    return [f"**{cell}**" if column.key in bold else cell for cell, column in zip(cells, columns, strict=True)]


def _escaped(text: str) -> str:
    return "<br>".join(_ACTIVE.sub(r"\\\1", visible(line)) for line in text.splitlines())
