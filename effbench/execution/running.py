"""A job in its process, as its parent sees it: what was heard of it, and how long it may take."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from typing import Any

from effbench.execution import Job, Limits, Outcome
from effbench.execution.channel import Channel, Message
from effbench.execution.server import STACKS

_LOST_SECONDS = 3.0  # without a word from the server on how a killed process ended


@dataclass(slots=True, eq=False)
class Running:
    """A job, the process that does it, and what is known of it. Times are on the monotonic clock."""

    job: Job
    channel: Channel
    limits: Limits
    asked: float
    due: float  # when something must be heard of it
    pid: int = 0  # 0 until it is known
    result: dict[str, Any] | None = None
    told: float = 0.0  # when the result came
    ended: str = ""  # why we ended it, or what else was in the way
    code: int | None = None  # how the process ended: an exit code, or minus the signal's number
    is_silent: bool = False  # whether it hung up
    stopped: float = 0.0  # when it was asked to stop
    has_shown: bool = False  # whether it was asked where it hangs
    killed: float = 0.0

    @classmethod
    def since(cls, now: float, job: Job, channel: Channel, limits: Limits) -> Running:
        """Return a job that was asked for `now`."""
        return cls(job, channel, limits, now, now + limits.first_seconds)

    def hear(self) -> list[Message]:
        """Take in what the job says, and return its events."""
        messages = self.channel.receive()
        self.is_silent = messages is None
        return self._take(messages or [])

    def _take(self, messages: list[Message]) -> list[Message]:
        events = [message for message in messages if "event" in message]
        for message in messages:
            if "result" in message:
                self.result, self.told = message["result"], time.monotonic()
        if events and not self.stopped:
            self.due = time.monotonic() + events[-1]["within"]
        return events

    def keep_deadline(self, now: float) -> None:
        """End the job where it is late: ask, then have it say where it hangs, then kill."""
        deadline = self.due if self.job.until is None else min(self.due, self.job.until)
        if not self.stopped:
            if self.result is None and now > deadline:
                self.stop("deadline" if deadline == self.due else "total", signal.SIGTERM, now)
        elif now > self.stopped + self.limits.grace_seconds:
            if self.has_shown or self.ended == "interrupted":
                self.kill(now)
            else:
                self.has_shown = True
                self._signal(STACKS)

    def stop(self, why: str, number: signal.Signals, now: float) -> None:
        """Ask the process to come to an end. Those that it started hear of it from their rank 0."""
        if not self.stopped:
            self.ended, self.stopped = why, now
            self._signal(number)

    def kill(self, now: float) -> None:
        """End the process and all that it started."""
        self.killed = self.killed or now
        if self.pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self.pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number)

    def is_over(self, now: float) -> bool:
        """Whether the process is gone, or cannot be made to go."""
        return self.code is not None or bool(self.killed and now > self.killed + _LOST_SECONDS)

    def outcome(self) -> Outcome:
        """Return what became of it."""
        if not self.is_silent:
            self._take(self.channel.drain())
        now = self.told or time.monotonic()
        code = self.code or 0
        ended = self.ended or (f"signal {-code}" if code < 0 else f"exit code {code}" if code else "")
        overrun = max(0.0, now - self.due) if self.ended == "deadline" else 0.0
        return Outcome(self.result, ended, now - self.asked, overrun)
