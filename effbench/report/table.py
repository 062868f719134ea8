"""A table as plain data: text for people, values for programs, remarks below."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

Value = str | float | int | bool | None
Kind = Literal["problem", "caveat", "note"]  # of a remark: what did not run; what to mistrust; how to read it


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title with the unit in it, and how its cells stand."""

    key: str  # "technique", "n", "mean", "difference", "verdict", ...
    title: str
    align: Literal["left", "right", "decimal"] = "left"
    optional: bool = False  # may be left out where there is no room


@dataclass(frozen=True, slots=True)
class Row:
    """A set of techniques: one text a column, and the numbers behind them in full precision."""

    cells: tuple[str, ...]
    values: Mapping[str, Value]  # keys are the same in all rows of all tables, units in their names
    verdict: str = ""  # "" for the baseline
    best: bool = False
    is_under_floor: bool = False  # its difference is no larger than the baseline's from itself


@dataclass(frozen=True, slots=True)
class Remark:
    """A line below a table."""

    kind: Kind
    text: str
    about: str = ""  # what a note explains, such as "target": tables that explain it alike share the note
    column: str = ""  # key of the column without which a note has nothing to explain
    sets: tuple[str, ...] = ()  # labels of the sets that a problem is about


@dataclass(frozen=True, slots=True)
class Table:
    """Sets of techniques on one workload under one budget."""

    title: str  # "mnist1d_cnn, 5s reference"
    caption: str  # "test accuracy, more is better, 5 seeds"
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    remarks: tuple[Remark, ...] = ()
    statement: str = ""  # what a caption in a paper states: n, budget, clock, hardware


def without(table: Table, keys: Collection[str]) -> Table:
    """Return a table without the columns of these keys, and without what explains them."""
    kept = [place for place, column in enumerate(table.columns) if column.key not in keys]
    return dataclasses.replace(
        table,
        columns=tuple(table.columns[place] for place in kept),
        rows=tuple(dataclasses.replace(row, cells=tuple(row.cells[place] for place in kept)) for row in table.rows),
        remarks=tuple(remark for remark in table.remarks if remark.column not in keys),
    )
