"""One run at a time in a results folder: an advisory lock, which the system releases however the process ends."""

from __future__ import annotations

import fcntl
import json
import os
import platform
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from effbench.errors import EffbenchError

NAME = ".run.lock"  # the file stays behind; what counts is whether somebody holds it


def hold(folder: Path, warn: Callable[[str], None]) -> TextIO:
    """Take the lock of a results folder, which is held until what is returned is closed, or the process is gone.

    warn: is told where the file system has no locks; then two runs are not kept apart.

    Raises:
        EffbenchError: another run holds it; says which and since when.
    """
    file = folder / NAME
    try:
        held = open(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+", encoding="utf-8")  # noqa: SIM115, PTH123 - it outlives this function; pathlib cannot create without truncating
    except OSError as fault:
        raise EffbenchError(f"cannot write results to {folder}: {fault.strerror or fault}") from fault
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with held:
            who = _holder(held)
        raise EffbenchError(
            f"a run is under way in {folder}{who}; wait until it ends, or name another folder with --out"
        ) from None
    except OSError as fault:
        warn(f"the file system of {folder} has no locks ({fault.strerror}): start no second run there")
        return held
    held.truncate(0)
    since = datetime.now(UTC).isoformat(timespec="seconds")
    json.dump({"pid": os.getpid(), "host": platform.node(), "since": since}, held)
    held.flush()
    return held


def _holder(file: TextIO) -> str:
    """Return who holds the lock, in brackets; "" where it has not said so yet."""
    try:
        said = json.load(file)
        since = datetime.fromisoformat(said["since"]).strftime("%Y-%m-%d %H:%M:%S UTC")
        where = "" if said["host"] == platform.node() else f" on {said['host']}"
        return f" (process {said['pid']}{where}, since {since})"
    except (ValueError, LookupError, TypeError):
        return ""
