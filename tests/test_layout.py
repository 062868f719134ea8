"""Columns are aligned, and fit the screen."""

from __future__ import annotations

from effbench.commands import layout
from effbench.report.console import Screen, display_width


def test_columns_are_aligned_and_the_last_one_is_wrapped() -> None:
    rows = [("a", "1", "short"), ("long_name", "22", "word " * 12), ("数", "3", "wide")]
    lines = layout.columns(rows, Screen(width=50), title=("name", "n", "what"), indent=2)
    assert lines == [
        "  name       n   what",
        "  a          1   short",
        "  long_name  22  word word word word word word",
        "                 word word word word word word",
        "  数         3   wide",
    ]
    assert max(map(display_width, lines)) <= 50


def test_pipes_get_one_line_a_row() -> None:
    lines = layout.columns([("a", "word " * 50)], Screen())
    assert len(lines) == 1
    assert layout.columns([], Screen()) == []
    assert layout.paragraph("word " * 50, Screen(width=40), indent=4)[1] == "    word word word word word word word"


def test_titles_are_bold_where_there_are_colours() -> None:
    assert layout.columns([("a", "b")], Screen(colour=True), title=("x", "y"))[0] == "\033[1mx  y\033[0m"
