"""A set of techniques as a person writes it on one line: `mixup(alpha=0.1)+ema`."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from effbench.errors import InvalidSuite
from effbench.toml import loads

Set = dict[str, dict[str, Any]]  # technique -> options; the baseline is the empty set

BASELINE = "baseline"
_HOW = 'write a set as name, name(option=value) or several of these joined by +, such as "mixup(alpha=0.1)+ema"'
_NAME = re.compile(r"[^\W\d]\w*")
_WORD = re.compile(r"[A-Za-z_][\w-]*")
_PYTHON = {"True": True, "False": False}  # as tables show them
_PIECE = re.compile(r"""\"(?:\\.|[^"\\])*\"|'[^']*'|.""", re.DOTALL)
_OPEN, _CLOSE = "([{", ")]}"


def parse_set(text: str) -> Set:
    """Read `mixup(alpha=0.1)+ema`; `baseline` is the empty set. Names are not checked here.

    Values are written as in TOML; text that is one plain word needs no quotes, so that what a table calls a set can be
    copied to the command line.

    Raises:
        InvalidSuite: names the part that cannot be read, and what to write.
    """
    if text.strip() == BASELINE:
        return {}
    found: Set = {}
    for part in _split(text, "+", text):
        name, options = _technique(part.strip(), text)
        if name == BASELINE:
            raise InvalidSuite(f"{text!r}: the baseline has no techniques, so it is never part of a set; {_HOW}")
        if name in found:
            raise InvalidSuite(f"{text!r} names {name} twice; a set holds each technique once")
        found[name] = options
    return found


def _technique(part: str, text: str) -> tuple[str, dict[str, Any]]:
    name, bracket, inside = part.partition("(")
    name = name.strip()
    if not _NAME.fullmatch(name):
        raise InvalidSuite(f"{text!r}: {name!r} is no name of a technique; {_HOW}")
    if not bracket:
        return name, {}
    if not inside.endswith(")"):
        raise InvalidSuite(f"{text!r}: {part!r} does not end with its closing bracket; {_HOW}")
    options: dict[str, Any] = {}
    for written in _split(inside[:-1], ",", text):
        if not written.strip():
            continue
        option, equals, value = (side.strip() for side in written.partition("="))
        if not equals or not _NAME.fullmatch(option):
            raise InvalidSuite(f"{text!r}: {written.strip()!r} is no option of {name}; write option=value")
        if option in options:
            raise InvalidSuite(f"{text!r} gives option {option} of {name} twice")
        options[option] = _value(value, option, text)
    return name, options


def _value(written: str, option: str, text: str) -> Any:
    if written in _PYTHON:
        return _PYTHON[written]
    if written == "None":
        raise InvalidSuite(f"{text!r}: {option}=None cannot be written; leave the option out to have its default")
    try:
        values = loads(f"values = [{written}]")["values"]
    except tomllib.TOMLDecodeError:
        values = [written] if _WORD.fullmatch(written) else []
    if len(values) != 1:
        example = f"{option}=0.1, {option}=true, {option}=[1, 2] or {option}='some words'"
        raise InvalidSuite(f"{text!r}: {written!r} is no value of option {option}; write such as {example}")
    return values[0]


def _split(text: str, at: str, whole: str) -> list[str]:
    """Split at a character where it stands outside of brackets and quotes."""
    parts, depth = [""], 0
    for piece in _PIECE.findall(text):
        if piece in "\"'":
            raise InvalidSuite(f"{whole!r}: a text in quotes is not closed by {piece}")
        depth += (piece in _OPEN) - (piece in _CLOSE)
        if depth < 0:
            break
        if piece == at and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    if depth:
        raise InvalidSuite(f"{whole!r}: its brackets do not match; {_HOW}")
    return parts
