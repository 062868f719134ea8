"""Lay words out in columns, as wide as the console is."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from effbench.report.console import Screen, display_width, pad

_GAP = 2  # columns between columns
_NARROWEST = 24  # of the last column; a console without room for it breaks lines itself


def columns(rows: Iterable[Sequence[str]], screen: Screen, *, title: Sequence[str] = (), indent: int = 0) -> list[str]:
    """Return one or more lines for each row: all columns aligned, the last one wrapped where the console ends.

    title: names of the columns, in bold.
    """
    shown = [[screen.show(cell) for cell in row] for row in ([title] if title else []) + list(rows)]
    if not shown:
        return []
    widths = [max(display_width(row[i]) for row in shown) + _GAP for i in range(len(shown[0]) - 1)]
    start = indent + sum(widths)
    room = None if screen.width is None else max(_NARROWEST, screen.width - start)
    lines = []
    for number, row in enumerate(shown):
        first, *rest = wrapped(row[-1], room)
        cells = [pad(cell, width) for cell, width in zip(row, widths, strict=False)]
        line = " " * indent + "".join(cells) + first
        lines.append(screen.paint(line.rstrip(), "bold") if title and number == 0 else line.rstrip())
        lines += [" " * start + more for more in rest]
    return lines


def paragraph(text: str, screen: Screen, indent: int = 0) -> list[str]:
    """Return text in lines as wide as the console."""
    return [" " * indent + line for line in wrapped(screen.show(text), screen.width and screen.width - indent)]


def wrapped(text: str, width: int | None) -> list[str]:
    """Return text in lines of at most so many columns; without a width, in one."""
    if width is None:
        return [text]
    return textwrap.wrap(text, max(_NARROWEST, width), break_long_words=False, break_on_hyphens=False) or [""]
