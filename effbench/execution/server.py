"""The process that every job is forked from: it has imported everything once, so that a job starts in 0.03 s.

It talks over a socket that it inherits. A message from the parent is one byte with a socket attached, over which the
new job gets its work and tells how it goes; messages to the parent are lines of JSON. When the parent is gone, so are
the jobs.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import traceback
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from effbench.plugins import Plugins


def main(control_fd: int, named: list[str]) -> None:
    """Serve until the parent closes its end of the control socket."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    plugins = preload(named)
    control = socket.socket(fileno=control_fd)
    wake, woken = socket.socketpair()
    woken.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    _tell(control, {"ready": os.getpid()})
    running: set[int] = set()
    while True:
        readable, _, _ = select.select([control, wake], [], [])
        if wake in readable:
            wake.recv(4096)
            _reap(control, running)
        if control in readable:
            message, sockets, _, _ = socket.recv_fds(control, 1, 1)
            if not message:
                break
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                for inherited in (control, wake, woken):
                    inherited.close()
                work(socket.socket(fileno=sockets[0]), plugins)
            os.close(sockets[0])
            running.add(pid)
    for pid in running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def preload(named: list[str]) -> Plugins:
    """Import what jobs need, and build one optimizer, which makes torch import the rest of itself."""
    import torch

    from effbench import plugins
    from effbench.execution import tasks  # noqa: F401 - imported for the jobs

    torch.set_num_threads(1)
    torch.optim.AdamW(torch.nn.Linear(1, 1).parameters())
    return plugins.load(named)


def work(channel: socket.socket, plugins: Plugins) -> NoReturn:
    """Do one job, tell its result, and end the process."""
    os.setsid()  # a group of its own, with all that it starts, so that it can be ended as a whole
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = 1
    try:
        _do(channel, plugins)
        code = 0
    except BaseException:  # noqa: BLE001 - the process ends here, and must say why
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _do(channel: socket.socket, plugins: Plugins) -> None:
    from effbench.execution.tasks import TASKS
    from effbench.trial import Stop

    def stop(*_: Any) -> None:
        raise Stop

    signal.signal(signal.SIGTERM, stop)
    with channel.makefile("r", encoding="utf-8") as lines:
        job = json.loads(lines.readline())
    if job["log"]:
        log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
    _tell(channel, {"event": "started", "pid": os.getpid(), "within": 60.0})
    result = TASKS[job["task"]](job["payload"], plugins, lambda event: _tell(channel, event))
    _tell(channel, {"result": result})


def _tell(channel: socket.socket, message: dict[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        channel.sendall(json.dumps(message).encode() + b"\n")


def _reap(control: socket.socket, running: set[int]) -> None:
    while running:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        running.discard(pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)  # what the job left behind
        _tell(control, {"ended": pid, "code": os.waitstatus_to_exitcode(status)})


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
