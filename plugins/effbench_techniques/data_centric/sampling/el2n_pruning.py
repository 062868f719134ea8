"""EL2N pruning: after a while, go on with the examples of which the model is most wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from effbench import Batch, Recipe, Training, technique
from effbench.aside import score
from effbench.errors import InvalidTechnique, NotApplicable

_ROUNDING = 1e-9  # 0.56 * 25 is a little more than 14, and should not keep 15
_PIECE = 32  # examples that are looked up together, shortly before they are trained on


@technique(
    "data_centric/sampling",
    paper="Paul et al., Deep Learning on a Data Diet: Finding Important Examples Early in Training, arXiv:2107.07075",
    claim="CIFAR-10: half of the examples pruned at equal accuracy",
    neutral={"fraction": 1.0},
    title="EL2N pruning",
)
def el2n_pruning(recipe: Recipe, *, fraction: float = 0.5, start: float = 0.1) -> Recipe:
    """Score all examples by the length of the model's error early in training, and go on with the highest scores.

    At `start` of the budget, the model in training looks at every example: its score is the norm of
    `softmax(outputs) - label`. The ceil(fraction * N) examples with the highest scores stay, in the baseline's order.
    The pass is on the clock. The paper averages the scores of ten models, which are trained for nothing else, and
    begins anew on what is left; under a budget that is not to be had.

    When it helps: scores that were paid for by others, and many epochs over redundant data.
    When it does not: short budgets, of which scoring takes a good part: a pass over N examples costs about a third of
        an epoch. Wrong labels have high scores too. `uniform_subset` is its control.

    fraction: share of the examples that stay; 1 turns it off.
    start: share of the budget after which the scores are taken.
    """
    if not 0.0 < fraction <= 1.0:
        raise InvalidTechnique(f"el2n_pruning: fraction is {fraction}; it should be a share above 0, up to 1 (off)")
    if not 0.0 <= start < 1.0:
        raise InvalidTechnique(f"el2n_pruning: start is {start}; it should be a share from 0, below 1")
    if recipe.classes is None:
        raise NotApplicable("el2n_pruning compares outputs with class labels, and this workload has none")
    if fraction == 1.0:
        return recipe

    def prune(training: Training) -> None:
        scores = score(recipe, training, training.model, error_norm)
        stay = torch.zeros(len(scores), dtype=torch.bool)
        count = max(1, math.ceil(fraction * len(scores) - _ROUNDING))
        stay[scores.argsort(descending=True, stable=True)[:count]] = True
        training.kept["el2n_pruning"] = stay

    def sampler(training: Training) -> Iterator[Tensor]:
        for epoch in recipe.sampler(training):
            for piece in torch.split(epoch, _PIECE):
                stay = training.kept.get("el2n_pruning")
                if len(left := piece if stay is None else piece[stay[piece]]):
                    yield left

    return recipe.wrap(sampler=sampler).at(start, prune)


def error_norm(outputs: Any, batch: Batch) -> Tensor:
    """Return the norm of the error of each example, (B,); outputs are (B, C) logits, targets (B,) or (B, C)."""
    labels = batch.targets if batch.targets.is_floating_point() else F.one_hot(batch.targets, outputs.shape[1])
    lengths: Tensor = (outputs.softmax(1) - labels).norm(dim=1)
    return lengths
