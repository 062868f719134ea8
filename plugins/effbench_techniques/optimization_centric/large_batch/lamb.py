"""LAMB: let the step of each layer be in proportion to the size of its weights, after Adam."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique
from effbench.optimizers import WeightByWeight, adam_direction, groups_at


@technique(
    "optimization_centric/large_batch",
    paper="You et al., Large Batch Optimization for Deep Learning: Training BERT in 76 Minutes, arXiv:1904.00962",
    claim="BERT in 76 minutes instead of 3 days, at batches of 32,768",
    title="LAMB",
    scope="tensor",
)
def lamb(recipe: Recipe, *, lr: float = 2e-2, beta1: float = 0.9, beta2: float = 0.999, limit: float = 10.0) -> Recipe:
    """Scale Adam's step, decay included, in each layer to the norm of the layer's weights.

    The step is `rate * min(|w|, limit) / |u| * u`, where `u = Adam's direction + decay * w` (the paper's phi is the
    identity, cut off). Biases and gains, which have one dimension, and layers of zeros are stepped as by AdamW. The
    parameter groups are the baseline's; decay is such that at a ratio of 1 it takes what the baseline's takes.

    When it helps: batches of tens of thousands, with a rate that grows with their root.
    When it does not: small batches; there, and with tuning at large ones, Adam is as good (Nado et al., A Large Batch
        Optimizer Reality Check, arXiv:2102.06356).

    lr: peak learning rate: the share of its norm by which a layer moves in a step.
    beta1: share of the mean gradient that stays from step to step, from 0, below 1.
    beta2: share of the mean square that stays from step to step, from 0, below 1.
    limit: largest norm of weights that counts; above 0.
    """
    if not 0.0 < lr < math.inf:
        raise InvalidTechnique(f"lamb: lr is {lr}; it should be a positive, finite rate")
    for name, beta in (("beta1", beta1), ("beta2", beta2)):
        if not 0.0 <= beta < 1.0:
            raise InvalidTechnique(f"lamb: {name} is {beta}; it should be 0 or more, and below 1")
    if not limit > 0.0:
        raise InvalidTechnique(f"lamb: limit is {limit}; it should be a norm above 0")

    def build(model: nn.Module) -> Optimizer:
        groups = groups_at(recipe.optimizer(model), lr)
        return WeightByWeight(groups, lamb_step, lr=lr, betas=(beta1, beta2), eps=1e-6, limit=limit)

    return recipe.swap(optimizer=build)


def lamb_step(weight: nn.Parameter, state: dict[str, Any], group: dict[str, Any]) -> None:
    """Step a weight by Adam's direction and decay, scaled to its norm where it is no vector."""
    assert weight.grad is not None
    change = adam_direction(weight.grad, state, group["betas"], group["eps"])
    change.add_(weight, alpha=group["weight_decay"])
    trust = ratio(weight, change, group["limit"]) if weight.ndim > 1 else 1.0
    weight.sub_(change.mul_(trust), alpha=group["lr"])


def ratio(weight: Tensor, change: Tensor, limit: float) -> Tensor:
    """Return the norm of the weights, `limit` at most, over that of their change; 1 where one of them is zero."""
    size, way = weight.norm().clamp_max(limit), change.norm()
    return torch.where((size > 0.0) & (way > 0.0), size / way, 1.0)
