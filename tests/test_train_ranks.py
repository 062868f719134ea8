"""The loop in several processes: ranks in step, and out of it."""

from __future__ import annotations

import pytest
import torch

from effbench.budget import Budget
from effbench.clock import CpuClock, Ledger, StepClock
from effbench.distributed.data_parallel import share_batches
from effbench.distributed.group import Group
from effbench.distributed.launch import run_ranks
from effbench.recipe import Recipe, Training
from effbench.train import start, train
from small_runs import vectors


class Watch:
    """A second a step on rank 0, two on the other; counts how often it is looked at."""

    def __init__(self) -> None:
        self.looks = 0

    def spent(self, training: Training) -> float:
        self.looks += 1
        return training.step * (1.0 + training.group.rank)


def in_two_ranks(recipe: Recipe, budget: str, watch) -> list[tuple[int, list[float], int, dict[str, int]]]:
    """Steps, progress after each, looks at the clock, and calls of collectives, of each rank."""

    def body(group: Group):
        clock = watch()
        training = start(recipe, 0, group=group)
        before = group.wire.traffic.so_far()
        seen = [training.progress for _ in train(training, Budget.parse(budget), clock)]
        calls = {name: sent.calls for name, sent in group.wire.traffic.since(before).items()}
        everyone: list[object] = [None] * group.size
        torch.distributed.all_gather_object(everyone, (training.step, seen, getattr(clock, "looks", 0), calls))
        return everyone

    return run_ranks(2, body)


def test_what_is_counted_needs_no_word_between_ranks():
    one, other = in_two_ranks(share_batches(vectors(), 2), "9 steps", StepClock)
    assert one == other == (9, [step / 9 for step in range(9)], 0, {})


def test_what_is_measured_is_the_word_of_rank_0_and_seldom_asked_for():
    one, other = in_two_ranks(share_batches(vectors(), 2), "200s", Watch)
    assert one == other
    steps, progress, looks, calls = one
    assert steps == 200
    assert progress == pytest.approx([step / 200 for step in range(200)])
    assert looks < 80
    assert calls == {"broadcast": looks}


def test_steps_that_differ_end_no_later_than_one_of_them() -> None:
    """Every fiftieth step lasts as long as a hundred others, as where ranks seldom send something."""

    class Uneven(Watch):
        def spent(self, training: Training) -> float:
            self.looks += 1
            return training.step + 100.0 * (training.step // 50)

    one, other = in_two_ranks(share_batches(vectors(), 2), "310s", Uneven)
    assert one == other
    steps, progress, looks, _ = one
    assert 310 <= steps + 100 * (steps // 50) <= 310 + 101
    assert progress == sorted(progress)
    assert looks < steps


def test_a_rank_out_of_step_goes_by_its_own_clock_and_asks_nobody():
    recipe = share_batches(vectors(), 2).swap(in_step=False)
    one, other = in_two_ranks(recipe, "20s", Watch)
    assert one == (20, [step / 20 for step in range(20)], 21, {})
    assert other == (10, [step / 10 for step in range(10)], 11, {})


def test_a_milestone_is_looked_at_as_long_as_it_takes():
    class Slow(Watch):
        def spent(self, training: Training) -> float:
            return super().spent(training) + training.kept.get("seconds", 0.0)

    def work(training: Training) -> None:
        training.kept["seconds"] = 50.0 * (1 - training.group.rank)

    one, other = in_two_ranks(share_batches(vectors(), 2).at(0.5, work), "200s", Slow)
    assert one == other
    assert one[0] == 150
    assert min(progress for progress in one[1] if progress > 0.55) == pytest.approx(0.75, abs=0.01)  # seen at once


def test_cpu_seconds_are_divided_among_ranks_out_of_step():
    def body(group: Group) -> tuple[float, float]:
        ledger = Ledger(cpu=iter([0.0, 0.0, 0.0, 3.0 + group.rank, 9.0]).__next__)
        training = start(vectors(), 0, group=group.apart(), ledger=ledger)
        CpuClock().spent(training)
        ledger.switch("data")
        return CpuClock().spent(training), training.group.together().sum_float(1.0)

    assert run_ranks(2, body) == (6.0, 2.0)
