"""Groups of processes: when a rank comes to a bad end."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from effbench.distributed import launch
from effbench.distributed.group import Group
from effbench.distributed.launch import RankError, run_ranks
from effbench.errors import Diverged, NotApplicable, UnknownName
from forked import apart


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


def test_a_rank_whose_fault_has_no_words_is_told_of_by_its_traceback() -> None:
    class Speechless(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    def fail() -> None:
        raise Speechless

    with pytest.raises(RankError, match="rank 1 failed") as caught:
        fail_on(1, fail)
    assert "Speechless" in str(caught.value)


def test_a_rank_that_leaves_in_the_middle_as_if_all_were_well_is_told_of() -> None:
    with pytest.raises(RankError, match="rank 1 exited with 0 before its work was done"):
        fail_on(1, lambda: os._exit(0))


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
        pytest.skip("this machine has two GPUs, and what is told is that they lack")
    with pytest.raises(NotApplicable, match="2 processes need a GPU each"):
        run_ranks(2, lambda group: None, device=torch.device("cuda"))
