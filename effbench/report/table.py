"""A table as plain data: text for people, values for programs, remarks below."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Value = str | float | int | bool | None


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

    kind: Literal["problem", "caveat", "note"]  # what did not run; what to mistrust; how to read it
    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """Sets of techniques on one workload under one budget."""

    title: str  # "mnist1d_cnn, 5s reference"
    caption: str  # "test accuracy, 5 seeds"
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    remarks: tuple[Remark, ...] = ()
    statement: str = ""  # what a caption in a paper states: n, budget, clock, hardware
