"""Gradual magnitude pruning: set more and more of the smallest weights to zero."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from effbench import Recipe, Training, technique
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models.hidden import hidden_weights, largest

_ROUNDING = 1e-9  # 0.6 / 0.8 * 4 is a little less than 3


@technique(
    "model_centric/compression",
    paper="Zhu and Gupta, To Prune, or Not to Prune: Exploring the Efficacy of Pruning for Model Compression, "
    "arXiv:1710.01878",
    claim="large sparse networks beat small dense ones of as many weights",
    neutral={"sparsity": 0.0},
    conflicts={"schedule_free": "it keeps weights of its own, in which zeros come back"},
    scope="tensor",
)
def gradual_magnitude_pruning(
    recipe: Recipe, *, sparsity: float = 0.8, start: float = 0.2, end: float = 0.8, times: int = 20
) -> Recipe:
    """Zero the smallest weights of each hidden matrix, more of them from time to time, until few are left.

    At progress t, `sparsity * (1 - (1 - (t - start) / (end - start))^3)` of the weights are zero: many at first, when
    there are many to choose from, few towards the end, after which the rest has time to settle. Zeros stay zeros. The
    first and the last layer stay dense.

    When it helps: a small model is wanted in the end. It is the standard that pruning methods are compared with.
    When it does not: time of training: dense kernels multiply the zeros as well.

    sparsity: share of the weights of each matrix that is zero in the end; 0 turns it off.
    start: share of the budget at which pruning begins.
    end: share of the budget at which it has come to its end.
    times: how often weights are pruned between the two.
    """
    if not 0.0 <= sparsity < 1.0:
        raise InvalidTechnique(
            f"gradual_magnitude_pruning: sparsity is {sparsity}; it should be a share from 0 (off), below 1"
        )
    if not 0.0 <= start < end < 1.0:
        raise InvalidTechnique(
            f"gradual_magnitude_pruning: start is {start} and end is {end}; it should be 0 <= start < end < 1"
        )
    if times < 1:
        raise InvalidTechnique(f"gradual_magnitude_pruning: times is {times}; it should be 1 or more")
    with torch.random.fork_rng(devices=[]):
        if not hidden_weights(recipe.model()):
            raise NotApplicable("gradual_magnitude_pruning finds no matrix in the model's `blocks`")
    if sparsity == 0.0:
        return recipe

    def update(training: Training) -> None:
        target = sparsity_at(training.progress, sparsity, start, end, times)
        weights = hidden_weights(training.model)
        with training.extra(), torch.no_grad():
            masks = masks_for(training, target)
            for weight, mask in zip(weights, masks, strict=True):
                if weight.grad is not None:
                    weight.grad.mul_(mask)
        recipe.update(training)
        with training.extra(), torch.no_grad():
            for weight, mask in zip(weights, masks, strict=True):
                weight.mul_(mask)

    return recipe.wrap(update=update)


def sparsity_at(progress: float, sparsity: float, start: float, end: float, times: int) -> float:
    """Return the share of weights that is zero at `progress`; it rises `times` times, along a cubic."""
    if progress < start:
        return 0.0
    reached = min(1.0, (1 + int((progress - start) / (end - start) * times + _ROUNDING)) / times)
    return sparsity * (1.0 - (1.0 - reached) ** 3)


def masks_for(training: Training, target: float) -> list[Tensor]:
    """Return which weights of each hidden matrix are left; fewer than before, where the target has risen."""
    memory: dict[str, Any] = training.kept.setdefault("gradual_magnitude_pruning", {})
    if memory.get("target") != target or memory["generation"] != training.generation:
        memory["masks"] = [
            largest(weight.abs(), weight.numel() - round(target * weight.numel()))
            for weight in hidden_weights(training.model)
        ]
        memory["target"], memory["generation"] = target, training.generation
    masks: list[Tensor] = memory["masks"]
    return masks
