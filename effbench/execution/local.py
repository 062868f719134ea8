"""Run jobs on this machine, each in a process of its own, several side by side, none past its deadline."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from effbench.errors import EffbenchError
from effbench.execution import Hear, Job, Limits, Outcome


def _nobody(job: Job, event: dict[str, Any]) -> None:
    """Hear an event, and do nothing."""


@dataclass(slots=True)
class _Running:
    """A job in its process."""

    job: Job
    channel: socket.socket
    asked: float
    due: float  # by when something must be heard of it
    pid: int = 0
    heard: bytes = b""
    result: dict[str, Any] | None = None
    ended: str = ""
    overrun: float = 0.0
    silent_since: float | None = None  # when its end of the channel closed

    @property
    def slots(self) -> int:
        return self.job.processes


@dataclass(slots=True)
class Local:
    """Runs up to `jobs` processes at once, forked from a server that has imported everything.

    jobs: processes side by side; a job of several processes takes as many places, all of them if it needs more.
    plugins: named plugins that the server loads, so that jobs know them.
    """

    jobs: int = 1
    plugins: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    _server: subprocess.Popen[bytes] | None = None
    _control: socket.socket | None = None
    _codes: dict[int, int] = field(default_factory=dict)
    _running: list[_Running] = field(default_factory=list)

    def start(self) -> None:
        """Start the server; it imports while the caller goes on."""
        if self._server is not None:
            return
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "effbench.execution.server", str(theirs.fileno()), *self.plugins]
        self._server = subprocess.Popen(  # noqa: S603 - our own interpreter, our own module
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
        )
        theirs.close()
        self._control = ours

    def run(self, jobs: Iterable[Job], hear: Hear) -> Iterator[tuple[Job, Outcome]]:
        """Yield every job with its outcome, as they end; on Ctrl-C the running ones are ended and yielded first."""
        self.start()
        queue = iter(jobs)
        waiting = next(queue, None)
        while waiting is not None or self._running:
            while waiting is not None and self._has_room(waiting):
                self._launch(waiting)
                waiting = next(queue, None)
            self._listen(hear)
            self._keep_deadlines()
            yield from self._finished()

    def interrupt(self) -> Iterator[tuple[Job, Outcome]]:
        """End what runs as Ctrl-C does, and yield it."""
        for running in self._running:
            running.ended = "interrupted"
            running.due = time.monotonic()
            self._signal(running, signal.SIGINT)
        while self._running:
            self._listen(_nobody)
            for running in self._running:
                if time.monotonic() > running.due + self.limits.grace_seconds:
                    self._signal(running, signal.SIGKILL)
            yield from self._finished()

    def close(self) -> None:
        """End everything: jobs first, then the server."""
        for running in self._running:
            self._signal(running, signal.SIGKILL)
            running.channel.close()
        self._running.clear()
        if self._control is not None:
            self._control.close()  # the server ends its jobs and itself
        if self._server is not None:
            try:
                self._server.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
        self._server = self._control = None

    def _has_room(self, job: Job) -> bool:
        busy = sum(running.slots for running in self._running)
        return busy == 0 or busy + job.processes <= self.jobs

    def _launch(self, job: Job) -> None:
        assert self._control is not None
        ours, theirs = socket.socketpair()
        now = time.monotonic()
        message = {"task": job.task, "payload": {**job.payload, "since": now}, "log": job.log}
        try:
            socket.send_fds(self._control, [b"j"], [theirs.fileno()])
            ours.sendall(json.dumps(message).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError) as gone:
            raise EffbenchError("the process that trials are forked from has ended; see its error above") from gone
        theirs.close()
        self._running.append(_Running(job, ours, now, now + self.limits.first_seconds))

    def _listen(self, hear: Hear) -> None:
        """Wait a moment for news, and take them in."""
        assert self._control is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            for running in self._running:
                if running.silent_since is None:
                    selector.register(running.channel, selectors.EVENT_READ, running)
            for key, _ in selector.select(timeout=0.1):
                if key.data is None:
                    self._hear_server()
                else:
                    self._hear_job(key.data, hear)

    def _hear_server(self) -> None:
        assert self._control is not None
        try:
            heard = self._control.recv(1 << 16)
        except ConnectionResetError:
            heard = b""
        if not heard:
            raise EffbenchError("the process that trials are forked from has ended; see its error above")
        for line in heard.splitlines():
            message = json.loads(line)
            if "ended" in message:
                self._codes[message["ended"]] = message["code"]

    def _hear_job(self, running: _Running, hear: Hear) -> None:
        try:
            heard = running.channel.recv(1 << 16)
        except ConnectionResetError:
            heard = b""
        if not heard:
            running.silent_since = time.monotonic()
            return
        *lines, running.heard = (running.heard + heard).split(b"\n")
        for line in lines:
            event = json.loads(line)
            if "result" in event:
                running.result = event["result"]
                continue
            running.pid = event.get("pid", running.pid)
            if not running.ended:
                running.due = time.monotonic() + event["within"]
            hear(running.job, event)

    def _keep_deadlines(self) -> None:
        now = time.monotonic()
        for running in self._running:
            if running.result is None and now > running.due:
                if not running.ended:
                    running.ended = "deadline"
                    self._signal(running, signal.SIGTERM)
                elif now > running.due + self.limits.grace_seconds:
                    self._signal(running, signal.SIGKILL)
                running.overrun = now - running.due

    def _signal(self, running: _Running, number: int) -> None:
        if running.pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if number == signal.SIGKILL:
                    os.killpg(running.pid, number)
                else:
                    os.kill(running.pid, number)  # the others of its group hear of it from their rank 0

    def _finished(self) -> Iterator[tuple[Job, Outcome]]:
        for running in list(self._running):
            over = running.result is not None or running.silent_since is not None
            known = running.pid in self._codes
            patience = time.monotonic() - (running.silent_since or time.monotonic()) > 2.0
            if not (over and (known or patience)):
                continue
            self._running.remove(running)
            running.channel.close()
            code = self._codes.pop(running.pid, 0)
            ended = running.ended or (f"signal {-code}" if code < 0 else "" if code == 0 else f"exit code {code}")
            seconds = time.monotonic() - running.asked
            yield running.job, Outcome(running.result, ended, seconds, running.overrun)
