"""The process that every job is forked from: it has imported everything once, so that a job starts in 0.03 s.

It talks over a socket that it inherits. A message from the parent is one byte with a socket attached, over which the
new job gets its work and tells how it goes. To the parent it says when it is ready, which process a job has, and how
that ended. When the parent is gone, so are the jobs.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import os
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from effbench.execution.channel import Channel

if TYPE_CHECKING:
    from effbench.plugins import Plugins

STACKS = signal.SIGQUIT  # makes a job write into its log where each of its threads is, even while it hangs


def main(control_fd: int, named: Iterable[str], workloads: Iterable[str]) -> NoReturn:
    """Serve until the parent closes its end of the control socket.

    control_fd: the socket's descriptor.
    named: plugins as they were named.
    workloads: whose data is read once, for all jobs.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    control = Channel(socket.socket(fileno=control_fd))
    with ending_with(control):
        plugins = preload(named, workloads)
    wake, woken = socket.socketpair()
    woken.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    control.send({"ready": os.getpid()})
    running: set[int] = set()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        while True:
            readable, _, _ = select.select([control.fileno(), wake.fileno()], [], [])
            if wake.fileno() in readable:
                wake.recv(4096)
                _reap(control, running)
            if control.fileno() in readable:
                passed = control.take_passed()
                if passed is None:
                    break
                _fork(control, passed, (wake, woken), running, plugins)
    for pid in running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    os._exit(0)  # taking the interpreter down in order would take a second


@contextlib.contextmanager
def ending_with(parent: Channel) -> Iterator[None]:
    """End this process when its parent hangs up, while it is too busy to listen. The parent says nothing meanwhile."""
    is_done, done = os.pipe()

    def watch() -> None:
        if is_done not in select.select([parent.fileno(), is_done], [], [])[0]:
            os._exit(0)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        os.write(done, b".")
        watcher.join()
        os.close(is_done)
        os.close(done)


def preload(named: Iterable[str], workloads: Iterable[str]) -> Plugins:
    """Import what jobs need, read their data, and build one optimizer, which makes torch import the rest of itself."""
    import torch

    from effbench import plugins
    from effbench.execution import tasks  # noqa: F401 - imported for the jobs

    torch.set_num_threads(1)
    torch.optim.AdamW(torch.nn.Linear(1, 1).parameters())
    loaded = plugins.load(named)
    for name in workloads:
        with contextlib.suppress(Exception):  # it will be a trial's fault, which says so
            loaded.workloads[name].recipe(torch.device("cpu"))
    return loaded


def _fork(
    control: Channel, passed: socket.socket, wakers: tuple[socket.socket, ...], running: set[int], plugins: Plugins
) -> None:
    """Start a job, and tell the parent which process it is; 0 where the system allows no more processes."""
    why = ""
    try:
        pid = os.fork()
    except OSError as fault:
        pid, why = 0, str(fault)
    else:
        if pid == 0:
            signal.set_wakeup_fd(-1)
            control.close()
            for waker in wakers:
                waker.close()
            work(Channel(passed), plugins)
        running.add(pid)
    passed.close()
    control.send({"forked": pid, "why": why})


def work(channel: Channel, plugins: Plugins) -> NoReturn:
    """Do one job, tell its result, and end the process."""
    os.setsid()  # a group of its own, with all that it starts, so that it can be ended as a whole
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _stop)
    code = 1
    try:
        _do(channel, plugins)
        code = 0
    except BaseException:  # noqa: BLE001 - the process ends here, and must say why
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):  # there may be nobody left to read it
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _do(channel: Channel, plugins: Plugins) -> None:
    from effbench.execution.tasks import TASKS

    job = channel.first()
    shown = os.dup(2)  # of its own, for meters close the usual one at times
    if job["log"]:
        log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for descriptor in (1, 2, shown):
            os.dup2(log, descriptor)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # so that a job that is killed leaves what it had printed
    faulthandler.enable(shown)  # a crash in C code leaves a traceback, too
    faulthandler.register(STACKS, shown, all_threads=True)

    def hear(event: dict[str, Any]) -> None:
        try:
            channel.send(event)
        except (BrokenPipeError, ConnectionResetError):
            os._exit(1)  # nobody waits for the result any more

    result = TASKS[job["task"]](job["payload"], plugins, hear)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the work is done: a deadline that passes now takes nothing away
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    hear({"result": result})


def _stop(*_: Any) -> None:
    from effbench.trial import Stop

    raise Stop


def _reap(control: Channel, running: set[int]) -> None:
    """Tell the parent of jobs that have ended, and end what they left behind."""
    while running:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid in running:
            running.discard(pid)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            control.send({"ended": pid, "code": os.waitstatus_to_exitcode(status)})
