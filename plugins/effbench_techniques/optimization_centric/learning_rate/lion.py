"""Lion: step by the sign of the momentum."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique


@technique(
    "optimization_centric/learning_rate",
    paper="Chen et al., Symbolic Discovery of Optimization Algorithms, arXiv:2302.06675",
    claim="up to 5 times less compute for pre-training on JFT; ViT on ImageNet: +2 points",
)
def lion(recipe: Recipe, *, lr: float = 2e-3, beta1: float = 0.9, beta2: float = 0.99) -> Recipe:
    """Move every weight by the same amount, in the direction of the sign of its momentum.

    The direction is the sign of `beta1 * momentum + (1 - beta1) * gradient`; the momentum then moves on with `beta2`.
    The parameter groups are the baseline's, and so is what weight decay takes from a weight in a step, rate times
    decay. The rate should be 3 to 10 times smaller than AdamW's, as the paper advises.

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
        baseline = recipe.optimizer(model).param_groups
        groups = [{"params": g["params"], "weight_decay": g["weight_decay"] * g["lr"] / lr} for g in baseline]
        return Lion(groups, lr, (beta1, beta2))

    return recipe.swap(optimizer=build)


class Lion(Optimizer):
    """Sign descent with interpolated momentum and decoupled weight decay."""

    def __init__(self, groups: list[dict[str, Any]], lr: float, betas: tuple[float, float]) -> None:
        super().__init__(groups, {"lr": lr, "betas": betas, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Take one step, after `closure`, if there is one; return its loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            lr, (beta1, beta2) = group["lr"], group["betas"]
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(weight)
                momentum = state["momentum"]
                weight.mul_(1.0 - lr * group["weight_decay"])
                weight.sub_(momentum.lerp(weight.grad, 1.0 - beta1).sign_(), alpha=lr)
                momentum.lerp_(weight.grad, 1.0 - beta2)
        return loss
