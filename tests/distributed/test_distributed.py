"""Groups of processes: what ranks can tell each other."""

from __future__ import annotations

import os
import socket
import sys

import pytest
import torch
import torch.distributed as dist

from effbench.distributed.group import Group
from effbench.distributed.launch import run_ranks
from forked import all_of, apart


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
