"""How a rank tells the others why it failed: a file that is there before its connections close."""

from __future__ import annotations

import pickle
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from effbench.errors import EffbenchError, words_of


class RankError(RuntimeError):
    """A rank other than 0 came to a bad end; the message holds its traceback, or the signal that ended it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """How a rank failed. `when` is on the monotonic clock, which all processes of a machine share."""

    when: float
    what: str  # "ValueError: found -1"
    story: str
    known: EffbenchError | None = None  # where effbench explains it

    def as_error(self) -> Exception:
        """Return the error to raise on rank 0."""
        if self.known is None:
            return RankError(self.story)
        self.known.add_note(self.story)
        return self.known


def write_failure(folder: Path, rank: int, fault: BaseException) -> None:
    """Write down in `folder` that `rank` failed by `fault`, at once and as a whole."""
    story = f"rank {rank} failed:\n{''.join(traceback.format_exception(fault)).rstrip()}"
    known = fault if isinstance(fault, EffbenchError) and _survives_pickling(fault) else None
    failure = Failure(time.monotonic(), words_of(fault), story, known)
    unfinished = folder / f"unfinished {rank}"
    unfinished.write_bytes(pickle.dumps(failure))
    unfinished.rename(_file(folder, rank))


def read_failure(folder: Path, rank: int) -> Failure | None:
    """Return what `rank` wrote down in `folder`."""
    file = _file(folder, rank)
    return pickle.loads(file.read_bytes()) if file.exists() else None  # noqa: S301 - from our own child


def _file(folder: Path, rank: int) -> Path:
    return folder / f"failure {rank}"


def _survives_pickling(fault: Exception) -> bool:
    """Tell what errors whose arguments are not their message do not."""
    try:
        pickle.loads(pickle.dumps(fault))  # noqa: S301 - what was just written
    except Exception:  # noqa: BLE001 - whatever the reason, it is told as text then
        return False
    return True
