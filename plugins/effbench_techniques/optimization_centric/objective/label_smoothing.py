"""Label smoothing: ask for a little less than certainty."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from effbench import Batch, Recipe, technique
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.losses import mean_of_valid


@technique(
    "optimization_centric/objective",
    paper="Szegedy et al., Rethinking the Inception Architecture for Computer Vision, arXiv:1512.00567",
    claim="ImageNet, Inception-v3: +0.2 points",
    neutral={"smoothing": 0.0},
)
def label_smoothing(recipe: Recipe, *, smoothing: float = 0.1) -> Recipe:
    """Move a little probability of each target from its class to all classes alike.

    The loss becomes `(1 - smoothing) * loss + smoothing * CE(uniform)`, where CE(uniform) is the mean over all classes
    of their negative log-probability; for tokens, its mean over the targets that count. As it leaves the targets alone,
    it goes with anything that changes them.

    When it helps: image classification (MosaicML Composer's method card).
    When it does not: where the loss itself is what is judged: the model learns to be less certain than it could be. A
        network trained with it teaches less well (Müller et al., When Does Label Smoothing Help?, arXiv:1906.02629).

    smoothing: probability that is spread over all classes, a share below 1; 0 turns it off.
    """
    if not 0.0 <= smoothing < 1.0:
        raise InvalidTechnique(f"label_smoothing: smoothing is {smoothing}; it should be 0 (off) or more, and below 1")
    if recipe.classes is None and not {"causal", "masked"} & recipe.traits:
        raise NotApplicable("label_smoothing spreads probability over classes or tokens, and this workload has neither")
    if smoothing == 0.0:
        return recipe

    def loss(outputs: Any, batch: Batch) -> Tensor:
        smooth = uniform_cross_entropy(outputs, batch.targets)
        return (1.0 - smoothing) * recipe.loss(outputs, batch) + smoothing * smooth

    return recipe.wrap(loss=loss)


def uniform_cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the cross-entropy of each example with all classes equally likely, (B,) nats.

    outputs: (B, C) logits, or (B, T, V) logits of tokens, of which those without a target do not count.
    """
    return mean_of_valid(-F.log_softmax(outputs, dim=-1).mean(dim=-1), targets)
