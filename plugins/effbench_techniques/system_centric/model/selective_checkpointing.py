"""Selective checkpointing: keep what was dear to compute, and compute again what was cheap."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from effbench import Recipe, technique
from effbench.errors import NotApplicable
from effbench_techniques.system_centric.model.activation_checkpointing import unnoticed

_ATEN = torch.ops.aten
#: Products of matrices, convolutions and attention: many operations for each number that they return.
DEAR = (
    _ATEN.mm,
    _ATEN.addmm,
    _ATEN.bmm,
    _ATEN.baddbmm,
    _ATEN.convolution,
    _ATEN._scaled_dot_product_flash_attention,  # noqa: SLF001 - its name
    _ATEN._scaled_dot_product_flash_attention_for_cpu,  # noqa: SLF001 - as above
    _ATEN._scaled_dot_product_efficient_attention,  # noqa: SLF001 - as above
)


@technique(
    "system_centric/model",
    paper="Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, arXiv:2205.05198",
    claim="five times less memory for activations, and 90 % of the time that full recomputation costs saved",
    conflicts={
        "activation_checkpointing": "each says what of a block is computed again",
        "torch_compile": "the compiler chooses itself what it computes again",
    },
)
def selective_checkpointing(recipe: Recipe) -> Recipe:
    """Keep the results of matrix products, convolutions and attention of each block, and compute all else again.

    Norms, activations and sums take most of the memory and little of the time. The gradient is the same, bit by bit:
    dropout draws the same masks again, and BatchNorm's running statistics take no notice of the second pass.

    When it helps: memory that full checkpointing would spare at too high a price.
    When it does not: where memory is no limit; small models, where going through each block's operations one by one in
        Python costs more than what they compute, so that computing all again is no slower.
    """
    with torch.random.fork_rng(devices=[]):
        if not isinstance(getattr(recipe.model(), "blocks", None), nn.ModuleList):
            raise NotApplicable("selective_checkpointing computes parts of `blocks` again, and this model has none")

    def model() -> nn.Module:
        made = recipe.model()
        blocks = made.blocks
        assert isinstance(blocks, nn.ModuleList)
        for number, block in enumerate(blocks):
            blocks[number] = PartlyRecomputed(block)
        return made

    return recipe.wrap(model=model)


class PartlyRecomputed(nn.Module):
    """A block that keeps its input and its dear results for the backward pass."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Tensor) -> Tensor:
        """Return what the block does; x and the result are (B, ...)."""
        contexts = functools.partial(contexts_of, self.block)
        result: Tensor = checkpoint(self.block, x, use_reentrant=False, context_fn=contexts)
        return result


def contexts_of(block: nn.Module) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Return the contexts of the first pass through a block, which keeps, and of the second, which looks up."""
    keeping, looking_up = create_selective_checkpoint_contexts(policy)  # type: ignore[no-untyped-call]  # torch has no types there
    return keeping, both(unnoticed(block), looking_up)  # the second looks at every operation inside it


def policy(_: Any, operation: Any, *__: Any, **___: Any) -> CheckpointPolicy:
    """Say what becomes of the result of an operation."""
    is_dear = operation.overloadpacket in DEAR
    return CheckpointPolicy.MUST_SAVE if is_dear else CheckpointPolicy.PREFER_RECOMPUTE


@contextmanager
def both(*contexts: AbstractContextManager[Any]) -> Iterator[None]:
    """Enter several contexts as one."""
    with ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context)
        yield
