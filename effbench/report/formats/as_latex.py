"""Tables as LaTeX with booktabs, numbers aligned by siunitx, and captions that state how they were made."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass

from effbench.report.console import visible
from effbench.report.numbers import MINUS
from effbench.report.said_once import Block, said_once
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
_NEEDS = r"% needs \usepackage{booktabs,graphicx,siunitx}"
_IN_CAPTIONS = {"mean", "budget", "made on"}  # what notes explain and the statement of a table says too
_FITTED = r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{"  # only where it is too wide

#: A number of ours: sign, digits before and after the point, power of ten; then what follows it.
_NUMBER = re.compile(rf"(?P<head>[+\-{MINUS}]?\d+(?:\.\d+)?(?:e[+\-{MINUS}]?\d+)?)(?: (?P<tail>.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Field:
    """A column of the LaTeX table: how it is aligned, its title, and its cells, all LaTeX already."""

    kind: str
    title: str
    cells: tuple[str, ...]


def to_latex(tables: Sequence[Table]) -> str:
    r"""Write each table as a floating `table`, for a document with \usepackage{booktabs,graphicx,siunitx}.

    Names in other than Latin letters need XeLaTeX or LuaLaTeX, and a font that has them.
    """
    said = said_once([_without_what_captions_say(table) for table in tables])
    floats = [_float(table, blocks) for table, blocks in zip(tables, said.below, strict=True)]
    return "\n\n".join([_NEEDS, *floats, *map(_paragraph, said.at_the_end)])


def _without_what_captions_say(table: Table) -> Table:
    kept = [remark for remark in table.remarks if not (table.statement and remark.about in _IN_CAPTIONS)]
    return dataclasses.replace(table, remarks=tuple(kept))


def _paragraph(block: Block) -> str:
    """Return remarks on all tables as a small paragraph, for the text that the tables float in."""
    lines = "\n".join(f"  {line}" for line in _sentences(block))
    return f"{{\\footnotesize\\noindent\n  {escaped(block.title.capitalize())}:\n{lines}\\par}}"


def _sentences(block: Block) -> list[str]:
    return [f"{escaped(text)}." for text in block.lines]


def _float(table: Table, blocks: Sequence[Block]) -> str:
    fields = [field for i, column in enumerate(table.columns) for field in _fields(table, column, i)]
    head = [f"{{{field.title}}}" if "S[" in field.kind else field.title for field in fields]
    rows = [_line([field.cells[i] for field in fields]) for i in range(len(table.rows))]
    lines = [
        r"\begin{table}",
        r"  \centering",
        f"  \\caption{{{escaped(table.statement or f'{table.title}: {table.caption}.')}}}",
        f"  \\label{{tab:{re.sub(r'[^A-Za-z0-9.]+', '-', table.title).strip('-')}}}",
        r"  \footnotesize\setlength{\tabcolsep}{4pt}\sisetup{retain-explicit-plus}",
        f"{_FITTED}\\begin{{tabular}}{{{''.join(field.kind for field in fields)}}}",
        r"    \toprule",
        _line(head),
        r"    \midrule",
        *rows,
        r"    \bottomrule",
        r"  \end{tabular}}",
        *(f"  \\par\\footnotesize {line}" for block in blocks for line in _sentences(block)),
        r"\end{table}",
    ]
    return "\n".join(lines)


def _fields(table: Table, column: Column, place: int) -> list[_Field]:
    """Return the columns that a column becomes: numbers by themselves, and what stands beside them in a second one."""
    texts = [row.cells[place] for row in table.rows]
    found = [_NUMBER.fullmatch(text) for text in texts] if column.align == "decimal" else []
    if not any(found):
        cells = tuple(_marked(escaped(text), row, column) for text, row in zip(texts, table.rows, strict=True))
        return [_Field("l" if column.align == "left" else "r", escaped(column.title), cells)]
    pairs = [
        (match["head"], match["tail"] or "") if match else (text, "") for match, text in zip(found, texts, strict=True)
    ]
    numbers = [head.replace(MINUS, "-") for (head, _), match in zip(pairs, found, strict=True) if match]
    heads = tuple(
        head.replace(MINUS, "-") if match else f"{{{escaped(head)}}}"
        for (head, _), match in zip(pairs, found, strict=True)
    )
    fields = [_Field(f"S[table-format={_shape(numbers)}]", escaped(column.title), heads)]
    tails = [tail for _, tail in pairs]
    if any(tails):
        fields.append(_tail(tails))
    return fields


def _tail(tails: Sequence[str]) -> _Field:
    """Return the column beside a number: its half-width, its interval, or a remark."""
    plain = [tail.removeprefix("± ").replace(MINUS, "-") for tail in tails]
    numbers = [tail for tail in plain if tail]
    if all(re.fullmatch(r"\d+(\.\d+)?(e-?\d+)?", number) for number in numbers):
        return _Field(f"@{{\\,}}S[table-format={_shape(numbers)}]", r"$\pm$", tuple(plain))
    title = "interval" if all(number.startswith("[") for number in numbers) else ""
    return _Field("r" if title else "l", title, tuple(map(escaped, tails)))


def _shape(numbers: Sequence[str]) -> str:
    """Return siunitx's format of a column: a sign if there is one, digits before the point, digits after it."""
    parts = [re.fullmatch(r"([+-]?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?", number) for number in numbers]
    found = [part for part in parts if part]
    sign = "+" if any(part[1] for part in found) else ""
    whole = max(len(part[2]) for part in found)
    decimals = max(len(part[3] or "") for part in found)
    power = max(len((part[4] or "").lstrip("+-")) for part in found)
    exponent = f"e{'-' if any('-' in (part[4] or '') for part in found) else ''}{power}" if power else ""
    return f"{sign}{whole}.{decimals}{exponent}"


def _marked(cell: str, row: Row, column: Column) -> str:
    return f"\\textbf{{{cell}}}" if row.best and column.key in {"technique", "verdict"} else cell


def _line(cells: Sequence[str]) -> str:
    return f"    {' & '.join(cells)} \\\\"


def escaped(text: str) -> str:
    """Return text in which nothing is a command of LaTeX."""
    return "".join(_ESCAPES.get(character, character) for character in visible(text))
