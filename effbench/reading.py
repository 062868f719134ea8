"""Lines of records, read many at once: checked column by column, and what records have in common is kept once.

A hundred thousand records of one study tell of a handful of machines, prices and sets. Records that were read share
such parts, and keep their curves as arrays, so nobody changes them in place.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from effbench.records import FIELDS, INSIDE, Record, check_price, leaves
from effbench.rows import packed

#: field -> what was met there, so that it is kept once; one is to last for all lines of a file.
Common = defaultdict[str, dict[Any, Any]]

_TEXTS = ("suite", "workload", "budget", "status", "reason", "stop_reason", "clock", "metric")
_PARTS = ("techniques", "order", "price", "versions", "plugins", "warnings")
_MAPPINGS = ("environment", "identity")  # of which some values are a record's own
_EMPTY = ("measured", "traffic")  # mostly
_FACTORIES = {each.name: each.default_factory for each in dataclasses.fields(Record)}
_DEFAULTS = {each.name: each.default for each in dataclasses.fields(Record)}


def common() -> Common:
    """Return a place for what records have in common."""
    return defaultdict(dict)


def read_together(lines: Sequence[bytes], known: Common) -> list[Record]:
    """Return the records of lines.

    known: what was met before; it is added to.

    Raises:
        ValueError: some line is no record, or asks to be looked at by itself.
    """
    if not all(line.startswith(b"{") and line.endswith((b"}", b"}\n")) for line in lines):
        raise ValueError("some line is not whole")
    alone = {i: _alone(line) for i, line in enumerate(lines) if b'"NaN' in line or b"Infinity" in line}
    text = b",".join(line for i, line in enumerate(lines) if i not in alone).decode("utf-8")
    found = json.loads(f"[{text}]")
    if len(found) + len(alone) != len(lines):
        raise ValueError("some line is not one object")
    others = iter(_made(found, known))
    return [alone[i] if i in alone else next(others) for i in range(len(lines))]


def _alone(line: bytes) -> Record:
    """Return the record of a line in which a number may be written as a word."""
    return Record.from_json(line.decode("utf-8"))


def _made(rows: Sequence[Any], known: Common) -> list[Record]:
    """Return the records of rows that have the same keys."""
    if not rows:
        return []
    if set(map(type, rows)) != {dict} or len(set(map(tuple, rows))) != 1:
        raise ValueError("the lines differ in kind")
    columns = {name: _column(name, rows) for name in FIELDS}
    for name, column in columns.items():
        _check(name, column)
    for name in _TEXTS:
        columns[name] = _kept(columns[name], columns[name], known[name])
    for name in _PARTS:
        shown = [*map(repr, columns[name])]
        if name == "price":
            _check_prices(shown, columns[name], known[name])
        columns[name] = _kept(shown, columns[name], known[name])
    for name in _MAPPINGS:
        texts = known[name]
        columns[name] = [
            {key: texts.setdefault(value, value) if type(value) is str else value for key, value in each.items()}
            for each in columns[name]
        ]
    for name in _EMPTY:
        empty = known[name].setdefault("", FIELDS[name][0]())
        columns[name] = [each or empty for each in columns[name]]
    columns["curve"] = [packed(curve, known["curve"]) for curve in columns["curve"]]
    return list(map(Record, *columns.values()))


def _check_prices(texts: Sequence[str], prices: Sequence[Any], met: dict[Any, Any]) -> None:
    for text, price in zip(texts, prices, strict=True):
        if text not in met:
            check_price(price)


def _column(name: str, rows: Sequence[dict[str, Any]]) -> list[Any]:
    """Return the field of all rows, its default where they do not say."""
    if name in rows[0]:
        return [row[name] for row in rows]
    if callable(make := _FACTORIES[name]):
        return [make() for _ in rows]
    if (default := _DEFAULTS[name]) is dataclasses.MISSING:
        raise ValueError(f"{name} is missing")
    return [default] * len(rows)


def _kept(keys: Iterable[Any], column: Sequence[Any], met: dict[Any, Any]) -> list[Any]:
    """Return a column in which what has equal keys is one object."""
    return list(map(met.setdefault, keys, column))


def _check(name: str, column: Sequence[Any]) -> None:
    """Let through what `Record.from_values` does; what it might let through is left to it.

    Raises:
        ValueError: it might not.
    """
    inner: Iterable[Any] = ()
    good = set(map(type, column)) <= set(FIELDS[name])
    if good and FIELDS[name] == (dict,):
        inner = [*itertools.chain.from_iterable(map(dict.values, column))]
    elif good and FIELDS[name] == (list,):
        inner = [*itertools.chain.from_iterable(column)]
    if good and name in {"techniques", "metrics", "curve"}:
        good = set(map(type, inner)) <= {dict}
    if good and name in INSIDE:
        depth, kinds = INSIDE[name]
        good = leaves(inner, depth) <= kinds
    if not good:
        raise ValueError(f"{name} of some record is unusual")
