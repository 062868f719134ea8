"""Rows of numbers under the same names, kept as one array: a fifth of the memory of as many dictionaries."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import overload

Shape = tuple[tuple[str, ...], tuple[type, ...]]  # names, and of each whether its numbers are `int` or `float`


class Rows(Sequence[Mapping[str, float]]):
    """A sequence of dictionaries, each made when it is asked for; it cannot be changed."""

    __slots__ = ("_numbers", "_shape")

    def __init__(self, shape: Shape, numbers: array[float]) -> None:
        """Take the numbers of all rows, one row after the other; `packed` makes them from dictionaries."""
        self._shape = shape
        self._numbers = numbers

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self._numbers) // len(self._shape[0])

    @overload
    def __getitem__(self, place: int) -> dict[str, float]: ...
    @overload
    def __getitem__(self, place: slice) -> list[Mapping[str, float]]: ...
    def __getitem__(self, place: int | slice) -> dict[str, float] | list[Mapping[str, float]]:
        """Return a row, or several."""
        if isinstance(place, slice):
            return [self[i] for i in range(len(self))[place]]
        names, kinds = self._shape
        start = range(len(self))[place] * len(names)
        numbers = self._numbers[start : start + len(names)]
        return {name: kind(number) for name, kind, number in zip(names, kinds, numbers, strict=True)}

    def __iter__(self) -> Iterator[dict[str, float]]:
        """Yield the rows."""
        return map(self.__getitem__, range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Return whether the other holds equal rows, as a list of dictionaries may."""
        return list(self) == list(other) if isinstance(other, list | Rows) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of a list, to which it may be equal

    def __repr__(self) -> str:
        """Show it as the list that it stands for."""
        return repr(list(self))

    def column(self, name: str) -> list[float] | None:
        """Return the numbers under a name, row by row; None where there is no such name."""
        names, kinds = self._shape
        if name not in names:
            return None
        place = names.index(name)
        found = self._numbers[place :: len(names)].tolist()
        return found if kinds[place] is float else list(map(int, found))


def packed(rows: Sequence[Mapping[str, float]], shapes: dict[Shape, Shape]) -> Sequence[Mapping[str, float]]:
    """Return equal rows that take less memory; the same ones where they differ in shape, or hold more than numbers.

    shapes: those that were met before, so that equal ones are kept once.
    """
    if not rows:
        return rows
    names, kinds = tuple(rows[0]), tuple(map(type, rows[0].values()))
    flat = [number for row in rows for number in row.values()]
    alike = set(map(tuple, rows)) == {names} and list(map(type, flat)) == [*kinds] * len(rows)
    if not (names and alike and set(kinds) <= {int, float}):
        return rows
    try:
        numbers = array("d", flat)
    except OverflowError:
        return rows
    if numbers.tolist() != flat:  # NaN, which equals nothing, or a whole number beyond 2**53
        return rows
    shape = names, kinds
    return Rows(shapes.setdefault(shape, shape), numbers)


def columns(rows: Sequence[Mapping[str, float]], *names: str) -> list[Sequence[float]]:
    """Return the numbers under each name, row by row, NaN where a row has none."""
    if isinstance(rows, Rows):
        return [[math.nan] * len(rows) if (found := rows.column(name)) is None else found for name in names]
    return [[row.get(name, math.nan) for row in rows] for name in names]
