"""Adan: Adam with Nesterov momentum, from the differences of gradients."""

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
    "optimization_centric/learning_rate",
    paper="Xie et al., Adan: Adaptive Nesterov Momentum Algorithm for Faster Optimizing Deep Models, arXiv:2208.06677",
    claim="ViT, ConvNeXt, GPT-2 and others: the quality of their own optimizers in about half the epochs",
    scope="element",
)
def adan(recipe: Recipe, *, lr: float = 2e-2, beta1: float = 0.98, beta2: float = 0.92, beta3: float = 0.99) -> Recipe:
    """Look ahead by the mean difference of successive gradients instead of by a gradient taken elsewhere.

    The step is `(mean gradient + beta2 * mean difference) / sqrt(mean square of (gradient + beta2 * difference))`, all
    three means corrected for their start at zero as in the authors' code. Decay is proximal: the stepped weight is
    divided by `1 + rate * decay`. The parameter groups are the baseline's, and so is what decay takes in a step. Betas
    are shares that stay, as in Adam; the paper writes one minus them. The rate should be 5 to 10 times AdamW's.

    When it helps: long runs with large rates, by the paper.
    When it does not: it keeps four tensors per weight where AdamW keeps two; independent evidence at a fixed budget is
        thin.

    lr: peak learning rate.
    beta1: share of the mean gradient that stays from step to step, from 0, below 1.
    beta2: share of the mean difference that stays, and how far to look ahead, from 0, below 1.
    beta3: share of the mean square that stays, from 0, below 1.
    """
    if not 0.0 < lr < math.inf:
        raise InvalidTechnique(f"adan: lr is {lr}; it should be a positive, finite rate")
    for name, beta in (("beta1", beta1), ("beta2", beta2), ("beta3", beta3)):
        if not 0.0 <= beta < 1.0:
            raise InvalidTechnique(f"adan: {name} is {beta}; it should be 0 or more, and below 1")

    def build(model: nn.Module) -> Optimizer:
        groups = groups_at(recipe.optimizer(model), lr)
        return WeightByWeight(groups, adan_step, lr=lr, betas=(beta1, beta2, beta3), eps=1e-8)

    return recipe.swap(optimizer=build)


def adan_step(weight: nn.Parameter, state: dict[str, Any], group: dict[str, Any]) -> None:
    """Step a weight, with proximal decay."""
    assert weight.grad is not None
    change = direction(weight.grad, state, group["betas"], group["eps"])
    weight.sub_(change, alpha=group["lr"]).div_(1.0 + group["lr"] * group["weight_decay"])


def direction(gradient: Tensor, state: dict[str, Any], betas: tuple[float, float, float], eps: float) -> Tensor:
    """Return the step at rate 1, shape of the gradient, and move the means in `state` on."""
    beta1, beta2, beta3 = betas
    if not state:
        state["step"], state["former"] = 0, gradient.clone()
        state["mean"], state["difference"], state["square"] = (torch.zeros_like(gradient) for _ in range(3))
    state["step"] += 1
    difference = gradient - state["former"]
    state["former"].copy_(gradient)
    state["mean"].lerp_(gradient, 1.0 - beta1)
    state["difference"].lerp_(difference, 1.0 - beta2)
    state["square"].lerp_(difference.mul_(beta2).add_(gradient).square_(), 1.0 - beta3)
    unbiased = [1.0 - beta ** state["step"] for beta in betas]
    ahead: Tensor = state["mean"] / unbiased[0] + state["difference"] * (beta2 / unbiased[1])
    return ahead.div_((state["square"] / unbiased[2]).sqrt_().add_(eps))
