"""The loss of a step: how much each example and each token counts."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import Tensor

from effbench import terms
from effbench.budget import Budget
from effbench.clock import StepClock
from effbench.distributed.group import Group
from effbench.distributed.launch import run_ranks
from effbench.distributed.sharing import share
from effbench.recipe import Batch, Recipe, Training
from effbench.terms import IGNORED
from effbench.toys import TOYS
from effbench.train import start, train
from small_runs import vectors, weights


def token_batch() -> Batch:
    """Two texts: one token with the loss 4, three tokens with the loss 0."""
    targets = torch.tensor([[0, IGNORED, IGNORED], [1, 1, 1]])
    return Batch(torch.zeros(2, 3), targets, torch.arange(2), terms.valid_targets(targets))


def test_the_loss_of_a_step_is_the_mean_over_tokens_and_not_of_means():
    batch = share(token_batch(), start(vectors(), 0))
    assert batch.weight.tolist() == [0.25, 0.75]
    losses = torch.tensor([4.0, 0.0])
    assert (losses * batch.weight).sum() == 1.0
    assert sum(float((losses[i : i + 1] * batch[i : i + 1].weight).sum()) for i in range(2)) == 1.0


def test_a_step_without_any_valid_target_divides_by_nothing():
    batch = token_batch().replace(weight=torch.zeros(2))
    assert share(batch, start(vectors(), 0)).weight.tolist() == [0.0, 0.0]


def test_weights_sum_to_one_over_all_ranks():
    def body(group: Group) -> float:
        batch = share(token_batch()[group.rank : group.rank + 1], start(vectors(), 0, group=group))
        return float(batch.weight.sum())

    assert run_ranks(2, body) == 0.25


def accumulating(recipe: Recipe, parts: int) -> Recipe:
    def gradient(training: Training, batch: Batch) -> Tensor:
        size = len(batch) // parts
        return torch.cat([recipe.gradient(training, batch[i : i + size]) for i in range(0, len(batch), size)])

    return dataclasses.replace(recipe, gradient=gradient)


def test_accumulation_gives_the_gradient_of_the_whole_batch_and_changes_no_count_and_no_rate():
    whole, parts = (start(recipe, 0) for recipe in (TOYS["text"](), accumulating(TOYS["text"](), 4)))
    seen = []
    for training in (whole, parts):
        group = training.optimizer.param_groups[0]
        steps = train(training, Budget(10, "steps"), StepClock())
        seen.append([(group["lr"], training.examples, training.tokens) for _ in steps])
    assert seen[0] == seen[1]
    assert len(seen[0]) == 10
    assert (parts.examples, parts.tokens) == (10 * 16, 10 * 16 * 12)
    assert parts.losses.shape == (16,)
    torch.testing.assert_close(weights(whole), weights(parts), rtol=0, atol=1e-6)


def test_the_token_loss_of_an_example_is_the_mean_over_its_valid_targets():
    logits = torch.zeros(2, 3, 4)
    logits[0, 0, 0] = 1.0
    losses = terms.cross_entropy(logits, token_batch())
    first = torch.nn.functional.cross_entropy(logits[0, :1], torch.tensor([0]))
    assert losses.tolist() == pytest.approx([float(first), float(torch.tensor(4.0).log())])


def test_targets_may_be_class_probabilities():
    logits = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    hard, soft = torch.tensor([0, 1]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    batches = [Batch(logits, targets, torch.arange(2), terms.valid_targets(targets)) for targets in (hard, soft)]
    torch.testing.assert_close(*(terms.cross_entropy(logits, batch) for batch in batches))
    assert batches[1].weight.tolist() == [1.0, 1.0]
