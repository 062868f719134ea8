"""Where trials run: on this machine, each in a process of its own; or wherever a plugin's executor sends them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Job:
    """Work for one process: a task by name, what it gets as plain values, and what it needs.

    task: "compose", "price" or "trial".
    payload: plain values.
    processes: how many processes the work consists of.
    log: file that gets what the process prints.
    until: when it must have ended, come what may, on this process's monotonic clock; None where nothing bounds it.
    """

    task: str
    payload: dict[str, Any]
    processes: int = 1
    log: str = ""
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a job.

    result: what the task returned, as plain values; None where it did not come to that.
    ended: "" where the process ended by itself; "deadline" (its own), "total" (the job's `until`) or "interrupted"
        where we ended it; else "signal 9", "exit code 1", or what else was in the way.
    seconds: wall time from asking for it to its result, or to its end.
    overrun_seconds: how long after its deadline it came to an end.
    """

    result: dict[str, Any] | None
    ended: str = ""
    seconds: float = 0.0
    overrun_seconds: float = 0.0


Hear = Callable[[Job, dict[str, Any]], None]


def never() -> bool:
    """Do not stop."""
    return False


class Executor(Protocol):
    """Runs jobs, several at a time."""

    def run(self, jobs: Iterable[Job], hear: Hear, stop: Callable[[], bool] = never) -> Iterator[tuple[Job, Outcome]]:
        """Yield every job with its outcome, as they end.

        jobs: one is taken when there is room for it, and not before.
        hear: is told what a job says of itself.
        stop: asked several times a second; once it says so, nothing is started, and what runs is interrupted.
        """

    def close(self) -> None:
        """End whatever still runs, and free what is held."""


@dataclass(slots=True)
class Limits:
    """How patient an executor is."""

    grace_seconds: float = 3.0  # between asking a process to stop and killing it
    first_seconds: float = 60.0  # until a new process has said anything
