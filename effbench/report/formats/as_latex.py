"""Tables as LaTeX with booktabs."""

from __future__ import annotations

from collections.abc import Sequence

from effbench.report.console import visible
from effbench.report.table import Column, Row, Table

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\symbol{34}",
    "[": "{[}",  # after \\ it would begin an optional argument
    "]": "{]}",
    "\N{PLUS-MINUS SIGN}": r"$\pm$",
    "\N{MINUS SIGN}": "$-$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{GREEK CAPITAL LETTER DELTA}": r"$\Delta$",
    "\N{BLACK STAR}": r"$\star$",
    "\N{EM DASH}": "---",
}


def to_latex(tables: Sequence[Table]) -> str:
    r"""Write each table as a floating `table`, for a document with \usepackage{booktabs}.

    Names in other than Latin letters need XeLaTeX or LuaLaTeX, and a font that has them.
    """
    return "\n\n".join(["% needs \\usepackage{booktabs}", *map(_float, tables)])


def _float(table: Table) -> str:
    alignment = "".join("l" if column.align == "left" else "r" for column in table.columns)
    lines = [
        r"\begin{table}",
        r"  \centering",
        f"  \\caption{{{escaped(f'{table.title}: {table.caption}')}.}}",
        r"  \footnotesize\setlength{\tabcolsep}{4pt}",
        f"  \\begin{{tabular}}{{{alignment}}}",
        r"    \toprule",
        _line([escaped(column.title) for column in table.columns]),
        r"    \midrule",
        *(_line(_cells(row, table.columns)) for row in table.rows),
        r"    \bottomrule",
        r"  \end{tabular}",
        *(f"  \\par\\footnotesize {escaped(remark.text)}." for remark in table.remarks),
        r"\end{table}",
    ]
    return "\n".join(lines)


def _cells(row: Row, columns: Sequence[Column]) -> list[str]:
    """Return the cells of a row; the best are bold."""
    cells = [escaped(cell) for cell in row.cells]
    if not row.best:
        return cells
    bold = {"technique", "verdict"}
    return [f"\\textbf{{{cell}}}" if column.key in bold else cell for cell, column in zip(cells, columns, strict=True)]


def _line(cells: Sequence[str]) -> str:
    return f"    {' & '.join(cells)} \\\\"


def escaped(text: str) -> str:
    """Return text in which nothing is a command of LaTeX."""
    return "".join(_ESCAPES.get(character, character) for character in visible(text))
