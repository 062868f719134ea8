"""CutMix: paste a patch of another image, and mix the labels by area."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F

from effbench import Batch, Recipe, Training, technique
from effbench.errors import InvalidTechnique, NotApplicable


@technique(
    "data_centric/regularization",
    paper="Yun et al., CutMix: Regularization Strategy to Train Strong Classifiers with Localizable Features, "
    "arXiv:1905.04899",
    claim="ImageNet, ResNet-50: 76.3 % -> 78.6 % top-1",
    neutral={"alpha": 0.0},
    # choose by the clean loss, at the size trained on; then mix
    after=["selective_backprop", "importance_sampling", "rho_loss", "progressive_resizing"],
    title="CutMix",
)
def cutmix(recipe: Recipe, *, alpha: float = 1.0) -> Recipe:
    """Paste a patch of another image into each image, and mix the labels by the area of the patch.

    One box is drawn per batch: its centre uniformly, its sides as shares of the image's own height and width, so that
    the box covers the share `1 - Beta(alpha, alpha)` before it is clipped at the border. The partner's label counts as
    much as the share of the pixels that really come from it.

    When it helps: image classification over many epochs.
    When it does not: in short runs, where a regulariser has nothing to do, no gain or a loss is to be expected.

    alpha: both parameters of the Beta distribution of the share that stays, no unit; 1 is uniform, 0 turns CutMix off.
    """
    if not 0.0 <= alpha < math.inf:
        raise InvalidTechnique(f"cutmix: alpha is {alpha}; it should be a finite number, 0 (off) or more")
    if "image" not in recipe.traits:
        raise NotApplicable("cutmix pastes patches of images, and this workload has none")
    if (classes := recipe.classes) is None:
        raise NotApplicable("cutmix averages class labels, and this workload has none")
    if alpha == 0.0:
        return recipe

    def paste(batch: Batch, training: Training) -> Batch:
        batch = recipe.transform(batch, training)
        height, width = batch.inputs.shape[-2:]
        # torch draws no Beta from a generator of one's own
        random = np.random.default_rng(int(torch.randint(2**63 - 1, (), generator=training.rng)))
        top, bottom, left, right = draw_box(random, alpha, height, width)
        share = (bottom - top) * (right - left) / (height * width)
        partner = torch.randperm(len(batch), generator=training.rng).to(batch.inputs.device)
        targets = batch.targets
        if not targets.is_floating_point():
            targets = F.one_hot(targets, classes).float()
        inputs = batch.inputs.clone()
        inputs[..., top:bottom, left:right] = batch.inputs[partner, ..., top:bottom, left:right]
        return batch.replace(
            inputs=inputs,
            targets=(1.0 - share) * targets + share * targets[partner],
            weight=(1.0 - share) * batch.weight + share * batch.weight[partner],
        )

    return recipe.wrap(transform=paste)


def draw_box(random: np.random.Generator, alpha: float, height: int, width: int) -> tuple[int, int, int, int]:
    """Draw a box and clip it at the border: its first row and the row after its last, then the same for columns."""
    side = math.sqrt(1.0 - random.beta(alpha, alpha))
    rows, columns = int(height * side), int(width * side)
    top = int(random.integers(height)) - rows // 2
    left = int(random.integers(width)) - columns // 2
    return max(0, top), min(height, top + rows), max(0, left), min(width, left + columns)
