"""Lion: step by the sign of the momentum."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique
from effbench.optimizers import WeightByWeight, groups_at


@technique(
    "optimization_centric/learning_rate",
    paper="Chen et al., Symbolic Discovery of Optimization Algorithms, arXiv:2302.06675",
    claim="up to 5 times less compute for pre-training on JFT; ViT on ImageNet: +2 points",
    scope="element",
)
def lion(recipe: Recipe, *, lr: float = 2e-3, beta1: float = 0.9, beta2: float = 0.99) -> Recipe:
    """Move every weight by the same amount, in the direction of the sign of its momentum.

    The direction is the sign of `beta1 * momentum + (1 - beta1) * gradient`; the momentum then moves on with `beta2`.
    The parameter groups are the baseline's, and so is what weight decay takes from a weight in a step. The rate should
    be 3 to 10 times smaller than AdamW's, as the paper advises.

    When it helps: pre-training with large batches, by the paper; it keeps one tensor per weight where AdamW keeps two.
    When it does not: no gain or a loss for BERT and T5 against a baseline whose rate has decayed (Kaddour et al., No
        Train No Gain, arXiv:2307.06440); it can fall behind AdamW (Semenov et al., Benchmarking Optimizers for Large
        Language Model Pretraining, arXiv:2509.01440).

    lr: peak learning rate, by which each weight moves in a step at the peak.
    beta1: share of the momentum in the direction of the step, from 0, below 1.
    beta2: share of the momentum that stays from step to step, from 0, below 1.
    """
    if not 0.0 < lr < math.inf:
        raise InvalidTechnique(f"lion: lr is {lr}; it should be a positive, finite rate")
    for name, beta in (("beta1", beta1), ("beta2", beta2)):
        if not 0.0 <= beta < 1.0:
            raise InvalidTechnique(f"lion: {name} is {beta}; it should be 0 or more, and below 1")

    def build(model: nn.Module) -> Optimizer:
        return WeightByWeight(groups_at(recipe.optimizer(model), lr), lion_step, lr=lr, betas=(beta1, beta2))

    return recipe.swap(optimizer=build)


def lion_step(weight: nn.Parameter, state: dict[str, Any], group: dict[str, Any]) -> None:
    """Step a weight by the sign of its interpolated momentum, with decoupled decay."""
    assert weight.grad is not None
    if not state:
        state["momentum"] = torch.zeros_like(weight)
    lr, momentum, (beta1, beta2) = group["lr"], state["momentum"], group["betas"]
    weight.mul_(1.0 - lr * group["weight_decay"])
    weight.sub_(momentum.lerp(weight.grad, 1.0 - beta1).sign_(), alpha=lr)
    momentum.lerp_(weight.grad, 1.0 - beta2)
