"""The loop: what is done once, at a progress."""

from __future__ import annotations

import dataclasses

import pytest

from effbench.budget import Budget
from effbench.clock import Ledger, WallClock
from effbench.recipe import Milestone, Training
from effbench.train import start, train
from small_runs import Time, run, straight, taking, vectors


def test_milestones_come_once_in_order_before_the_first_step_at_or_after_them():
    done: list[tuple[str, int, float]] = []

    def note(name: str):
        return lambda training: done.append((name, training.step, training.progress))

    marks = [("late", 0.9), ("c", 0.5), ("a", 0.0), ("d", 0.5), ("b", 0.3), ("never", 1.0)]
    milestones = tuple(Milestone(progress, note(name)) for name, progress in marks)
    run(vectors(milestones=milestones), "10 steps")
    assert done == [("a", 0, 0.0), ("b", 3, 0.3), ("c", 5, 0.5), ("d", 5, 0.5), ("late", 9, 0.9)]


def test_milestones_are_paid_for_and_may_use_the_budget_up():
    time = Time()

    def work(training: Training) -> None:
        time.seconds += 1.5

    recipe = taking(vectors(milestones=(Milestone(0.5, work),)), [0.25], time)
    training = start(recipe, 0, ledger=Ledger(time, time))
    for _ in train(training, Budget.parse("2s"), WallClock()):
        pass
    assert training.step == 4
    assert training.ledger.wall["extra"] == 1.5
    assert training.progress == 1.0


def test_the_time_of_a_milestone_moves_the_rate_of_the_next_step():
    time = Time()

    def work(training: Training) -> None:
        time.seconds += 1.0

    recipe = taking(vectors(milestones=(Milestone(0.5, work),), lr_schedule=straight), [0.25], time)
    training = start(recipe, 0, ledger=Ledger(time, time))
    group = training.optimizer.param_groups[0]
    seen = [group["lr"] / group["initial_lr"] for _ in train(training, Budget.parse("4s"), WallClock())]
    assert seen[8] == pytest.approx(1.0 - 3.25 / 4)


def test_finishing_is_done_once_at_the_end_and_on_the_clock():
    done: list[tuple[int, float]] = []
    time = Time()

    def finish(training: Training) -> None:
        done.append((training.step, training.progress))
        time.seconds += 5.0

    recipe = dataclasses.replace(taking(vectors(), [1.0], time), finish=finish)
    training = start(recipe, 0, ledger=Ledger(time, time))
    for _ in train(training, Budget.parse("3s"), WallClock()):
        pass
    assert done == [(3, 1.0)]
    assert training.ledger.wall["extra"] == 5.0
    assert training.ledger.spent_wall() == 8.0
