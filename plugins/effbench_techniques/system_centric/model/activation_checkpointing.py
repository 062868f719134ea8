"""Activation checkpointing: forget what blocks computed, and compute it again for the backward pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique, NotApplicable


@technique(
    "system_centric/model",
    paper="Chen et al., Training Deep Nets with Sublinear Memory Cost, arXiv:1604.06174",
    claim="a ResNet of 1000 layers in 7 GB instead of 48 GB, for 30 % more time",
    neutral={"every": 0},
)
def activation_checkpointing(recipe: Recipe, *, every: int = 1) -> Recipe:
    """Keep only the inputs of blocks for the backward pass, and compute what is inside them a second time.

    The gradient is the same, bit by bit: dropout draws the same masks again, and BatchNorm's running statistics take no
    notice of the second pass. Memory for activations falls to that of one block, plus one input for each.

    When it helps: a model or a batch that would not fit in memory.
    When it does not: it costs about one forward pass, a third of a step, which is lost where memory is no limit.

    every: how many blocks there are to each that is recomputed: 1 recomputes all, 2 every other; 0 turns it off.
    """
    if every < 0:
        raise InvalidTechnique(f"activation_checkpointing: every is {every}; it should be 0 (off) or more")
    if every == 0:
        return recipe
    with torch.random.fork_rng(devices=[]):
        if not isinstance(getattr(recipe.model(), "blocks", None), nn.ModuleList):
            raise NotApplicable("activation_checkpointing recomputes the model's `blocks`, and this model has none")

    def model() -> nn.Module:
        made = recipe.model()
        blocks = made.blocks
        assert isinstance(blocks, nn.ModuleList)
        for number in range(0, len(blocks), every):
            blocks[number] = Recomputed(blocks[number])
        return made

    return recipe.wrap(model=model)


class Recomputed(nn.Module):
    """A block that keeps nothing but its input for the backward pass."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Tensor) -> Tensor:
        """Return what the block does; x and the result are (B, ...)."""
        if torch.compiler.is_compiling():  # the compiler writes statistics once, and takes no contexts
            result: Tensor = checkpoint(self.block, x, use_reentrant=False)
        else:
            result = checkpoint(self.block, x, use_reentrant=False, context_fn=self._contexts)
        return result

    def _contexts(self) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        """Return the contexts of the first and of the second pass."""
        return nullcontext(), unnoticed(self.block)


@contextmanager
def unnoticed(block: nn.Module) -> Iterator[None]:
    """Let the BatchNorms in a block see a batch, and leave their running statistics as they are."""
    noticing = [
        (norm, norm.momentum, norm.num_batches_tracked, norm.num_batches_tracked.clone())
        for norm in block.modules()
        if isinstance(norm, _BatchNorm) and norm.num_batches_tracked is not None
    ]
    for norm, *_ in noticing:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum, counter, count in noticing:
            norm.momentum = momentum
            counter.copy_(count)
