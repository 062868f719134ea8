"""The loop: what a budget buys, and what a step does."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import Tensor, nn

from effbench import terms
from effbench.budget import Budget
from effbench.clock import EpochClock, ExampleClock, Ledger, PricedClock, StepClock, TokenClock, WallClock
from effbench.errors import NotApplicable
from effbench.recipe import Batch, Training
from effbench.toys import TOYS
from effbench.train import Positions, start, take_step, train
from small_runs import Time, noting, run, taking, under_wall, vectors, weights

# --- how much is done ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "clock", "steps"),
    [
        ("6 steps", StepClock(), 6),
        ("1 step", StepClock(), 1),
        ("1.5 steps", StepClock(), 2),
        ("2 epochs", EpochClock(), 5),
        ("96 examples", ExampleClock(), 6),
        ("97 examples", ExampleClock(), 7),
        ("1000 tokens", TokenClock(), 6),
        ("6s reference", PricedClock(6, lambda progress: 0.1), 60),
    ],
)
def test_a_budget_buys_so_many_steps(budget, clock, steps):
    training = run(TOYS["text"](), budget, clock)
    assert training.step == steps
    assert training.examples == 16 * steps
    assert training.tokens == 16 * 12 * steps
    assert training.progress == 1.0


def test_seconds_end_with_the_step_in_which_they_run_out():
    training, _ = under_wall(vectors(), [0.5], "2.2s")
    assert training.step == 5
    assert training.ledger.spent_wall() == 2.5


def test_what_the_consumer_does_between_steps_is_not_paid_for():
    time = Time()
    training = start(taking(vectors(), [0.5], time), 0, ledger=Ledger(time, time))
    for _ in train(training, Budget.parse("2s"), WallClock()):
        time.seconds += 0.75  # a progress bar
        with training.ledger.line("evaluation"):
            time.seconds += 1.0
    assert training.step == 4
    assert training.ledger.wall == dict.fromkeys(training.ledger.wall, 0.0) | {
        "forward_backward": 2.0,
        "idle": 3.0,
        "evaluation": 4.0,
    }
    assert sum(training.ledger.wall.values()) == time()


def test_progress_only_rises_even_if_a_clock_goes_back():
    class Jumping:
        spoken = iter([0.0, 3.0, 1.0, 2.0, 4.0, -5.0, 10.0])

        def spent(self, training: Training) -> float:
            return next(self.spoken)

    training = start(vectors(), 0)
    seen = [training.progress for _ in train(training, Budget(10, "joules"), Jumping())]
    assert seen == [0.0, 0.3, 0.3, 0.3, 0.4, 0.4]
    assert training.progress == 1.0


def test_a_budget_of_tokens_is_refused_where_there_are_none():
    with pytest.raises(NotApplicable, match="budget of tokens"):
        run(vectors(), "100 tokens", TokenClock())


def test_a_spent_budget_buys_no_step():
    assert run(vectors(), "1s reference", PricedClock(1, lambda progress: 0.1, ((0.0, 2.0),))).step == 0


def test_stopping_in_the_middle_leaves_a_training_that_can_be_evaluated():
    training = start(vectors(), 0)
    steps = train(training, Budget(6, "steps"), StepClock())
    next(steps)
    next(steps)
    steps.close()
    assert training.step == 2
    assert training.recipe.eval_model(training) is training.model


# --- what a step does ---------------------------------------------------------------------------------------------


def test_a_step_is_the_textbooks():
    recipe = vectors(
        model=lambda: nn.Linear(8, 3),
        optimizer=lambda model: torch.optim.SGD(model.parameters(), lr=0.5),
        lr_schedule=lambda progress: 0.5,
        update=terms.step,
    )
    seen: list[Tensor] = []
    training = run(noting(recipe, seen), "3 steps")
    torch.manual_seed(0)
    twin = start(recipe, 0).model
    for positions in seen:
        inputs, targets = recipe.dataset.inputs[positions], recipe.dataset.targets[positions]
        loss = torch.nn.functional.cross_entropy(twin(inputs), targets)
        gradients = torch.autograd.grad(loss, list(twin.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(twin.parameters(), gradients, strict=True):
                parameter -= 0.25 * gradient
    for one, other in zip(training.model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)
        assert one.grad is None


def test_a_step_outside_the_loop_counts_as_one():
    training = start(vectors(), 0)
    take_step(training, Positions(training.recipe.sampler(training)))
    assert (training.step, training.examples, training.tokens) == (1, 16, 0)
    assert training.losses.shape == (16,)
    assert not training.losses.requires_grad


def test_techniques_draw_from_a_stream_that_shifts_neither_order_nor_dropout():
    def run_drawing(count: int) -> Tensor:
        recipe = vectors()

        def transform(batch: Batch, training: Training) -> Batch:
            torch.rand(count, generator=training.rng)
            return recipe.transform(batch, training)

        return weights(run(dataclasses.replace(recipe, transform=transform)))

    assert run_drawing(1).equal(run_drawing(1000))


def test_placing_and_building_may_draw_random_numbers_without_moving_the_initial_weights():

    plain, drawn = (
        start(vectors(placement=placement), 0)
        for placement in (terms.as_it_is, lambda model: (torch.rand(5), model)[1])
    )
    assert weights(plain).equal(weights(drawn))
