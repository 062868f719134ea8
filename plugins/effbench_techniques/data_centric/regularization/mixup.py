"""Mixup: interpolate examples, and their labels with them."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from effbench import Batch, Recipe, Training, technique
from effbench.errors import InvalidTechnique, NotApplicable


@technique(
    "data_centric/regularization",
    paper="Zhang et al., mixup: Beyond Empirical Risk Minimization, arXiv:1710.09412",
    claim="CIFAR-10, PreAct ResNet-18: error 5.6 % -> 4.2 %; ImageNet, ResNet-50, 200 epochs: 23.6 % -> 22.1 %",
    neutral={"alpha": 0.0},
    # choose by the clean loss, at the size trained on; then mix
    after=["selective_backprop", "importance_sampling", "rho_loss", "progressive_resizing"],
)
def mixup(recipe: Recipe, *, alpha: float = 0.2) -> Recipe:
    """Train on convex combinations of two examples and of their labels.

    Every batch is mixed with a shuffled copy of itself: `share * x + (1 - share) * x[partner]`, and the same for the
    labels, as class probabilities. One share is drawn per batch from Beta(alpha, alpha): near 0 or 1 for a small
    alpha, uniform for 1, near one half for a large one. With probabilities as targets, cross-entropy equals
    `share * CE(y) + (1 - share) * CE(y[partner])`.

    When it helps: image classification over many epochs, where a model would else learn its examples by heart
        (MosaicML Composer's method card).
    When it does not: in one to three epochs there is nothing to regularise, and no gain or a loss is to be expected.

    alpha: both parameters of the Beta distribution of the share, no unit; 0 turns mixup off.
    """
    if not 0.0 <= alpha < math.inf:
        raise InvalidTechnique(f"mixup: alpha is {alpha}; it should be a finite number, 0 (off) or more")
    if (classes := recipe.classes) is None:
        raise NotApplicable("mixup averages class labels, and this workload has none")
    if "text" in recipe.traits:
        raise NotApplicable("mixup averages inputs, and the average of two token ids means nothing")
    if alpha == 0.0:
        return recipe

    def mix(batch: Batch, training: Training) -> Batch:
        batch = recipe.transform(batch, training)
        # torch draws no Beta from a generator of one's own
        seed = int(torch.randint(2**63 - 1, (), generator=training.rng))
        share = float(np.random.default_rng(seed).beta(alpha, alpha))
        partner = torch.randperm(len(batch), generator=training.rng).to(batch.inputs.device)
        targets = batch.targets
        if not targets.is_floating_point():
            targets = F.one_hot(targets, classes).float()
        return batch.replace(
            inputs=share * batch.inputs + (1.0 - share) * batch.inputs[partner],
            targets=share * targets + (1.0 - share) * targets[partner],
            weight=share * batch.weight + (1.0 - share) * batch.weight[partner],
        )

    return recipe.wrap(transform=mix)
