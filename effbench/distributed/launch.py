"""Start the processes of one trial by forking this one, and end them together.

They find each other through a file, so there is no port that could be taken. Whatever becomes of one ends all: a rank
that fails lends its traceback to the error, and no rank outlives rank 0.
"""

from __future__ import annotations

import gc
import math
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn, TypeVar

import torch
import torch.distributed as dist

from effbench.distributed import metered
from effbench.distributed.failures import Failure, RankError, read_failure, write_failure
from effbench.distributed.group import Group
from effbench.distributed.wire import Wire
from effbench.errors import NotApplicable

T = TypeVar("T")

CPU = torch.device("cpu")
_TO_END_SECONDS = 60.0  # how much longer than rank 0 another rank may take; it only has to leave the group
_TO_TELL_SECONDS = 2.0  # how long after a failure the rank that caused it may take to be found dead
_TO_PART_SECONDS = 5.0  # how long a rank that is done waits for the others; one that still needs it fails then
_POLL_SECONDS = 0.002


def run_ranks(size: int, body: Callable[[Group], T], *, device: torch.device = CPU) -> T:
    """Run `body` in `size` processes that form a group; return what it returns on rank 0, which is this process.

    The others are forked from here, so `body` sees all that exists now; nothing of what they make comes back. Each
    has one thread. Collectives run by gloo on the CPU and by NCCL on GPUs, where rank r has GPU number r.

    Raises:
        RankError: another rank failed first. A fault that effbench explains is raised as itself, with a note.
        NotApplicable: there are fewer GPUs than ranks, or CUDA was used here before, which forbids forking.
    """
    if size == 1:
        return body(Group())
    if dist.is_initialized():
        raise RuntimeError("this process is already in a group of processes; groups do not nest")
    _check_device(size, device)
    gc.collect()  # a former group that waits for its end has threads, and threads do not survive a fork
    with tempfile.TemporaryDirectory(prefix="effbench-ranks-") as folder, _one_thread(), _own_excepthook():
        start = _Start(Path(folder), size, device)
        children: list[_Child] = []
        heard, alive = os.pipe()  # that only this process can write to: it closes when rank 0 ends, however that is
        try:
            _fork(children, start, body, heard, alive)
            result = start.take_part(0, body, lambda: _check(children, start))
            _wait(children)
        except Exception as fault:  # whatever the ranks' work raises, for another rank may be the cause
            if cause := _cause(start, children):
                raise cause from fault
            if early := [child.rank for child in children if child.status == 0]:
                fault.add_note(f"before that, rank {early[0]} had ended; all ranks must take part in all collectives")
            raise
        else:
            _check(children, start)
            return result
        finally:
            _kill(children)
            os.close(heard)
            os.close(alive)


@dataclass(frozen=True, slots=True)
class _Start:
    """What every rank must know to find the others, and where it leaves the story of its failure."""

    folder: Path
    size: int
    device: torch.device

    def take_part(self, rank: int, body: Callable[[Group], T], check: Callable[[], None]) -> T:
        """Join the group, run `body`, leave the group.

        check: raises if a rank will never come.
        """
        if self.device.type == "cuda":
            torch.cuda.set_device(rank)
        wire = Wire()
        devices = sorted({"cpu", self.device.type})
        store = dist.FileStore(str(self.folder / "store"), self.size)  # type: ignore[attr-defined]  # torch's stub lacks it
        try:
            self.meet(partial(store.add, "begin"), check)
            dist.init_process_group(metered.register(wire, devices), store=store, rank=rank, world_size=self.size)
            result = body(Group(rank, self.size, wire))
            self._done(rank).touch()
            self.meet(partial(store.add, "end"), check, _TO_PART_SECONDS)  # nobody hangs up on one who listens
        except BaseException as fault:  # the others shall hear of SystemExit and Ctrl-C too
            write_failure(self.folder, rank, fault)  # before the others can notice that this rank is gone
            raise
        else:
            return result
        finally:
            wire.close()
            if dist.is_initialized():
                dist.destroy_process_group()

    def is_done(self, rank: int) -> bool:
        """Tell whether a rank has done its work."""
        return self._done(rank).exists()

    def _done(self, rank: int) -> Path:
        return self.folder / f"done {rank}"

    def meet(self, count: Callable[[int], int], check: Callable[[], None], patience: float = math.inf) -> None:
        """Wait until all ranks are here, but only for so many seconds.

        count: adds to the number of ranks that are here, and returns it.
        """
        end = time.monotonic() + patience
        here = count(1)
        while here < self.size and time.monotonic() < end:
            check()
            time.sleep(_POLL_SECONDS)
            here = count(0)


@dataclass(slots=True)
class _Child:
    """A forked rank."""

    rank: int
    pid: int
    status: int | None = None  # as waitpid tells it, once the process is gone
    killed: bool = False  # by us

    def is_gone(self) -> bool:
        """Tell whether the process has ended, and reap it."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if pid else None
        return self.status is not None

    def failure(self, start: _Start) -> Failure | None:
        """Return how it failed of itself, or None where it did not."""
        if told := read_failure(start.folder, self.rank):
            return told
        if self.status is None or self.killed or (self.status == 0 and start.is_done(self.rank)):
            return None
        code = os.waitstatus_to_exitcode(self.status)
        how = f"was ended by signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"exited with {code}"
        how += " before its work was done" if code == 0 else ""
        return Failure(0.0, how, f"rank {self.rank} {how}")


def _fork(children: list[_Child], start: _Start, body: Callable[[Group], object], heard: int, alive: int) -> None:
    """Start ranks 1, 2, ..."""
    sys.stdout.flush()
    sys.stderr.flush()
    for rank in range(1, start.size):
        if pid := os.fork():
            children.append(_Child(rank, pid))
        else:
            os.close(alive)
            _be_rank(rank, start, body, heard)


def _be_rank(rank: int, start: _Start, body: Callable[[Group], object], heard: int) -> NoReturn:
    """Live as a forked rank: nothing of the parent's may be ended, collected or written a second time."""
    gc.freeze()
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all ranks; rank 0 ends the others
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        threading.Thread(target=_end_with_rank_0, args=(heard,), daemon=True).start()
        torch.set_num_threads(1)
        start.take_part(rank, body, lambda: None)
    except BaseException:  # noqa: BLE001 - it is reported, and nobody above could handle it in this process
        # As long as the failure is there, nothing of it is freed: torch, freeing a group with Python's lock in hand,
        # waits for its thread, which may be waiting for the lock.
        _leave(1)
    _leave(0)


def _leave(code: int) -> NoReturn:
    """End this process, and nothing but this process."""
    with suppress(Exception):  # there may be nobody left to read it
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _end_with_rank_0(heard: int) -> None:
    os.read(heard, 1)  # nothing is ever written: it returns when the holder of the other end is gone
    os._exit(1)


def _cause(start: _Start, children: list[_Child]) -> Exception | None:
    """Return the failure of another rank that led to that of rank 0; None where rank 0 was the first to fail.

    When a rank dies, the others fail in their next collective: that is an effect, not the cause. Where all ranks fail
    in the same way, rank 0 speaks for them.
    """
    end = time.monotonic() + _TO_TELL_SECONDS
    failures: list[Failure] = []
    while not failures and time.monotonic() < end:
        time.sleep(_POLL_SECONDS)
        gone = [child.is_gone() for child in children]  # each is asked, whichever is the first to answer
        failures = [failure for child in children if (failure := child.failure(start))]
        if all(gone):
            break
    own = read_failure(start.folder, 0)
    first = min(failures, key=lambda failure: failure.when, default=None)
    if own is None or first is None or first.when >= own.when or first.what == own.what:
        return None
    return first.as_error()


def _check(children: list[_Child], start: _Start) -> None:
    """Raise if a rank has failed."""
    for child in children:
        child.is_gone()
        if failure := child.failure(start):
            raise failure.as_error()


def _wait(children: list[_Child]) -> None:
    end = time.monotonic() + _TO_END_SECONDS
    while not all(child.is_gone() for child in children):
        if time.monotonic() > end:
            late = ", ".join(str(child.rank) for child in children if not child.is_gone())
            raise RankError(f"rank {late} did not end within {_TO_END_SECONDS:g} seconds of rank 0")
        time.sleep(_POLL_SECONDS)


def _kill(children: list[_Child]) -> None:
    """End and reap the ranks that are still there."""
    for child in children:
        if not child.is_gone():
            child.killed = True
            os.kill(child.pid, signal.SIGKILL)
            _, child.status = os.waitpid(child.pid, 0)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Give this process one thread, as the other ranks have; afterwards what it had."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _own_excepthook() -> Iterator[None]:
    """Keep the excepthook that is there: torch puts its own around it with every group, and leaves it."""
    before = sys.excepthook
    try:
        yield
    finally:
        sys.excepthook = before


def _check_device(size: int, device: torch.device) -> None:
    if device.type != "cuda":
        return
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch has no types there
        raise NotApplicable(
            f"{size} processes start by forking, which a process that has used CUDA cannot do; "
            "build the recipe inside the ranks"
        )
    if torch.cuda.device_count() < size:
        raise NotApplicable(f"{size} processes need a GPU each; this machine has {torch.cuda.device_count()}")
