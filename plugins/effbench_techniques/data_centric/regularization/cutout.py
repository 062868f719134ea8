"""Cutout: hide a random square of each image."""

from __future__ import annotations

import torch
from torch import Tensor

from effbench import Batch, Recipe, Training, technique
from effbench.errors import InvalidTechnique, NotApplicable


@technique(
    "data_centric/regularization",
    paper="DeVries and Taylor, Improved Regularization of Convolutional Neural Networks with Cutout, arXiv:1708.04552",
    claim="errors of 2.56 % on CIFAR-10, 15.20 % on CIFAR-100 and 1.30 % on SVHN",
    neutral={"size": 0.0},
    after=["selective_backprop", "importance_sampling", "rho_loss", "progressive_resizing"],  # choose by clean images
)
def cutout(recipe: Recipe, *, size: float = 0.5) -> Recipe:
    """Set a square of each image to zero, at a place of its own; labels stay as they are.

    The centre is drawn uniformly from all pixels, so that the square may reach over the border and hide less, which the
    paper found to be important. Zero is what pixels are on average where they are normalised.

    When it helps: image classification over many epochs.
    When it does not: no gain beside other regularisers that are tuned well (MosaicML Composer's method card); in short
        runs there is nothing to regularise.

    size: side of the square, as a share of the image's height and width; 0 turns it off.
    """
    if not 0.0 <= size <= 1.0:
        raise InvalidTechnique(f"cutout: size is {size}; it should be a share of the side, from 0 (off) to 1")
    if "image" not in recipe.traits:
        raise NotApplicable("cutout hides squares of images, and this workload has none")
    if size == 0.0:
        return recipe

    def cut(batch: Batch, training: Training) -> Batch:
        batch = recipe.transform(batch, training)
        height, width = batch.inputs.shape[-2:]
        rows, columns = (stripes(len(batch), side, round(size * side), training.rng) for side in (height, width))
        hidden = (rows[:, None, :, None] & columns[:, None, None, :]).to(batch.inputs.device)
        return batch.replace(inputs=batch.inputs.masked_fill(hidden, 0.0))

    return recipe.wrap(transform=cut)


def stripes(count: int, side: int, size: int, random: torch.Generator) -> Tensor:
    """Draw one stripe of `size` pixels in each of `count` rows of `side` pixels, (count, side), clipped at the ends."""
    start = torch.randint(side, (count, 1), generator=random) - size // 2
    pixels = torch.arange(side)
    return (pixels >= start) & (pixels < start + size)
