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
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO

from effbench.errors import EffbenchError
from effbench.execution import Hear, Job, Limits, Outcome, never
from effbench.execution.channel import Channel, Message
from effbench.execution.running import Running

_MOST_STARTS = 4  # of the server, in case a job ends it
_LAST_WORDS = 4000  # bytes of the server's output that its obituary quotes
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")  # read at import

# The server finds modules where this process does, and not in the working directory: its files may be called anything.
_BOOT = (
    "import json, sys; start = json.loads(sys.argv[1]); sys.path[:] = start.pop('path'); "
    "from effbench.execution.server import main; main(**start)"
)


@dataclass(slots=True)
class Local:
    """Runs up to `jobs` processes at once, forked from a server that has imported everything.

    jobs: processes side by side; a job of several processes takes as many places, all of them if it needs more.
    plugins: named plugins that the server loads, so that jobs know them.
    workloads: whose data the server reads, so that no job has to.
    threads: of each process.
    """

    jobs: int = 1
    plugins: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    threads: int = 1
    limits: Limits = field(default_factory=Limits)
    _server: subprocess.Popen[bytes] | None = None
    _words: IO[bytes] | None = None  # what the server printed
    _control: Channel | None = None
    _is_ready: bool = False
    _starts: int = 0
    _running: list[Running] = field(default_factory=list)
    _unborn: deque[Running] = field(default_factory=deque)  # asked for; the server answers in this order

    def start(self) -> None:
        """Start the server; it imports while the caller goes on."""
        if self._server is not None:
            return
        self._is_ready = False
        self._starts += 1
        ours, theirs = socket.socketpair()
        told = {
            "path": sys.path,
            "control_fd": theirs.fileno(),
            "named": self.plugins,
            "workloads": self.workloads,
        }
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as the server lives
        self._server = subprocess.Popen(  # noqa: S603 - our own interpreter, our own module
            [sys.executable, "-P", "-c", _BOOT, json.dumps(told)],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=self._words,
            stderr=self._words,
            start_new_session=True,
            env={**os.environ, **dict.fromkeys(_THREADS, str(self.threads))},
        )
        theirs.close()
        self._control = Channel(ours)

    def run(self, jobs: Iterable[Job], hear: Hear, stop: Callable[[], bool] = never) -> Iterator[tuple[Job, Outcome]]:
        """Yield every job with its outcome, as they end; see `Executor`."""
        self.start()
        queue, waiting = iter(jobs), None
        while True:
            if stopping := stop():
                queue, waiting = iter(()), None
                for running in self._running:
                    running.stop("interrupted", signal.SIGINT, time.monotonic())
            while self._is_ready and self._free > 0 and (waiting := waiting or next(queue, None)) is not None:
                if self._running and waiting.processes > self._free:
                    break
                self._launch(waiting)
                waiting = None
            if waiting is None and not self._running and (self._is_ready or stopping):
                return
            self._listen(hear)
            yield from self._finished()

    def close(self) -> None:
        """End everything: jobs first, then the server."""
        for running in self._running:
            running.kill(time.monotonic())
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
        if self._words is not None:
            self._words.close()
        self._server = self._control = self._words = None

    @property
    def _free(self) -> int:
        return self.jobs - sum(running.job.processes for running in self._running)

    def _launch(self, job: Job) -> None:
        assert self._control is not None
        ours, theirs = socket.socketpair()
        now = time.monotonic()
        running = Running.since(now, job, Channel(ours), self.limits)
        with contextlib.suppress(OSError), theirs:  # where the server is gone, that is heard in a moment
            self._control.send_with(b"j", theirs)
            running.channel.send({"task": job.task, "payload": {**job.payload, "since": now}, "log": job.log})
        self._running.append(running)
        self._unborn.append(running)

    def _listen(self, hear: Hear) -> None:
        """Wait a moment for news, take them in, and end what is late."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._channel, selectors.EVENT_READ)
            for running in self._running:
                if not running.is_silent:
                    selector.register(running.channel, selectors.EVENT_READ, running)
            for key, _ in selector.select(timeout=0.1):
                if isinstance(key.data, Running):
                    for event in key.data.hear():
                        hear(key.data.job, event)
                else:
                    self._hear_server()
        for running in self._running:
            running.keep_deadline(time.monotonic())

    @property
    def _channel(self) -> Channel:
        assert self._control is not None
        return self._control

    def _hear_server(self) -> None:
        messages = self._channel.receive()
        if messages is None:
            self._mourn()
            return
        for message in messages:
            self._hear(message)

    def _hear(self, message: Message) -> None:
        if "ready" in message:
            self._is_ready = True
        elif "forked" in message:
            running = self._unborn.popleft()
            running.pid = message["forked"]
            if message["why"]:
                running.code, running.ended = 0, f"no process: {message['why']}"
            elif running.stopped:
                running.kill(time.monotonic())
        elif "ended" in message:
            for running in self._running:
                if running.pid == message["ended"]:
                    running.code = message["code"]

    def _mourn(self) -> None:
        """End the jobs of a server that is gone, and start another one.

        Raises:
            EffbenchError: it never got ready, or goes again and again.
        """
        for running in self._running:
            running.kill(time.monotonic())
            running.code = running.code or 0
            running.ended = running.ended or "the process that it was forked from ended"
        assert self._server is not None
        assert self._words is not None
        code = self._server.wait()
        self._words.seek(max(0, self._words.tell() - _LAST_WORDS))
        words = self._words.read().decode(errors="replace").strip() or "none"
        was_ready = self._is_ready
        self._unborn.clear()
        self._channel.close()
        self._words.close()
        self._server = self._control = self._words = None
        if not was_ready or self._starts >= _MOST_STARTS:
            how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            raise EffbenchError(f"the process that trials are forked from {how}. Its last words:\n{words}")
        self.start()

    def _finished(self) -> Iterator[tuple[Job, Outcome]]:
        for running in [running for running in self._running if running.is_over(time.monotonic())]:
            self._running.remove(running)
            outcome = running.outcome()
            running.channel.close()
            yield running.job, outcome
