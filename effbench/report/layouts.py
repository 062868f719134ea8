"""Other looks at the same tables: grouped by workload, leaf or budget; chosen columns; sorted; short or for papers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

from effbench.errors import UnknownName
from effbench.report import numbers
from effbench.report.abbreviations import ABOUT as NAMES
from effbench.report.said_once import merged, of_all
from effbench.report.table import Column, Remark, Row, Table, Value, without
from effbench.taxonomy import LEAVES

BY: tuple[str, ...] = ("technique", "workload", "leaf", "budget")
STYLES: tuple[str, ...] = ("compact", "full", "paper")

#: style -> its columns; None: all that have something to show.
_COLUMNS: dict[str, tuple[str, ...] | None] = {
    "compact": ("leaf", "technique", "workload", "budget", "metric", "mean", "difference", "verdict"),
    "full": None,
    "paper": ("leaf", "technique", "workload", "budget", "metric", "n", "mean", "difference", "p_holm"),
}
#: style -> kinds of remarks that it keeps.
_REMARKS: dict[str, set[str]] = {"compact": {"problem"}, "full": {"problem", "caveat", "note"}, "paper": {"problem"}}


def laid_out(
    tables: Sequence[Table],
    *,
    by: str = "technique",
    columns: Sequence[str] = (),
    sort: str = "",
    style: str = "full",
    leaves: Mapping[str, str] | None = None,
) -> list[Table]:
    """Return tables in another layout; the numbers stay as they are.

    by: "technique": a table for each workload and budget, as they come. "workload": a table for each set, a row a
        workload. "budget": a table for each workload, and each set at all its budgets. "leaf": as they come, in the
        order of the survey.
    columns: keys of columns, or of the numbers behind the rows, such as `p_holm`.
    sort: a key; a minus in front sorts downwards. The baseline stays first, and what is not known comes last.
    leaves: technique -> "branch/leaf", for `by="leaf"`.

    Raises:
        UnknownName: there is no such column.
    """
    found = _GROUPED[by](tables, leaves or {})
    wanted = tuple(columns) or _COLUMNS[style]
    if sort:
        found = [_sorted(table, sort) for table in found]
    if wanted is not None:
        found = [_chosen(table, wanted, strict=bool(columns)) for table in found]
    return [dataclasses.replace(table, remarks=_kept(table.remarks, style)) for table in found]


def _kept(remarks: Sequence[Remark], style: str) -> tuple[Remark, ...]:
    return tuple(remark for remark in remarks if remark.kind in _REMARKS[style] or remark.about == NAMES)


def _as_they_come(tables: Sequence[Table], leaves: Mapping[str, str]) -> list[Table]:
    del leaves
    return list(tables)


def _by_leaf(tables: Sequence[Table], leaves: Mapping[str, str]) -> list[Table]:
    order = {leaf: position for position, leaf in enumerate(LEAVES)}

    def leaf(row: Row) -> str:
        techniques = str(row.values["technique"]).split("+")
        found = dict.fromkeys(leaves.get(name.partition("(")[0], "") for name in techniques)
        return " + ".join(found) if row.values["techniques"] != "{}" else ""

    def key(row: Row) -> tuple[bool, int]:
        return _is_compared(row), order.get(leaf(row).partition(" + ")[0], len(order))

    return [
        _with_column(dataclasses.replace(table, rows=tuple(sorted(table.rows, key=key))), Column("leaf", "leaf"), leaf)
        for table in tables
    ]


def _by_workload(tables: Sequence[Table], leaves: Mapping[str, str]) -> list[Table]:
    del leaves
    sets = dict.fromkeys((row.values["techniques"], row.values["technique"]) for table in tables for row in table.rows)
    found = []
    for techniques, label in sets:
        parts = [_only(table, _is_of(techniques)) for table in tables]
        joined = _joined(parts, str(label), "on each workload, at each budget")
        found.append(without(joined, {"technique"}))
    return found


def _is_of(techniques: object) -> Callable[[Row], bool]:
    return lambda row: row.values["techniques"] == techniques


def _by_budget(tables: Sequence[Table], leaves: Mapping[str, str]) -> list[Table]:
    del leaves
    workloads = dict.fromkeys(row.values["workload"] for table in tables for row in table.rows)
    found = []
    for workload in workloads:
        parts = [table for table in tables if table.rows and table.rows[0].values["workload"] == workload]
        joined = without(_joined(parts, str(workload), "each set at all its budgets"), {"workload"})
        order = dict.fromkeys(row.values["techniques"] for row in joined.rows)
        place = {techniques: position for position, techniques in enumerate(order)}
        rows = sorted(joined.rows, key=lambda row: place[row.values["techniques"]])
        found.append(dataclasses.replace(joined, rows=tuple(rows)))
    return found


_GROUPED: dict[str, Callable[[Sequence[Table], Mapping[str, str]], list[Table]]] = {
    "technique": _as_they_come,
    "workload": _by_workload,
    "leaf": _by_leaf,
    "budget": _by_budget,
}


def _with_column(table: Table, column: Column, text: Callable[[Row], str]) -> Table:
    """Return a table with another column in front."""
    rows = tuple(dataclasses.replace(row, cells=(text(row), *row.cells)) for row in table.rows)
    return dataclasses.replace(table, columns=(column, *table.columns), rows=rows)


def _only(table: Table, wanted: Callable[[Row], bool]) -> Table:
    """Return a table with some of its rows, and without what its remarks say is wrong with others."""
    rows = tuple(filter(wanted, table.rows))
    labels = {row.values["technique"] for row in rows}
    remarks = [remark for remark in table.remarks if remark.kind != "problem" or labels & {*remark.sets}]
    return dataclasses.replace(table, rows=rows, remarks=tuple(remarks))


def _joined(tables: Sequence[Table], title: str, caption: str) -> Table:
    """Return one table with the rows of all: workload, budget, and metric where there are several, become columns."""
    parts = [table for table in tables if table.rows]
    columns: dict[str, Column] = {"technique": Column("technique", "technique")}
    columns |= {key: Column(key, key) for key in ("workload", "budget", "metric")}
    for table in parts:
        for column in table.columns:
            known = columns.setdefault(column.key, column)
            if known.title != column.title:
                columns[column.key] = dataclasses.replace(known, title=column.key.replace("_", " "))
    rows = []
    for table in parts:
        places = {column.key: i for i, column in enumerate(table.columns)}
        for row in table.rows:
            texts = [
                row.cells[places[key]] if key in places else str(row.values.get(key) or numbers.NOTHING)
                for key in columns
            ]
            rows.append(dataclasses.replace(row, cells=tuple(texts)))
    statement = "; ".join(dict.fromkeys(table.statement for table in parts if table.statement))
    joined = Table(title, caption, tuple(columns.values()), tuple(rows), tuple(_placed(parts)), statement)
    metrics = {row.values["metric"] for row in rows}
    empty = {key for i, key in enumerate(columns) if {row.cells[i] for row in rows} <= {numbers.NOTHING}}
    return without(joined, empty | ({"metric"} if len(metrics) == 1 else set()))


def _placed(parts: Sequence[Table]) -> list[Remark]:
    """Return the remarks of tables that become one; what is not true of all says of which workload, or table, it is."""
    everywhere = of_all([part.remarks for part in parts])
    workloads = [part.rows[0].values["workload"] for part in parts]

    def placed(remark: Remark, part: Table, workload: Value) -> Remark:
        if remark in everywhere:
            return remark
        same = [other for other, its in zip(parts, workloads, strict=True) if its == workload]
        place = workload if all(remark in other.remarks for other in same) else part.title
        return dataclasses.replace(remark, text=f"{place}: {remark.text}")

    return merged(
        [placed(remark, part, its) for remark in part.remarks] for part, its in zip(parts, workloads, strict=True)
    )


def _chosen(table: Table, keys: Sequence[str], *, strict: bool) -> Table:
    """Return a table with these columns, in this order.

    strict: a key that does not exist is an error; else it is left out.
    """
    places = {column.key: i for i, column in enumerate(table.columns)}
    known = set(table.rows[0].values) if table.rows else set()
    for key in keys:
        if strict and key not in places and key not in known:
            raise UnknownName("column", key, {*places, *known}, where="--columns: ")
    for key in keys:
        if key not in places and (strict or key == "p_holm") and key in known:
            places[key] = len(table.columns)
            table = _behind(table, key)
    shown = [places[key] for key in keys if key in places]
    rows = tuple(dataclasses.replace(row, cells=tuple(row.cells[i] for i in shown)) for row in table.rows)
    chosen = dataclasses.replace(table, columns=tuple(table.columns[i] for i in shown), rows=rows)
    return dataclasses.replace(chosen, remarks=without(table, set(places) - set(keys)).remarks)


def _behind(table: Table, key: str) -> Table:
    """Return a table with a number behind the rows as its last column."""
    rows = tuple(dataclasses.replace(row, cells=(*row.cells, _text(key, row.values[key]))) for row in table.rows)
    numeric = any(isinstance(row.values[key], int | float) for row in table.rows)
    column = Column(key, _TITLES.get(key, key.replace("_", " ")), "right" if numeric else "left")
    return dataclasses.replace(table, columns=(*table.columns, column), rows=rows)


_CHANCES = {"p_holm", "p_value"}
_TITLES = {"p_holm": "p (Holm)", "p_value": "p", "peak_memory_mib": "peak MiB"}


def _text(key: str, value: Value) -> str:
    if value is None or value == "":
        return numbers.NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and key in _CHANCES:
        return f"{value:.3f}" if value >= 0.001 else "< 0.001"
    return numbers.significant(value) if isinstance(value, float) else str(value)


def _is_compared(row: Row) -> bool:
    """Return whether the row is of a set that is compared with another, which stands first: usually the baseline."""
    return row.values["technique"] != row.values["against"]


def _sorted(table: Table, sort: str) -> Table:
    key, down = sort.lstrip("-"), sort.startswith("-")
    known = set(table.rows[0].values) if table.rows else set()
    if table.rows and key not in known:
        raise UnknownName("column", key, known, where="--sort: ")

    def place(row: Row) -> tuple[bool, bool, float, str]:
        value = row.values[key]
        first = _is_compared(row)
        if isinstance(value, int | float):
            return first, math.isnan(value), -float(value) if down else float(value), ""
        return first, value is None, 0.0, str(value)

    rows = sorted(table.rows, key=place)
    if down and any(isinstance(row.values[key], str) for row in rows):
        rows = [row for row in rows if not _is_compared(row)] + list(filter(_is_compared, reversed(rows)))
    return dataclasses.replace(table, rows=tuple(rows))
