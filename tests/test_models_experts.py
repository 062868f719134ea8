"""Mixtures of experts as models: where they stand, and that their workload keeps them in balance."""

from __future__ import annotations

import torch

from effbench.distributed.sharing import share
from effbench.models import switch_gpt
from effbench.models.experts import Experts, imbalance
from effbench.models.transformer import FeedForward
from effbench.terms import backward
from effbench.train import start
from effbench.workloads.kjv_switch import workload

torch.set_num_threads(1)


def test_every_other_block_has_experts() -> None:
    model = switch_gpt(20, depth=5, experts=3)
    assert [type(block.feed_forward) for block in model.blocks] == [
        FeedForward,
        Experts,
        FeedForward,
        Experts,
        FeedForward,
    ]
    assert model.blocks[1].feed_forward.router.out_features == 3
    assert len(model.blocks[1].feed_forward.first) == 3


def test_the_workload_adds_a_hundredth_of_the_imbalance() -> None:
    training = start(workload.recipe(torch.device("cpu")), seed=0)
    recipe, layer = training.recipe, training.model.blocks[1].feed_forward
    batch = share(recipe.loader(torch.arange(16), training), training)

    def slope(gradient) -> torch.Tensor:
        training.model.zero_grad()
        gradient(training, batch)
        return layer.router.weight.grad.clone()

    added = slope(recipe.gradient) - slope(backward)
    seen = []
    layer.router.register_forward_hook(lambda module, given, output: seen.append(output))
    training.model(batch.inputs)
    chances = seen[0].softmax(1)
    expected = torch.autograd.grad(0.01 * imbalance(chances, chances.argmax(1)), layer.router.weight)[0]
    torch.testing.assert_close(added, expected, rtol=1e-3, atol=1e-6)
