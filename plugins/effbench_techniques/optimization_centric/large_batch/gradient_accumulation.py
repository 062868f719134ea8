"""Gradient accumulation: add the gradients of several micro-batches before one update."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from effbench import Batch, Recipe, Training, technique
from effbench.errors import InvalidTechnique
from effbench.terms import cut


@technique(
    "optimization_centric/large_batch",
    paper="Ott et al., Scaling Neural Machine Translation, arXiv:1806.00187",
    claim="the gradient of a large batch in the memory of a small one",
    neutral={"micro_batches": 1},
    after=["sparse_mlm_head"],  # which says how a single gradient is taken
)
def gradient_accumulation(recipe: Recipe, *, micro_batches: int = 4) -> Recipe:
    """Compute the gradient of each batch in several smaller parts, one after the other.

    The parts differ by one example at most. Weights are shares of the whole step, so parts with fewer valid tokens
    count less, and the sum is the gradient of the whole batch, not a mean of means; the rate changes once per update.
    Of several processes, only the last part synchronises. BatchNorm is the exception: it sees only one part at a time;
    for its sake no part has a single example, and small batches are cut into fewer parts.

    When it helps: a batch that does not fit in memory.
    When it does not: it saves no time, and costs some where a small part leaves the machine idle.

    micro_batches: how many parts each batch is cut into; 1 turns it off.
    """
    if micro_batches < 1:
        raise InvalidTechnique(f"gradient_accumulation: micro_batches is {micro_batches}; it should be 1 (off) or more")
    if micro_batches == 1:
        return recipe

    def gradient(training: Training, batch: Batch) -> Tensor:
        parts = cut(batch, micro_batches)
        losses = []
        for part in parts[:-1]:
            with unsynchronised(training):
                losses.append(recipe.gradient(training, part))
        losses.append(recipe.gradient(training, parts[-1]))
        return torch.cat(losses)

    return recipe.wrap(gradient=gradient)


def unsynchronised(training: Training) -> AbstractContextManager[None]:
    """Keep data-parallel processes from exchanging a gradient that is not complete."""
    no_sync = getattr(training.forward, "no_sync", None)
    return nullcontext() if no_sync is None else no_sync()
