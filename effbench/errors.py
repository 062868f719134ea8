"""What can go wrong, in words that say what was found and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MOST_NAMES, _NAMES_ALIKE = 30, 6  # of known ones that an error lists


class EffbenchError(Exception):
    """Any fault that effbench explains instead of showing a traceback."""

    exit_code = 2


class UnknownName(EffbenchError):
    """A technique, workload, option, key or format that does not exist."""

    def __init__(self, kind: str, name: str, known: Iterable[str], where: str = "") -> None:
        """Say which `kind` of thing is unknown, and the nearest name that is known."""
        known = sorted(known)
        super().__init__(kind, name, known, where)  # what it is built from, so that it can go to another process
        self.kind, self.name, self.nearest = kind, name, nearest(name, known)
        hint = f"; did you mean {self.nearest!r}?" if self.nearest else "."
        self._message = f"{where}there is no {kind} {name!r}{hint} {_what_there_is(name, known)}"

    def __str__(self) -> str:
        return self._message


class InvalidBudget(EffbenchError):
    """A budget that is no positive amount of a known unit."""


class InvalidSuite(EffbenchError):
    """A suite file that cannot be run as it is written."""


class InvalidTechnique(EffbenchError):
    """A technique that does not say what it must say, or is called with wrong options."""


class PluginError(EffbenchError):
    """A plugin that could not be loaded, or that offers something that is not what it should be."""


class DataUnavailable(EffbenchError):
    """A data set that is neither on this machine nor within reach."""

    exit_code = 3


class Refusal(EffbenchError):
    """A trial that has no meaning; it becomes a row with status `skipped` and this reason."""


class NotApplicable(Refusal):
    """The technique has nothing to work on in this workload, or needs what this machine lacks."""


class Conflict(Refusal):
    """Two techniques that cannot both have their way."""


class Diverged(EffbenchError):
    """The loss is no longer a finite number."""


def _what_there_is(name: str, known: list[str]) -> str:
    """Say which names there are, and of very many those that look most like `name`."""
    if len(known) <= _MOST_NAMES:
        return f"There is: {', '.join(known) or 'none'}"
    alike = difflib.get_close_matches(name, known, n=_NAMES_ALIKE, cutoff=0.0)
    return f"There are {len(known)}, such as: {', '.join(sorted(alike))}"


def words_of(fault: BaseException) -> str:
    """Return an exception's kind and what it says; a stranger's may fail to say anything."""
    kind = type(fault).__name__
    try:
        words = str(fault)
    except Exception:  # noqa: BLE001 - as above
        words = "it cannot say what it is"
    return f"{kind}: {words}" if words else kind


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that looks most like `name`, or None where none is close."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return found[0] if found else None
