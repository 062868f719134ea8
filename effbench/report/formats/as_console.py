"""Tables for a console: aligned by display width, coloured where there are colours."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from effbench.report.console import Screen, display_width, pad
from effbench.report.numbers import MINUS
from effbench.report.said_once import Block, said_once
from effbench.report.table import Column, Kind, Row, Table, without

_GAP = "  "
_VERDICTS: dict[str, tuple[str, ...]] = {
    "better": ("green",),
    "worse": ("red",),
    "breaks": ("magenta",),
    "incomplete": ("yellow",),
    "no evidence": ("dim",),
    "skipped": ("dim",),
}
_REMARKS: dict[Kind, str] = {"problem": "magenta", "caveat": "yellow", "note": "dim"}
_NUMBER = re.compile(rf"([+\-{MINUS}]?\d+)(\.\d+)?(e\S+)?(?= |$)")
_WIDEST_TEXT = 110  # columns of the remarks
_LABELS = (32, 16)  # how narrow labels may get before columns are left out, and after
_RULE = "\N{BOX DRAWINGS LIGHT HORIZONTAL}"


def to_console(tables: Sequence[Table], screen: Screen | None = None) -> str:
    """Write tables for a console, by default standard output as it is.

    Where the console is too narrow, optional columns are left out of all tables, and a line at the end says so. What
    is to be said of all tables is said once, below the last.
    """
    screen = Screen.of() if screen is None else screen
    left_out = _too_much(tables, screen)
    shown = [without(table, left_out) for table in tables]
    said = said_once(shown)
    parts = ["\n".join(_lines(table, blocks, screen)) for table, blocks in zip(shown, said.below, strict=True)]
    if left_out:
        hint = f"No room for: {', '.join(left_out.values())}. Widen the console, or write a file."
        parts.append("\n".join(_wrapped(hint, screen, "dim")))
    if said.at_the_end:
        parts.append("\n".join(_remarks(said.at_the_end, screen)[1:]))
    return "\n\n\n".join(parts)


def _too_much(tables: Sequence[Table], screen: Screen) -> dict[str, str]:
    """Return the columns, key -> title, for which some table has no room."""
    fitted = [{column.key for column in _fitted(table, screen)[0]} for table in tables]
    gone = {c.key for table, kept in zip(tables, fitted, strict=True) for c in table.columns if c.key not in kept}
    return {column.key: column.title for table in tables for column in table.columns if column.key in gone}


def _lines(table: Table, blocks: Sequence[Block], screen: Screen) -> list[str]:
    shown, columns = _fitted(table, screen)
    titles, *body = zip(*columns, strict=True)
    title, caption = screen.show(table.title), screen.show(table.caption)
    lines = [
        f"{screen.paint(title, 'bold', 'cyan')}  {screen.paint(caption, 'dim')}",
        "",
        _GAP.join(screen.paint(each, "bold") for each in titles).rstrip(),
        screen.paint(screen.show(_RULE) * _width(columns), "dim"),
    ]
    for row, cells in zip(table.rows, body, strict=True):
        label, *more = cells[0].split("\n")
        painted = [_painted(*pair, row, screen) for pair in zip((label, *cells[1:]), shown, strict=True)]
        lines.append(_GAP.join(painted).rstrip())
        lines += [_painted(rest, shown[0], row, screen).rstrip() for rest in more]
    return lines + _remarks(blocks, screen)


def _fitted(table: Table, screen: Screen) -> tuple[list[Column], list[list[str]]]:
    """Return the columns that have room, and the cells of each, the title first, all of one width.

    Long labels are broken before a `+`; where that is not enough, optional columns go, the last one first.
    """
    shown = list(table.columns)
    texts = [[column.title, *(row.cells[i] for row in table.rows)] for i, column in enumerate(shown)]
    cells = [_aligned([screen.show(text) for text in found], shown[i]) for i, found in enumerate(texts)]
    if screen.width is None:
        return shown, cells
    for narrowest in _LABELS:
        over = _width(cells) - screen.width
        room = max(narrowest, display_width(cells[0][0]) - over)
        if over > 0:
            whole = [screen.show(text) for text in texts[0]]
            cells[0] = _aligned([_broken(label, room) for label in whole], shown[0])
        while _width(cells) > screen.width and shown[-1].optional:
            del shown[-1], cells[-1]
    return shown, cells


def _width(cells: Sequence[Sequence[str]]) -> int:
    """Return how many columns of the console the columns of a table need."""
    return sum(display_width(column[0]) for column in cells) + len(_GAP) * (len(cells) - 1)


def _broken(label: str, width: int) -> str:
    """Break a label before a `+` wherever it would get wider than `width`."""
    lines = [""]
    for part in label.replace("+", "\n+").split("\n"):
        if lines[-1] and display_width(lines[-1] + part) > width:
            lines.append("  " + part)
        else:
            lines[-1] += part
    return "\n".join(lines)


def _aligned(cells: list[str], column: Column) -> list[str]:
    """Return cells, the title first, all of one width."""
    title, *body = cells
    if column.align == "decimal":
        heads = [_head(cell) for cell in body]
        most = max(heads, default=0)
        body = [" " * (most - head if head else 0) + cell for head, cell in zip(heads, body, strict=True)]
    broken = [cell.split("\n") for cell in [title, *body]]
    width = max(display_width(line) for lines in broken for line in lines)
    return ["\n".join(pad(line, width, right=column.align == "right") for line in lines) for lines in broken]


def _head(cell: str) -> int:
    """Return how many characters of a number stand before its decimal point, or 0 where there is no number."""
    found = _NUMBER.match(cell)
    return found.end(1) if found else 0


def _painted(cell: str, column: Column, row: Row, screen: Screen) -> str:
    if row.verdict == "skipped" or row.is_under_floor:
        return screen.paint(cell, "dim")
    bold = ("bold",) if row.best else ()
    if column.key == "verdict":
        return screen.paint(cell, *bold, *_VERDICTS.get(row.verdict, ()))
    return screen.paint(cell, *bold) if column.key in {"technique", "mean"} else cell


def _remarks(blocks: Sequence[Block], screen: Screen) -> list[str]:
    lines: list[str] = []
    for block in blocks:
        lines += ["", *([screen.paint(block.title, "bold")] if block.title else [])]
        for text in block.lines:
            lines += _wrapped(text, screen, _REMARKS[block.kind], indent="  " if block.title else "")
    return lines


def _wrapped(text: str, screen: Screen, style: str, indent: str = "") -> list[str]:
    width = min(_WIDEST_TEXT, screen.width or _WIDEST_TEXT)
    wrapped = textwrap.wrap(
        screen.show(text),
        width,
        initial_indent=indent,
        subsequent_indent=2 * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [screen.paint(line, style) for line in wrapped]
