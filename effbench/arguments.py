"""What an argument of the command line is, and how its text is read.

What reads a text raises `argparse.ArgumentTypeError` where it is none of its kind, or UnknownName.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from effbench.errors import UnknownName

_MOST_SEEDS = 10_000
_DIGITS, _WIDEST = 19, 60  # of the largest seed; columns of what an error quotes


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a verb: an option where its name begins with a dash, else a positional one."""

    name: str  # "--budget", or "SUITE"
    help: str
    metavar: str = ""  # of an option's value; an option without is a switch
    default: Any = None
    several: bool = False  # given as often as one likes: a list
    optional: bool = False  # a positional one that may be left out
    read: Callable[[str], Any] = str
    completes: str | tuple[str, ...] = ""  # what a shell offers: these words, or the names of that kind, or "files"
    dest: str = ""  # attribute of the parsed arguments; "" is the name in small letters

    def __post_init__(self) -> None:
        """Name the attribute after the argument."""
        if not self.dest:
            object.__setattr__(self, "dest", self.name.lstrip("-").lower().replace("-", "_"))

    @property
    def is_option(self) -> bool:
        """Whether it is given by name."""
        return self.name.startswith("-")

    @property
    def is_switch(self) -> bool:
        """Whether it is an option without a value."""
        return self.is_option and not self.metavar


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing that effbench does: `effbench NAME ...`, in the module `effbench.commands.NAME`."""

    name: str
    summary: str
    arguments: tuple[Argument, ...]
    examples: tuple[str, ...]
    about: str = ""  # a paragraph, where the summary leaves something to be said


def whole(text: str) -> int:
    """Read a whole number from 1."""
    if not _is_number(text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{_shown(text)} should be a whole number from 1")
    return int(text)


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= _DIGITS


def _shown(text: str) -> str:
    return repr(text) if len(text) <= _WIDEST else f"{text[:_WIDEST]!r}..."


def seeds(text: str) -> tuple[int, ...]:
    """Read `0,1,2` or `0-4` or both, such as `0-2,7`."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not _is_number(first) or (dash and not _is_number(last)) or (dash and int(last) < int(first)):
            raise argparse.ArgumentTypeError(f"{_shown(text)} should be seeds such as 0,1,2 or 0-4")
        if dash and int(last) - int(first) >= _MOST_SEEDS:
            raise argparse.ArgumentTypeError(f"{part!r} names more than {_MOST_SEEDS} seeds")
        found += range(int(first), int(last or first) + 1)
    if len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f"{_shown(text)} names a seed twice")
    return tuple(found)


def share(text: str) -> float:
    """Read a number between 0 and 1, neither of which it is."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0.0 < found < 1.0:
        raise argparse.ArgumentTypeError(f"{_shown(text)} should be a number between 0 and 1, such as 0.8")
    return found


def pair(text: str) -> tuple[str, str]:
    """Read `NAME=PATH`."""
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"{text!r} should be NAME=PATH, such as cifar10=~/data/cifar10")
    return name, path


def one_of(kind: str, *choices: str) -> Callable[[str], str]:
    """Return what reads one of a few words, and names the near one where it is none."""

    def read(text: str) -> str:
        if text not in choices:
            raise argparse.ArgumentTypeError(str(UnknownName(kind, text, choices)))
        return text

    return read
