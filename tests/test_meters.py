"""Meters: operations and memory of a step, against what can be counted by hand."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import Tensor, nn

from effbench import meters
from effbench.budget import Budget
from effbench.clock import StepClock
from effbench.meters import MIB, Meter, flop_of_a_step, peak_memory_of_a_step
from effbench.recipe import Batch, Examples, Recipe, Training
from effbench.toys import TOYS
from effbench.train import start, train

torch.set_num_threads(1)


def linear(wide: int = 6) -> Recipe:
    """16 examples of 8 numbers through one matrix."""
    recipe = TOYS["vectors"]()
    return dataclasses.replace(
        recipe,
        model=lambda: nn.Linear(8, wide),
        optimizer=lambda model: torch.optim.SGD(model.parameters(), lr=0.1),
        update=lambda training: training.optimizer.step(),
    )


def test_the_operations_of_a_matrix_are_two_for_each_weight_and_example_forward_and_again_backward():
    forward = 2 * 16 * 8 * 6
    assert flop_of_a_step(start(linear(), 0)) == 2 * forward  # inputs need no gradient


def test_accumulation_and_a_second_gradient_are_counted():
    recipe = linear()

    def twice(training: Training, batch: Batch) -> Tensor:
        recipe.gradient(training, batch)
        return recipe.gradient(training, batch)

    forward = 2 * 16 * 8 * 6
    assert flop_of_a_step(start(dataclasses.replace(recipe, gradient=twice), 0)) == 4 * forward


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Parameter(torch.ones(1, 2, 4, 8))

    def forward(self, inputs: Tensor) -> Tensor:
        q = self.q.expand(len(inputs), -1, -1, -1)
        return nn.functional.scaled_dot_product_attention(q, q, q)[:, 0, :3, 0] + inputs.sum() * 0


def test_attention_is_counted_though_the_fast_kernel_hides_it():
    recipe = dataclasses.replace(linear(), model=Attention)
    products = 2 * (2 * 16 * 2 * 4 * 4 * 8)  # q k' and softmax v
    assert flop_of_a_step(start(recipe, 0)) == 3 * products


def holding(recipe: Recipe, mib: int) -> Recipe:
    """Hold so much more memory in the gradient."""

    def gradient(training: Training, batch: Batch) -> Tensor:
        held = torch.empty(mib * MIB, dtype=torch.uint8)
        losses = recipe.gradient(training, batch)
        del held
        again = torch.empty(mib * MIB // 2, dtype=torch.uint8)  # when the first is free again: no higher peak
        del again
        return losses

    return dataclasses.replace(recipe, gradient=gradient)


def test_the_peak_is_exact_and_not_the_sum_of_what_is_held_one_after_the_other():
    plain = peak_memory_of_a_step(start(linear(), 0))
    assert 0 < plain < 0.1
    for mib in (1, 7):
        more = peak_memory_of_a_step(start(holding(linear(), mib), 0))
        assert more == pytest.approx(mib + plain, abs=0.01)


def test_memory_that_is_held_before_the_step_is_left_out():
    training = start(linear(), 0)
    held = torch.empty(64 * MIB, dtype=torch.uint8)
    assert peak_memory_of_a_step(training) < 0.1
    del held


def test_the_peak_grows_with_the_batch():
    dataset = Examples(torch.randn(4096, 8), torch.zeros(4096, dtype=torch.long))

    def peak(size: int) -> float:
        recipe = dataclasses.replace(linear(512), dataset=dataset, batch_size=lambda progress: size)
        return peak_memory_of_a_step(start(recipe, 0))

    small, large = peak(1024), peak(4096)
    logits = 1024 * 512 * 4 / MIB
    assert small > 2 * logits
    assert large == pytest.approx(4 * small, rel=0.05)


@pytest.mark.parametrize("measure", [flop_of_a_step, peak_memory_of_a_step])
def test_measuring_counts_for_no_step_example_or_second_of_the_run(measure):
    training = start(TOYS["text"](), 0)
    for _ in train(training, Budget(2, "steps"), StepClock()):
        pass
    with training.ledger.line("metering"):
        before = dict(training.ledger.wall)
        counts = (training.step, training.examples, training.tokens)
        assert measure(training) > 0
    assert (training.step, training.examples, training.tokens) == counts == (2, 32, 384)
    assert training.ledger.wall["metering"] > before["metering"]
    for line, seconds in before.items():
        assert line in {"metering", "idle"} or training.ledger.wall[line] == seconds


def test_the_meters_of_every_trial_are_offered():
    offered = meters.effbench_meters()
    assert all(isinstance(meter, Meter) for meter in offered)
    assert [meter.name for meter in offered] == ["flop_per_step", "peak_memory_mib"]
