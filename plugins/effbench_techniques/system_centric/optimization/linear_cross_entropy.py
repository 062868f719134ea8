"""Linear cross-entropy: compute head and loss a few texts at a time, so that all logits never exist at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from effbench import Batch, Recipe, Training, technique
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.losses import minimising
from effbench.recipe import Loss

_LOGITS = "it needs the logits of the whole batch, which here do not exist"


@technique(
    "system_centric/optimization",
    paper="Wijmans et al., Cut Your Losses in Large-Vocabulary Language Models, arXiv:2411.09009; Hsu et al., Liger "
    "Kernel, arXiv:2410.10989",
    claim="Gemma 2 (2B): 1 MB instead of 24 GB for the loss",
    neutral={"chunk": 0},
    conflicts={
        "knowledge_distillation": _LOGITS,
        "rdrop": _LOGITS,
        "sophia": _LOGITS,
        "sparse_mlm_head": "each says which logits of the head are computed, and when",
        "torch_compile": "the head is taken out of the model for a step, and its graph with it",
    },
    title="Chunked head and loss",
)
def linear_cross_entropy(recipe: Recipe, *, chunk: int = 2) -> Recipe:
    """Give `chunk` texts of a batch at a time to head and loss, forget their logits, and compute them again backward.

    What is kept of the head is its input, B * T * C numbers instead of B * T * V logits and their softmax. Loss and
    gradient are those of the whole batch, but for rounding. It goes with any loss that is one of examples. Evaluation
    is as before.

    When it helps: vocabularies much larger than the model is wide, where logits take most of the memory.
    When it does not: it costs the head's forward pass a second time, and small products are slow ones; alphabets of
        characters, which have few logits to spare. Kernels that never write a logit also save the time.

    chunk: texts at a time; 0 turns it off.
    """
    if chunk < 0:
        raise InvalidTechnique(f"linear_cross_entropy: chunk is {chunk}; it should be 0 (off) or more texts")
    if not {"causal", "masked"} & recipe.traits:
        raise NotApplicable("linear_cross_entropy spares the logits of tokens, and this workload predicts none")
    with torch.random.fork_rng(devices=[]):
        if not isinstance(getattr(recipe.model(), "head", None), nn.Module):
            raise NotApplicable("linear_cross_entropy takes the model's `head` out of it, and this model has none")
    if chunk == 0:
        return recipe

    def gradient(training: Training, batch: Batch) -> Tensor:
        if training.group.size > 1:
            raise NotApplicable("linear_cross_entropy takes the head out of the model, of which a process has a part")
        head = training.model.get_submodule("head")
        with without(head) as applied, minimising(training, chunked(training.loss, applied, chunk)):
            return recipe.gradient(training, batch)

    return recipe.wrap(gradient=gradient)


@contextmanager
def without(head: nn.Module) -> Iterator[nn.Module]:
    """Let a model return what it would give to its head, while the context is open; yields the head that works."""
    working = Working(head)
    before = vars(head).get("forward")
    head.forward = handing_on
    try:
        yield working
    finally:
        if before is None:
            del head.forward
        else:
            head.forward = before


def handing_on(features: Tensor) -> Tensor:
    """Return the features as they are."""
    return features


class Working(nn.Module):
    """A head as it is when this is made, whatever becomes of its forward pass later."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self._compute = head.forward

    def forward(self, features: Tensor) -> Tensor:
        """Return the logits, (B, T, V), of (B, T, C) features."""
        logits: Tensor = self._compute(features)
        return logits


def chunked(loss: Loss, head: nn.Module, chunk: int) -> Loss:
    """Return a loss of features, (B, T, C), whose logits are made for `chunk` examples at a time, and twice."""

    def of_part(features: Tensor, part: Batch) -> Tensor:
        return loss(head(features), part)

    def whole(features: Tensor, batch: Batch) -> Tensor:
        parts = [slice(start, start + chunk) for start in range(0, len(batch), chunk)]
        return torch.cat([checkpoint(of_part, features[part], batch[part], use_reentrant=False) for part in parts])

    return whole
