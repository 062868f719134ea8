"""LARS: let the step of each layer be in proportion to the size of its weights, after SGD."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique
from effbench.optimizers import WeightByWeight, groups_at


@technique(
    "optimization_centric/large_batch",
    paper="You et al., Large Batch Training of Convolutional Networks, arXiv:1708.03888",
    claim="ImageNet, ResNet-50: batches of 32,768 without loss of accuracy",
    title="LARS",
    scope="tensor",
)
def lars(recipe: Recipe, *, lr: float = 1.0, momentum: float = 0.9, trust: float = 0.02) -> Recipe:
    """Scale the gradient of each layer to the norm of the layer's weights, before momentum adds it up.

    The gradient of a layer is multiplied by `trust * |w| / (|g| + decay * |w|)`, so that without momentum it moves by
    `rate * trust` times its norm. Biases and gains, which have one dimension, and layers of zeros are stepped as by
    SGD. The parameter groups are the baseline's; decay is such that at a ratio of 1 it takes what the baseline's takes.

    When it helps: batches of thousands of images, at rates at which some layers would diverge.
    When it does not: small batches; there, and with tuning at large ones, SGD with Nesterov momentum is as good (Nado
        et al., A Large Batch Optimizer Reality Check, arXiv:2102.06356).

    lr: peak learning rate.
    momentum: share of the sum of gradients that stays from step to step, from 0 (none), below 1.
    trust: share of its norm by which a layer moves at a rate of 1, above 0.
    """
    if not 0.0 < lr < math.inf:
        raise InvalidTechnique(f"lars: lr is {lr}; it should be a positive, finite rate")
    if not 0.0 <= momentum < 1.0:
        raise InvalidTechnique(f"lars: momentum is {momentum}; it should be 0 or more, and below 1")
    if not 0.0 < trust < math.inf:
        raise InvalidTechnique(f"lars: trust is {trust}; it should be a positive, finite share")

    def build(model: nn.Module) -> Optimizer:
        groups = groups_at(recipe.optimizer(model), lr)
        for group in groups:
            group["weight_decay"] *= 1.0 - momentum  # which repeats it
        return WeightByWeight(groups, lars_step, lr=lr, momentum=momentum, trust=trust)

    return recipe.swap(optimizer=build)


def lars_step(weight: nn.Parameter, state: dict[str, Any], group: dict[str, Any]) -> None:
    """Step a weight by the running sum of its gradients, each scaled to its norm where it is no vector."""
    assert weight.grad is not None
    pull = weight.grad.add(weight, alpha=group["weight_decay"])
    if weight.ndim > 1:
        pull.mul_(ratio(weight, weight.grad, group["weight_decay"], group["trust"]))
    if not state:
        state["momentum"] = torch.zeros_like(weight)
    state["momentum"].mul_(group["momentum"]).add_(pull)
    weight.sub_(state["momentum"], alpha=group["lr"])


def ratio(weight: Tensor, gradient: Tensor, decay: float, trust: float) -> Tensor:
    """Return `trust * |w| / (|g| + decay * |w|)`; 1 where weights or gradient are zero."""
    size, slope = weight.norm(), gradient.norm()
    return torch.where((size > 0.0) & (slope > 0.0), trust * size / (slope + decay * size), 1.0)
