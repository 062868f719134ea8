"""Tables as one HTML page that needs no network: light and dark, each difference drawn with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from effbench.report.console import visible
from effbench.report.formats.page_style import STYLE
from effbench.report.said_once import Block, said_once
from effbench.report.table import Column, Row, Table

_HALF_WIDTH = 60  # of a drawn difference, in units of the drawing


def to_html(tables: Sequence[Table]) -> str:
    """Write a page with all tables; whatever a name contains is text."""
    said = said_once(tables)
    sections = [_section(table, blocks) for table, blocks in zip(tables, said.below, strict=True)]
    of_all = [f"<section>\n{_remarks(said.at_the_end)}</section>"] if said.at_the_end else []
    body = "\n".join([*sections, *of_all])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>effbench</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>"
    )


def _section(table: Table, blocks: Sequence[Block]) -> str:
    reach = _reach(table.rows)
    head = "".join(f'<th class="{column.align}">{_text(column.title)}</th>' for column in table.columns)
    rows = "\n".join(_row(row, table.columns, reach) for row in table.rows)
    return (
        f'<section>\n<h2>{_text(table.title)}</h2>\n<div class="scroll"><table>\n'
        f"<caption>{_text(table.caption)}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n"
        f"</table></div>\n{_remarks(blocks)}</section>"
    )


def _row(row: Row, columns: Sequence[Column], reach: float) -> str:
    name = row.verdict.replace(" ", "-") or "baseline"
    cells = []
    for text, column in zip(row.cells, columns, strict=True):
        inside = _text(text)
        if column.key == "difference":
            inside = f'<span class="interval">{inside}</span>{_drawn(row, reach)}'
        elif column.key == "technique":
            inside = inside.replace("+", "<wbr>+")
        elif column.key == "verdict" and row.verdict:
            inside = f'<span class="verdict">{inside}</span>'
        cells.append(f'<td class="{column.align} {column.key}">{inside}</td>')
    kinds = " ".join([name, *["best"] * row.best, *["under-floor"] * row.is_under_floor])
    return f'<tr class="{kinds}">{"".join(cells)}</tr>'


def _reach(rows: Sequence[Row]) -> float:
    """Return which difference is drawn as wide as there is room; incomplete sets have no say if there are others."""
    complete = [row for row in rows if row.values["n"] == row.values["seeds"]]
    for some in (complete, rows):
        if found := [abs(end) for row in some for end in _ends(row)]:
            return max(found)
    return 0.0


def _ends(row: Row) -> list[float]:
    found = (row.values.get(key) for key in ("difference_low", "difference", "difference_high"))
    return [value for value in found if isinstance(value, float)]


def _drawn(row: Row, reach: float) -> str:
    """Draw a difference as a dot on its interval, with a line at zero; what is too wide is cut off."""
    ends = _ends(row)
    if not ends or reach == 0.0:
        return ""
    edge = _HALF_WIDTH + 6
    scaled = [round(min(edge, max(-edge, _HALF_WIDTH * end / reach)), 1) for end in ends]
    return (
        f'<svg viewBox="{-edge} -8 {2 * edge} 16" width="{2 * edge}" height="16" aria-hidden="true">'
        f'<line class="zero" x1="0" y1="-8" x2="0" y2="8"/>'
        f'<line x1="{scaled[0]}" y1="0" x2="{scaled[-1]}" y2="0"/>'
        f'<circle cx="{scaled[len(scaled) // 2]}" cy="0" r="3.5"/></svg>'
    )


def _remarks(blocks: Sequence[Block]) -> str:
    parts = []
    for block in blocks:
        items = "".join(f"<li>{_text(text)}</li>" for text in block.lines)
        title = f"<h3>{block.title.capitalize()}</h3>" if block.title else ""
        parts.append(f'<div class="{block.kind}">{title}<ul>{items}</ul></div>\n')
    return "".join(parts)


def _text(text: str) -> str:
    return "<br>".join(escape(visible(line)) for line in text.splitlines())
