"""Where trials run: on this machine, each in a process of its own; or wherever a plugin's executor sends them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Job:
    """Work for one process: a task by name, what it gets as plain values, and what it needs.

    task: "trial" or "price".
    payload: plain values.
    processes: how many processes the work consists of.
    log: file that gets what the process prints.
    """

    task: str
    payload: dict[str, Any]
    processes: int = 1
    log: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a job.

    result: what the task returned, as plain values; None where it did not come to that.
    ended: "" where the process ended by itself; "deadline" or "interrupted" where we ended it; else "signal 9" or
        "exit code 1".
    seconds: wall time from asking to the end.
    overrun_seconds: how long after its deadline it was ended.
    """

    result: dict[str, Any] | None
    ended: str = ""
    seconds: float = 0.0
    overrun_seconds: float = 0.0


Hear = Callable[[Job, dict[str, Any]], None]


class Executor(Protocol):
    """Runs jobs, several at a time."""

    def start(self) -> None:
        """Get ready, without waiting for it."""

    def run(self, jobs: Iterable[Job], hear: Hear) -> Iterator[tuple[Job, Outcome]]:
        """Yield every job with its outcome, as they end. A job is taken from `jobs` when there is room for it."""

    def interrupt(self) -> Iterator[tuple[Job, Outcome]]:
        """End what runs, as Ctrl-C does, and yield it."""

    def close(self) -> None:
        """End whatever still runs, and free what is held."""


@dataclass(slots=True)
class Limits:
    """How patient an executor is."""

    grace_seconds: float = 3.0  # between asking a process to stop and killing it
    first_seconds: float = 60.0  # until a new process has said anything
