"""Prodigy: estimate how far the solution is, and take the learning rate from that."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique
from effbench.optimizers import groups_at, loss_of


@technique(
    "optimization_centric/learning_rate",
    paper="Mishchenko and Defazio, Prodigy: An Expeditiously Adaptive Parameter-Free Learner, arXiv:2306.06101",
    claim="close to hand-tuned Adam on vision and language tasks, without a learning rate to tune",
)
def prodigy(
    recipe: Recipe, *, scale: float = 1.0, first: float = 1e-6, beta1: float = 0.9, beta2: float = 0.999
) -> Recipe:
    """Let Adam's rate be a lower bound of the distance to the solution, which grows while gradients agree.

    The distance d is the largest value so far of `sum of <gradient, start - weights> / |sum of gradients|`, both sums
    weighted by d^2 and by the schedule, and with the memory sqrt(beta2); the norm is the sum of absolute values. One d
    serves the whole model. The baseline's schedule multiplies it; groups are the baseline's, and so is what weight
    decay takes from a weight in a step.

    When it helps: where there is no budget for tuning a rate.
    When it does not: beside a tuned rate it has nothing to win; short budgets, in which d must first grow. Its
        schedule-free form scored 0.0000 in AlgoPerf (Kasimbeg et al., arXiv:2502.15015).

    scale: what the distance is multiplied with at the peak of the schedule; 1 is the paper's.
    first: distance to begin with, smaller than any that could be right.
    beta1: share of the mean gradient that stays from step to step, from 0, below 1.
    beta2: share of the mean square that stays from step to step, above 0, below 1.
    """
    for name, value in (("scale", scale), ("first", first)):
        if not 0.0 < value < math.inf:
            raise InvalidTechnique(f"prodigy: {name} is {value}; it should be positive and finite")
    if not 0.0 <= beta1 < 1.0:
        raise InvalidTechnique(f"prodigy: beta1 is {beta1}; it should be 0 or more, and below 1")
    if not 0.0 < beta2 < 1.0:
        raise InvalidTechnique(f"prodigy: beta2 is {beta2}; it should be a share between 0 and 1")

    def build(model: nn.Module) -> Optimizer:
        return Prodigy(groups_at(recipe.optimizer(model), scale), scale, (beta1, beta2), first)

    return recipe.swap(optimizer=build)


class Prodigy(Optimizer):
    """Adam with an estimated distance as its rate.

    The distance and both sums are kept weight by weight, so that those of a model that grows go on.
    """

    def __init__(
        self, groups: list[dict[str, Any]], lr: float, betas: tuple[float, float], first: float = 1e-6
    ) -> None:
        super().__init__(groups, {"lr": lr, "betas": betas, "first": first, "eps": 1e-8, "weight_decay": 0.0})

    @property
    def distance(self) -> float:
        """The present estimate of the distance from the start to the solution."""
        known = [state["distance"] for state in self.state.values()]
        return max(known, default=float(self.param_groups[0]["first"]))

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]  # torch has two
        """Take one step, after `closure`, if there is one; return its loss."""
        loss = loss_of(closure)
        distance = self.distance
        moving = [
            (weight, group) for group in self.param_groups for weight in group["params"] if weight.grad is not None
        ]
        for weight, group in moving:
            remember(weight, self.state[weight], distance, group["lr"], group["betas"])
        grown = max(distance, lower_bound([self.state[weight] for weight, _ in moving]))
        for weight, group in moving:
            state = self.state[weight]
            weight.mul_(1.0 - group["lr"] * group["weight_decay"])
            scale = state["square"].sqrt().add_(distance * group["eps"])
            weight.addcdiv_(state["mean"], scale, value=-group["lr"] * distance)
            state["distance"] = grown
        return loss


def remember(weight: Tensor, state: dict[str, Any], distance: float, rate: float, betas: tuple[float, float]) -> None:
    """Move what is remembered of one weight on by its gradient."""
    if not state:
        state["start"] = weight.clone()
        state["mean"], state["square"], state["gradients"] = (torch.zeros_like(weight) for _ in range(3))
        state["agreed"], state["distance"] = weight.new_zeros(()), distance
    beta1, beta2 = betas
    memory = math.sqrt(beta2)
    gradient, share = weight.grad, (1.0 - memory) * rate * distance**2
    assert gradient is not None
    state["mean"].lerp_(gradient * distance, 1.0 - beta1)
    state["square"].lerp_((gradient * distance).square_(), 1.0 - beta2)
    state["agreed"].mul_(memory).add_((gradient * (state["start"] - weight)).sum(), alpha=share)
    state["gradients"].mul_(memory).add_(gradient, alpha=share)


def lower_bound(states: list[dict[str, Any]]) -> float:
    """Return the lower bound of the distance that all weights together give; 0 where nothing moves."""
    if not states:
        return 0.0
    agreed = torch.stack([state["agreed"] for state in states]).sum()
    travelled = torch.stack([state["gradients"].abs().sum() for state in states]).sum()
    return float(torch.where(travelled > 0.0, agreed / travelled, 0.0))
