"""The loop: the learning rate is a function of progress, and falls to nothing inside any budget."""

from __future__ import annotations

import pytest

from effbench.budget import Budget
from effbench.clock import EpochClock, ExampleClock, PricedClock, StepClock
from effbench.terms import warmup_then_linear
from effbench.train import Lookahead, start, train
from small_runs import rates, straight, under_wall, vectors


@pytest.mark.parametrize("steps", [10, 20, 40])
def test_the_rate_falls_to_nothing_inside_any_budget_of_steps(steps):
    seen = rates(vectors(), f"{steps} steps", StepClock())
    assert len(seen) == steps
    peak = seen.index(max(seen))
    assert seen[-1] <= 0.01 * max(seen)
    assert seen[peak:] == sorted(seen[peak:], reverse=True)
    assert seen[: peak + 1] == sorted(seen[: peak + 1])
    assert seen[0] > 0


@pytest.mark.parametrize(
    ("budget", "clock"),
    [
        ("3 epochs", EpochClock()),
        ("100 examples", ExampleClock()),
        ("2s reference", PricedClock(2, lambda progress: 0.1)),
        ("2s reference", PricedClock(2, lambda progress: 0.1 if progress < 0.5 else 0.05, ((0.5, 0.3), (1.0, 0.2)))),
    ],
)
def test_the_rate_falls_to_nothing_inside_any_counted_budget(budget, clock):
    seen = rates(vectors(lr_schedule=straight), budget, clock)
    assert seen[-1] <= 0.01
    assert seen == sorted(seen, reverse=True)
    assert seen[0] == 1.0


def test_work_before_the_first_step_is_no_step_by_which_others_are_foretold():
    clock = PricedClock(2, lambda progress: 0.1, ((0.0, 1.2),))  # a teacher, say, that takes more than half
    seen = rates(vectors(lr_schedule=straight), "2s reference", clock)
    assert seen == pytest.approx([0.4, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05, 0.0])


@pytest.mark.parametrize(
    "seconds",
    [
        [0.2],
        [0.07],
        [0.1, 0.11, 0.09] * 20,
        [1.2, 0.06],  # the first step compiles
        [0.06, 0.06, 0.06, 0.9, 0.06],  # a hiccup
    ],
)
def test_the_rate_falls_to_nothing_inside_seconds_however_long_the_steps_turn_out(seconds):
    _, seen = under_wall(vectors(), seconds, "3s")
    peak = seen.index(max(seen))
    assert seen[-1] <= 0.01 * max(seen)
    assert seen[peak:] == sorted(seen[peak:], reverse=True)


def test_a_slow_first_step_or_a_hiccup_moves_the_schedule_by_its_own_length_alone():
    _, seen = under_wall(vectors(lr_schedule=straight), [1.0, 0.1], "4s")
    assert seen[:4] == pytest.approx([1.0, 0.75, 0.7, 0.675])
    _, seen = under_wall(vectors(lr_schedule=straight), [0.1, 0.1, 1.0, 0.1], "4s")
    assert seen[:5] == pytest.approx([1.0, 0.975, 0.925, 0.675, 0.65])


def test_a_step_has_the_rate_of_its_end():
    seen = rates(vectors(lr_schedule=straight), "10 steps", StepClock())
    assert seen == pytest.approx([1.0, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0])


def test_the_lookahead_never_tells_less_than_before():
    ahead = Lookahead(steady=False)
    told = [ahead.of(progress) for progress in (0.0, 0.3, 0.32, 0.34, 0.34, 0.9, 0.91)]
    assert told == pytest.approx([0.0, 0.3, 0.34, 0.36, 0.36, 0.9, 0.92])


def test_each_group_keeps_its_own_peak():
    recipe = vectors()
    training = start(recipe, 0)
    training.optimizer.param_groups[1]["initial_lr"] = 1.0
    for _ in train(training, Budget(4, "steps"), StepClock()):
        first, second = (group["lr"] for group in training.optimizer.param_groups)
        assert first == pytest.approx(0.01 * second)


@pytest.mark.parametrize("warmup", [0.0, 0.1, 0.5])
def test_warm_up_then_linear_decay(warmup):
    factor = warmup_then_linear(warmup)
    assert factor(warmup) == pytest.approx(1.0)
    assert factor(1.0) == 0.0
    assert 0.0 < factor(0.0) <= 1.0
    assert factor((1 + warmup) / 2) == pytest.approx(0.5)
