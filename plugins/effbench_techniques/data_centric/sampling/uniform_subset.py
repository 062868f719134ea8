"""Uniform subset: train on random examples only, the control of every method that chooses them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from effbench import Recipe, Training, technique
from effbench.errors import InvalidTechnique

_ROUNDING = 1e-9  # 0.56 * 25 is a little more than 14, and should not keep 15


@technique(
    "data_centric/sampling",
    paper="Okanovic et al., Repeated Random Sampling for Minimizing the Time-to-Accuracy of Learning, arXiv:2305.18424",
    claim="beats about 30 methods of data pruning and distillation in time to accuracy",
    neutral={"fraction": 1.0},
)
def uniform_subset(recipe: Recipe, *, fraction: float = 0.5, fresh: bool = True) -> Recipe:
    """Train on a random share of the examples: drawn anew in every epoch, or once and for all.

    Fresh subsets are the first part of each epoch's random order; a fixed subset is drawn before the first step, and
    every epoch passes over it in the baseline's order. Steps stay as they are: with the same budget there are more
    and shorter epochs. A method that chooses examples by looking at them should beat this one, which does not look.

    When it helps: as the control. Under a budget, methods that choose by importance did not consistently beat uniform
        sampling (Arazo et al., How Important is Importance Sampling for Deep Budgeted Training?, arXiv:2110.14283).
    When it does not: it saves no time by itself, since the budget and not the epoch ends the run; fresh subsets hardly
        differ from the baseline, and a fixed one loses what the examples left out would have taught.

    fraction: share of the examples in the subset; 1 turns it off.
    fresh: true draws a new subset in every epoch, false keeps the first one.
    """
    if not 0.0 < fraction <= 1.0:
        raise InvalidTechnique(f"uniform_subset: fraction is {fraction}; it should be a share above 0, up to 1 (off)")
    if fraction == 1.0:
        return recipe

    def part(count: int) -> int:
        return max(1, math.ceil(fraction * count - _ROUNDING))

    def first_of_each_epoch(training: Training) -> Iterator[Tensor]:
        for epoch in recipe.sampler(training):
            yield epoch[: part(len(epoch))]

    def always_the_same(training: Training) -> Iterator[Tensor]:
        count = len(training.recipe.dataset)
        if "uniform_subset" not in training.kept:
            chosen = torch.zeros(count, dtype=torch.bool)
            chosen[torch.randperm(count, generator=training.rng)[: part(count)]] = True
            training.kept["uniform_subset"] = chosen
        for epoch in recipe.sampler(training):
            yield epoch[training.kept["uniform_subset"][epoch]]

    return recipe.wrap(sampler=first_of_each_epoch if fresh else always_the_same)
