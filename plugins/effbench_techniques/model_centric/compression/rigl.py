"""RigL: train a sparse network, and let it change which connections it has."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from effbench import Recipe, Training, technique
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models.hidden import hidden_weights, largest

_ROUNDING = 1e-9  # 0.6 / 0.8 * 4 is a little less than 3


@technique(
    "model_centric/compression",
    paper="Evci et al., Rigging the Lottery: Making All Tickets Winners, arXiv:1911.11134",
    claim="ImageNet, ResNet-50 with 80 % zeros: 74.6 % in the usual number of steps, 76.6 % in five times as many",
    neutral={"sparsity": 0.0},
    conflicts={
        "schedule_free": "it keeps weights of its own, in which zeros come back",
        "gradual_magnitude_pruning": "each says which weights are zero",
    },
    title="RigL",
    scope="tensor",
)
def rigl(recipe: Recipe, *, sparsity: float = 0.8, drop: float = 0.3, times: int = 20, end: float = 0.75) -> Recipe:
    """Start with a random share of the weights, and move connections from where weights are small to where slopes are.

    Each hidden matrix has the same share of zeros from the first step to the last. From time to time the smallest
    `drop / 2 * (1 + cos(pi * t / end))` of its weights are dropped, at progress t, and as many are grown where the
    gradient of a missing weight is largest; they start at zero. The first and the last layer stay dense.

    When it helps: quality per FLOP, on hardware that skips zeros.
    When it does not: time: dense kernels multiply the zeros as well; here it shows what sparsity costs in quality.

    sparsity: share of the weights of each matrix that is zero; 0 turns it off.
    drop: share of the connections that is moved at first; it falls along a cosine.
    times: how often connections are moved; 0 leaves the random ones for good, which is the control.
    end: share of the budget after which none is moved.
    """
    check(sparsity, drop, times, end)
    with torch.random.fork_rng(devices=[]):
        if not hidden_weights(recipe.model()):
            raise NotApplicable("rigl finds no matrix in the model's `blocks`")
    if sparsity == 0.0:
        return recipe

    def begin(training: Training) -> None:
        masks = [random_mask(weight, sparsity, training.rng) for weight in hidden_weights(training.model)]
        training.kept["rigl"] = {"masks": masks, "moved": 0, "generation": training.generation}
        apply(training, masks)

    def update(training: Training) -> None:
        if "rigl" in training.kept:
            with training.extra():
                move_if_due(training, sparsity, drop, times, end)
        recipe.update(training)
        if "rigl" in training.kept:
            with training.extra():
                apply(training, training.kept["rigl"]["masks"])

    return recipe.wrap(update=update).at(0.0, begin)


def check(sparsity: float, drop: float, times: int, end: float) -> None:
    """Raise InvalidTechnique where an option is out of its range."""
    for name, share in {"sparsity": sparsity, "drop": drop}.items():
        if not 0.0 <= share < 1.0:
            raise InvalidTechnique(f"rigl: {name} is {share}; it should be a share from 0, below 1")
    if not 0.0 < end <= 1.0:
        raise InvalidTechnique(f"rigl: end is {end}; it should be a share of the budget above 0")
    if times < 0:
        raise InvalidTechnique(f"rigl: times is {times}; it should be 0 or more")


@torch.no_grad()
def move_if_due(training: Training, sparsity: float, drop: float, times: int, end: float) -> None:
    """Move connections if it is time to, and hide the gradients of those that are missing."""
    memory: dict[str, Any] = training.kept["rigl"]
    weights = hidden_weights(training.model)
    if memory["generation"] != training.generation:  # other weights: those that are not zero go on
        memory["masks"] = [largest(weight.abs(), connections(weight, sparsity)) for weight in weights]
        memory["generation"] = training.generation
    due = min(times, int(training.progress / end * times + _ROUNDING))
    if due > memory["moved"]:
        memory["moved"] = due
        share = drop / 2 * (1 + math.cos(math.pi * min(1.0, training.progress / end)))
        memory["masks"] = [
            mask if weight.grad is None else moved(weight, weight.grad, mask, share)
            for weight, mask in zip(weights, memory["masks"], strict=True)
        ]
    for weight, mask in zip(weights, memory["masks"], strict=True):
        weight.mul_(mask)
        if weight.grad is not None:
            weight.grad.mul_(mask)


def moved(weight: Tensor, slope: Tensor, mask: Tensor, share: float) -> Tensor:
    """Return which connections there are after a share of them is dropped by magnitude and grown by slope."""
    have = int(mask.sum())
    count = min(round(share * have), mask.numel() - have)
    stay = largest(weight.abs().masked_fill(~mask, -1.0), have - count)
    return stay | largest(slope.abs().masked_fill(mask, -1.0), count)


def connections(weight: Tensor, sparsity: float) -> int:
    """Return how many weights of a matrix are not zero."""
    return weight.numel() - round(sparsity * weight.numel())


def random_mask(weight: Tensor, sparsity: float, random: torch.Generator) -> Tensor:
    """Choose the connections that a matrix starts with."""
    return largest(torch.rand(weight.shape, generator=random), connections(weight, sparsity)).to(weight.device)


@torch.no_grad()
def apply(training: Training, masks: list[Tensor]) -> None:
    """Set the weights of missing connections to zero."""
    for weight, mask in zip(hidden_weights(training.model), masks, strict=True):
        weight.mul_(mask)
