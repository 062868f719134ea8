"""GaLore: let the optimizer remember the gradients of a matrix in few directions."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models.hidden import hidden_weights
from effbench.optimizers import WeightByWeight, adam_direction, eigenvectors, groups_at


@technique(
    "model_centric/compression",
    paper="Zhao et al., GaLore: Memory-Efficient LLM Training by Gradient Low-Rank Projection, arXiv:2403.03507",
    claim="up to 65.5 % less memory of the optimizer; LLaMA of 7 B parameters pre-trained on one GPU of 24 GB",
    title="GaLore",
    scope="tensor",
)
def galore(
    recipe: Recipe,
    *,
    rank: int = 16,
    lr: float = 1e-2,
    scale: float = 0.25,
    interval: int = 200,
    beta1: float = 0.9,
    beta2: float = 0.999,
) -> Recipe:
    """Take AdamW's step for a hidden matrix in the `rank` directions in which its gradient is largest.

    Every `interval` steps the largest singular vectors of the gradient G, n x m, are found, on its shorter side; in
    between, Adam's means are those of `P' G`, rank x m, and the matrix moves by `scale * P` times Adam's step. As in
    the paper, means stay when directions change. All other weights, and matrices whose shorter side is no longer than
    the rank, are stepped by AdamW. Kernels of convolutions are matrices with a row for each output. The parameter
    groups are the baseline's, and so is what weight decay takes from a weight in a step.

    When it helps: memory: for a matrix of n <= m rows the optimizer keeps `rank * (n + 2 m)` numbers, where AdamW keeps
        2 n m.
    When it does not: time; and quality, where the gradient is not of low rank, as in small models.

    rank: number of directions; matrices that have no more are not projected.
    lr: peak learning rate.
    scale: factor on the steps of projected matrices.
    interval: steps from one choice of directions to the next; the paper's is 200.
    beta1: share of the mean gradient that stays from step to step, from 0, below 1.
    beta2: share of the mean square that stays from step to step, from 0, below 1.
    """
    check(rank, lr, scale, interval, (beta1, beta2))
    with torch.random.fork_rng(devices=[]):
        if not hidden_weights(recipe.model()):
            raise NotApplicable("galore projects gradients of matrices in the model's `blocks`, and there are none")

    def build(model: nn.Module) -> Optimizer:
        hidden = set(hidden_weights(model))
        groups = []
        for group in groups_at(recipe.optimizer(model), lr):
            for few, chosen in ((0, group["params"]), (rank, group["params"])):
                params = [weight for weight in chosen if (weight in hidden) == (few > 0)]
                groups += [{**group, "params": params, "rank": few}] if params else []
        settings = {"lr": lr, "betas": (beta1, beta2), "eps": 1e-8, "scale": scale, "interval": interval}
        return WeightByWeight(groups, galore_step, **settings)

    return recipe.swap(optimizer=build)


def check(rank: int, lr: float, scale: float, interval: int, betas: tuple[float, float]) -> None:
    """Raise InvalidTechnique where an option is out of its range."""
    for name, value in (("lr", lr), ("scale", scale)):
        if not 0.0 < value < math.inf:
            raise InvalidTechnique(f"galore: {name} is {value}; it should be positive and finite")
    for name, count in (("rank", rank), ("interval", interval)):
        if count < 1:
            raise InvalidTechnique(f"galore: {name} is {count}; it should be 1 or more")
    for name, beta in zip(("beta1", "beta2"), betas, strict=True):
        if not 0.0 <= beta < 1.0:
            raise InvalidTechnique(f"galore: {name} is {beta}; it should be 0 or more, and below 1")


def galore_step(weight: nn.Parameter, state: dict[str, Any], group: dict[str, Any]) -> None:
    """Step a weight by AdamW, in the few directions of its group where it has more than these."""
    assert weight.grad is not None
    weight.mul_(1.0 - group["lr"] * group["weight_decay"])
    rank, gradient = group["rank"], weight.grad
    if not rank or min(gradient.flatten(1).shape) <= rank:
        weight.sub_(adam_direction(gradient, state, group["betas"], group["eps"]), alpha=group["lr"])
        return
    gradient = gradient.flatten(1)
    is_wide = gradient.shape[0] <= gradient.shape[1]
    gradient = gradient if is_wide else gradient.T
    if state.get("step", 0) % group["interval"] == 0:
        state["directions"] = largest_directions(gradient, rank)
    step = adam_direction(state["directions"].T @ gradient, state, group["betas"], group["eps"])
    change = state["directions"] @ step
    change = change if is_wide else change.T
    weight.sub_(change.reshape(weight.shape), alpha=group["lr"] * group["scale"])


def largest_directions(gradient: Tensor, rank: int) -> Tensor:
    """Return the left singular vectors of a gradient, (n, m), of its `rank` largest singular values, as (n, rank)."""
    return eigenvectors(gradient @ gradient.T)[:, :rank].contiguous()
