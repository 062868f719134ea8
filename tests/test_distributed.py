from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from effbench.distributed import launch
from effbench.distributed.group import Group
from effbench.distributed.launch import RankError, run_ranks
from effbench.errors import Diverged, NotApplicable, UnknownName

torch.set_num_threads(1)


def children() -> set[int]:
    """Processes whose parent is this one, zombies too."""
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=True
    )
    return {int(pid) for pid in listed.stdout.split()}


@pytest.fixture(autouse=True)
def nothing_is_left() -> None:
    """No test leaves a process, a zombie, a group, another number of threads or another excepthook."""
    gc.collect()  # what tests of other modules left
    before, others = facts(), children()
    yield
    gc.collect()  # the traceback of a failure holds its group
    assert not {pid for pid in children() - others if not command(pid).startswith("ps")}
    assert facts() == before


def facts() -> tuple[object, ...]:
    files = len(list(Path("/dev/fd").iterdir()))
    return torch.get_num_threads(), sys.excepthook, threading.active_count(), dist.is_initialized(), files


def command(pid: int) -> str:
    found = subprocess.run(["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "ps, which is gone"


# --- what ranks can tell each other -------------------------------------------------------------------------------


def test_a_group_of_one_forks_nothing_and_communicates_nothing() -> None:
    here = os.getpid()
    assert run_ranks(1, lambda group: (os.getpid(), group)) == (here, Group())
    value = torch.ones(3)
    assert Group().sum(value) is value
    assert Group().first(value) is value


@pytest.mark.parametrize("size", [2, 3])
def test_collectives_give_every_rank_the_same(size: int) -> None:
    def body(group: Group) -> tuple[list[float], float, float, list[int]]:
        mine = torch.tensor([1.0, 10.0]) * (group.rank + 1)
        results = (
            group.sum(mine).tolist(),
            group.sum_float(0.5 + group.rank),
            group.agree(7.5 + group.rank),
            group.first(torch.tensor([4, 5]) + group.rank).tolist(),
        )
        gathered: list[object] = [None] * group.size
        dist.all_gather_object(gathered, results)
        assert gathered == [results] * group.size
        assert mine.tolist() == [1.0 * (group.rank + 1), 10.0 * (group.rank + 1)]  # left as it was
        return results

    total = size * (size + 1) / 2
    assert run_ranks(size, body) == ([total, 10 * total], 0.5 * size + size * (size - 1) / 2, 7.5, [4, 5])


def test_rank_0_is_this_process_and_the_others_see_what_it_has_and_keep_what_they_make() -> None:
    notes = ["before"]

    def body(group: Group) -> tuple[int, list[str], list[object]]:
        notes.append(f"rank {group.rank}")
        everyone: list[object] = [None] * group.size
        dist.all_gather_object(everyone, (os.getpid(), list(notes), torch.get_num_threads()))
        return os.getpid(), notes, everyone

    pid, seen, everyone = run_ranks(2, body)
    assert pid == os.getpid()
    assert seen is notes
    assert notes == ["before", "rank 0"]
    assert everyone[0] == (pid, ["before", "rank 0"], 1)
    assert everyone[1][0] != pid
    assert everyone[1][1:] == (["before", "rank 1"], 1)


def test_each_rank_has_one_thread_and_the_process_gets_its_threads_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        threads = run_ranks(2, lambda group: group.sum_float(torch.get_num_threads()))
        assert threads == 2.0
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_ports_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
        monkeypatch.setenv("MASTER_PORT", str(taken.getsockname()[1]))
        assert run_ranks(2, lambda group: group.sum_float(1.0)) == 2.0


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


def test_two_trials_run_at_once() -> None:
    def body() -> None:
        sums = [run_ranks(2, lambda group: group.sum_float(1.0 + group.rank)) for _ in range(3)]
        sys.stdout.write(f"{sums}\n")

    trials = [apart(body) for _ in range(2)]
    assert [all_of(pipe).strip() for _, pipe in trials] == ["[3.0, 3.0, 3.0]"] * 2
    for pid, _ in trials:
        os.waitpid(pid, 0)


def test_output_that_waits_to_be_written_is_written_once() -> None:
    def body() -> None:
        sys.stdout.write("before ")
        run_ranks(2, lambda group: sys.stdout.write(f"rank{group.rank} "))

    pid, pipe = apart(body)
    assert sorted(all_of(pipe).split()) == ["before", "rank0", "rank1"]
    os.waitpid(pid, 0)


# --- when a rank comes to a bad end -------------------------------------------------------------------------------


def fail_on(rank: int, how, *, size: int = 2) -> None:
    """Run ranks of which one fails by `how()` while the others wait for it."""

    def body(group: Group) -> None:
        if group.rank == rank:
            how()
        group.sum(torch.ones(1))

    run_ranks(size, body)


def find_a_flaw() -> None:
    raise ZeroDivisionError("found on the way")


@pytest.mark.parametrize(("rank", "size"), [(1, 2), (2, 3)])
def test_a_rank_that_fails_lends_its_own_traceback_to_the_error(rank: int, size: int) -> None:
    with pytest.raises(RankError, match=f"rank {rank} failed") as caught:
        fail_on(rank, find_a_flaw, size=size)
    assert "in find_a_flaw" in str(caught.value)
    assert "ZeroDivisionError: found on the way" in str(caught.value)
    assert isinstance(caught.value.__cause__, RuntimeError)  # that rank 0 lost its peer


def test_rank_0_fails_as_itself() -> None:
    with pytest.raises(ZeroDivisionError, match="found on the way"):
        fail_on(0, find_a_flaw, size=3)


def test_where_all_fail_alike_rank_0_speaks_for_them() -> None:
    with pytest.raises(ZeroDivisionError):
        run_ranks(3, lambda group: find_a_flaw())


def test_a_rank_that_is_killed_is_told_of_by_its_signal() -> None:
    with pytest.raises(RankError, match=r"rank 1 was ended by signal 9 \(SIGKILL\)"):
        fail_on(1, lambda: os.kill(os.getpid(), signal.SIGKILL))


def test_a_rank_that_is_killed_while_another_still_waits_is_told_of() -> None:
    def body(group: Group) -> None:
        if group.rank == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.recv(torch.ones(1), 2 if group.rank == 0 else 0)  # rank 1 waits for rank 0, which lives

    with pytest.raises(RankError, match=r"rank 2 was ended by signal 9 \(SIGKILL\)"):
        run_ranks(3, body)


def test_a_rank_that_leaves_is_told_of_by_its_exit_code() -> None:
    with pytest.raises(RankError, match="rank 1 exited with 3"):
        fail_on(1, lambda: os._exit(3))


def test_a_rank_that_dies_before_the_group_meets_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch.gc, "freeze", lambda: os._exit(4))  # the first thing that a forked rank does
    with pytest.raises(RankError, match="rank 1 exited with 4"):
        run_ranks(2, lambda group: None)


def test_faults_that_effbench_explains_stay_what_they_are() -> None:
    def diverge() -> None:
        raise Diverged("the loss was nan at step 3")

    with pytest.raises(Diverged, match="the loss was nan at step 3") as caught:
        fail_on(1, diverge)
    assert "rank 1 failed" in caught.value.__notes__[0]

    def misname() -> None:
        raise UnknownName("technique", "mixpu", ["mixup"])

    with pytest.raises(UnknownName, match="did you mean 'mixup'"):
        fail_on(1, misname)


def test_a_failure_while_the_others_are_busy_elsewhere_ends_them() -> None:
    began = time.monotonic()

    def body(group: Group) -> None:
        if group.rank == 0:
            find_a_flaw()
        time.sleep(600)

    with pytest.raises(ZeroDivisionError):
        run_ranks(2, body)
    assert time.monotonic() - began < 60


def test_a_rank_that_takes_no_part_in_a_collective_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_TO_PART_SECONDS", 0.2)
    with pytest.raises(RuntimeError, match=r"closed|reset") as caught:
        run_ranks(2, lambda group: group.sum(torch.ones(1)) if group.rank == 0 else None)
    assert "rank 1 had ended" in caught.value.__notes__[0]


def test_a_rank_that_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_TO_PART_SECONDS", 0.1)
    monkeypatch.setattr(launch, "_TO_END_SECONDS", 0.2)
    with pytest.raises(RankError, match=r"rank 1 did not end within 0\.2 seconds of rank 0"):
        run_ranks(2, lambda group: time.sleep(600) if group.rank == 1 else None)


def test_ctrl_c_ends_all() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail_on(0, interrupted)


@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM"])
def test_when_rank_0_is_killed_no_rank_outlives_it(how: str) -> None:
    def body(group: Group) -> None:
        if group.rank:
            os.write(1, b"here\n")
        time.sleep(20)
        os.write(1, b"outlived it")

    trial, pipe = apart(lambda: run_ranks(3, body))
    with os.fdopen(pipe) as output:
        assert [output.readline() for _ in range(2)] == ["here\n"] * 2
        os.kill(trial, getattr(signal, how))
        os.waitpid(trial, 0)
        assert output.read() == ""  # written by none, and waiting for the last of them


def test_after_a_failure_the_next_group_is_none_the_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, fork = [], os.fork

    def counting_fork() -> int:
        tasks = Path("/proc/self/task")  # which only Linux has
        threads.append(len(list(tasks.iterdir())) if tasks.exists() else 1)
        return fork()

    monkeypatch.setattr(launch.os, "fork", counting_fork)
    for _ in range(3):
        with pytest.raises(RankError):
            fail_on(1, find_a_flaw)
        assert run_ranks(2, lambda group: group.sum_float(1.0)) == 2.0
    assert threads == [threads[0]] * 6  # threads of a former group would not survive the fork


def test_groups_do_not_nest() -> None:
    with pytest.raises(RuntimeError, match="groups do not nest"):
        run_ranks(2, lambda group: run_ranks(2, lambda inner: None))


def test_ranks_need_a_gpu_each() -> None:
    if torch.cuda.device_count() >= 2:
        pytest.skip("this machine has them")
    with pytest.raises(NotApplicable, match="2 processes need a GPU each"):
        run_ranks(2, lambda group: None, device=torch.device("cuda"))
