"""The formats of tables: name -> a function from a list of tables to text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from effbench.report.formats.as_console import to_console
from effbench.report.formats.as_csv import to_csv
from effbench.report.formats.as_html import to_html
from effbench.report.formats.as_json import to_json
from effbench.report.formats.as_latex import to_latex
from effbench.report.formats.as_markdown import to_markdown
from effbench.report.table import Table

Format = Callable[[Sequence[Table]], str]


def formats() -> dict[str, Format]:
    """Return the built-in formats; a caller adds those of the plugins."""
    return {
        "console": to_console,
        "csv": to_csv,
        "html": to_html,
        "json": to_json,
        "latex": to_latex,
        "markdown": to_markdown,
    }
