"""What tomllib leaves out: limits, in which line of a text each thing stands, and how a plain value is written."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping
from typing import Any

Place = tuple[str | int, ...]  # keys and positions in lists: ("techniques", 1, "mixup", "alpha")

_STRING = re.compile(r"""\"{3}(?:\\.|[^\\])*?\"{3}"*|'{3}.*?'{3}'*|"(?:\\.|[^"\\\n])*"|'[^'\n]*'""", re.DOTALL)
_KEY = re.compile(r'"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|[A-Za-z0-9_-]+')
_BARE_VALUE = re.compile(r"[^,\]}#\n]+")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BITS, _DEPTH = 64, 64  # of a whole number, as TOML has it, its sign included; of brackets inside brackets


def loads(text: str) -> dict[str, Any]:
    """Read TOML.

    Raises:
        tomllib.TOMLDecodeError: it is none, or a whole number is too long, or brackets are nested too deep.
    """
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError(_TOO_DEEP) from None
    except ValueError:  # Python reads no number of more than 4,300 digits
        raise tomllib.TOMLDecodeError(_TOO_LONG) from None
    _check_limits(found, _DEPTH)
    return found


_TOO_DEEP = f"brackets are nested more than {_DEPTH} deep"
_TOO_LONG = f"a whole number has {_BITS} bits at most"


def _check_limits(value: Any, depth: int) -> None:
    if isinstance(value, int) and not -(2 ** (_BITS - 1)) <= value < 2 ** (_BITS - 1):
        raise tomllib.TOMLDecodeError(f"{_TOO_LONG}, found one of {value.bit_length() + 1}")
    if isinstance(value, dict | list):
        if depth == 0:
            raise tomllib.TOMLDecodeError(_TOO_DEEP)
        for item in value.values() if isinstance(value, dict) else value:
            _check_limits(item, depth - 1)


def lines(text: str) -> dict[Place, int]:
    """Return the line, from 1, of every key, of every table and of every item of a list.

    text: valid TOML, that is, text that tomllib has read. A thing that is written in several places, such as a table
    that a dotted key makes, stands where it is written first.
    """
    scanner = _Scanner(text)
    scanner.document()
    return scanner.found


def literal(value: Any) -> str:
    """Write a plain value as TOML does, on one line.

    Raises:
        TypeError: TOML has no such value.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(literal(item) for item in value)}]"
    if isinstance(value, Mapping):
        inside = ", ".join(f"{key(name)} = {literal(item)}" for name, item in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    raise TypeError(f"TOML cannot hold {type(value).__name__}: {value!r}")


def key(name: str) -> str:
    """Write a key as TOML does, in quotes only where it must be."""
    return name if _BARE_KEY.fullmatch(name) else literal(name)


class _Scanner:
    """Reads valid TOML from left to right and notes where things stand."""

    __slots__ = ("_at", "_items", "_text", "found")

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._items: dict[Place, int] = {}  # lists of tables -> how many there are so far
        self.found: dict[Place, int] = {}

    def document(self) -> None:
        table: Place = ()
        while self._skip(_BLANK) < len(self._text):
            if self._text.startswith("[[", self._at):
                table = self._header(2)
            elif self._text[self._at] == "[":
                table = self._header(1)
            else:
                self._pair(table)

    def _header(self, brackets: int) -> Place:
        line = self._line()
        self._at += brackets
        *parents, last = self._dotted()
        place = (*self._open(parents, line), last)
        self._skip(_SPACE)
        self._at += brackets
        self._note(place, line)
        if brackets == 2:
            self._items[place] = self._items.get(place, 0) + 1
            place = (*place, self._items[place] - 1)
            self._note(place, line)
        return place

    def _open(self, keys: list[str], line: int) -> Place:
        """Return the place that the first keys of a header lead to: of a list of tables, its last table."""
        place: Place = ()
        for name in keys:
            place = (*place, name)
            self._note(place, line)
            if place in self._items:
                place = (*place, self._items[place] - 1)
        return place

    def _pair(self, place: Place) -> None:
        line = self._line()
        for name in self._dotted():
            place = (*place, name)
            self._note(place, line)
        self._skip(_SPACE)
        self._at += len("=")
        self._value(place)

    def _dotted(self) -> list[str]:
        names: list[str] = []
        while not names or self._text[self._at] == ".":
            self._at += bool(names)  # the dot
            self._skip(_SPACE)
            written = self._take(_KEY)
            names.append(next(iter(tomllib.loads(f"{written} = 0"))))
            self._skip(_SPACE)
        return names

    def _value(self, place: Place) -> None:
        self._skip(_SPACE)
        first = self._text[self._at]
        if first == "[":
            self._between("]", place, listed=True)
        elif first == "{":
            self._between("}", place, listed=False)
        else:
            self._take(_STRING if first in "\"'" else _BARE_VALUE)

    def _between(self, end: str, place: Place, *, listed: bool) -> None:
        """Read the items of a list, or the pairs of a table in braces."""
        self._at += 1
        position = 0
        while self._text[self._skip(_BLANK)] != end:
            if listed:
                self._note((*place, position), self._line())
                self._value((*place, position))
                position += 1
            else:
                self._pair(place)
            if self._text[self._skip(_BLANK)] == ",":
                self._at += 1
        self._at += 1

    def _note(self, place: Place, line: int) -> None:
        self.found.setdefault(place, line)

    def _line(self) -> int:
        return self._text.count("\n", 0, self._at) + 1

    def _skip(self, pattern: re.Pattern[str]) -> int:
        self._take(pattern)
        return self._at

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        assert found is not None, f"line {self._line()} is no TOML that tomllib reads"
        self._at = found.end()
        return found[0]
