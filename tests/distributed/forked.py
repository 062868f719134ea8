"""Processes of their own, whose output comes back."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable


def apart(body: Callable[[], object]) -> tuple[int, int]:
    """Run `body` in a process of its own, as rank 0 of its own ranks; return its id, and a pipe of all it writes."""
    reading, writing = os.pipe()
    if pid := os.fork():
        os.close(writing)
        return pid, reading
    os.dup2(writing, 1)
    sys.stdout = os.fdopen(1, "w")
    for handle in (reading, writing):
        os.close(handle)
    try:
        body()
        sys.stdout.flush()
    finally:
        os._exit(0)


def all_of(pipe: int) -> str:
    """What is written to a pipe until the last process that holds its other end is gone."""
    with os.fdopen(pipe) as file:
        return file.read()
