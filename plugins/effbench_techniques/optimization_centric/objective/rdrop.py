"""R-Drop: let two passes with different dropout agree."""

from __future__ import annotations

import math
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from effbench import Batch, Recipe, Training, technique
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.losses import mean_of_valid, minimising
from effbench.models import residuals


@technique(
    "optimization_centric/objective",
    paper="Liang et al., R-Drop: Regularized Dropout for Neural Networks, arXiv:2106.14448",
    claim="WMT14 English-German 30.91 BLEU, the best at its time; ViT on ImageNet and GLUE as well",
    neutral={"alpha": 0.0},
    conflicts={"sparse_mlm_head": "a second pass predicts all tokens, and the loss sees those that are masked"},
    title="R-Drop",
)
def rdrop(recipe: Recipe, *, alpha: float = 1.0, dropout: float = 0.1) -> Recipe:
    """Pass each batch twice, with other units dropped, and add how far the predicted probabilities are apart.

    The loss is `mean of the two losses + alpha / 2 * mean of KL(p || q) and KL(q || p)`: half of the paper's, which
    adds both losses, so that a step is as long as the baseline's. Where the model has no dropout of its own, as those
    of the standard workloads, it gets some: at the end of each residual branch, or after each block where there are no
    branches; in training alone. Without dropout both passes are the same, and so is the loss.

    When it helps: fine-tuning and translation, where models overfit and quality is worth twice the time.
    When it does not: at a fixed budget, of which the second pass takes half of the steps.

    alpha: factor of the divergence; 0 turns it off, with the dropout that it brings.
    dropout: probability with which a unit is dropped in a model that has no dropout.
    """
    if not 0.0 <= alpha < math.inf:
        raise InvalidTechnique(f"rdrop: alpha is {alpha}; it should be a finite factor, 0 (off) or more")
    if not 0.0 <= dropout < 1.0:
        raise InvalidTechnique(f"rdrop: dropout is {dropout}; it should be a probability from 0, below 1")
    if recipe.classes is None and not {"causal", "masked"} & recipe.traits:
        raise NotApplicable("rdrop compares probabilities of classes or tokens, and this workload has neither")
    if alpha == 0.0:
        return recipe

    def model() -> nn.Module:
        made = recipe.model()
        if not any(isinstance(module, nn.modules.dropout._DropoutNd) for module in made.modules()):  # noqa: SLF001 - the base of the family
            drop_units(made, dropout)
        return made

    def gradient(training: Training, batch: Batch) -> Tensor:
        finished = training.loss

        def loss(outputs: Any, part: Batch) -> Tensor:
            with training.extra():
                again = training.forward(part.inputs)
            both = 0.5 * (finished(outputs, part) + finished(again, part))
            return both + 0.5 * alpha * divergence(outputs, again, part)

        with minimising(training, loss):
            return recipe.gradient(training, batch)

    return recipe.wrap(model=model, gradient=gradient)


def drop_units(model: nn.Module, probability: float) -> None:
    """Drop units at the end of each residual branch of `model`, or after each block where it has none."""

    def drop(module: nn.Module, arguments: tuple[Tensor, ...], output: Tensor) -> Tensor:  # noqa: ARG001 - a hook's signature
        return F.dropout(output, probability, module.training)

    for ending in [branch.last for branch in residuals(model).values()] or list(blocks_of(model)):
        ending.register_forward_hook(drop)


def blocks_of(model: nn.Module) -> nn.ModuleList:
    """Return the model's blocks.

    Raises:
        NotApplicable: it has none.
    """
    blocks = getattr(model, "blocks", None)
    if not isinstance(blocks, nn.ModuleList):
        raise NotApplicable("rdrop finds no dropout in this model, and no `blocks` to put some after")
    return blocks


def divergence(one: Tensor, other: Tensor, batch: Batch) -> Tensor:
    """Return the mean of KL(p || q) and KL(q || p) of each example, (B,) nats.

    one, other: (B, C) logits, or (B, T, V) logits of tokens, of which those without a target do not count.
    """
    p, q = one.float().log_softmax(-1), other.float().log_softmax(-1)
    return mean_of_valid(0.5 * ((p.exp() - q.exp()) * (p - q)).sum(-1), batch.targets)
