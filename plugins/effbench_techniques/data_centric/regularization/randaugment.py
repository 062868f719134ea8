"""RandAugment: a few random operations of one magnitude on each image."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from effbench import Batch, Recipe, Training, technique
from effbench.errors import InvalidTechnique, NotApplicable

Operation = Callable[[Tensor, Tensor], Tensor]  # images (K, C, H, W), strengths (K,) from -1 to 1 -> images

_TINY = 1e-6  # the range of an image of one colour


@technique(
    "data_centric/regularization",
    paper="Cubuk et al., RandAugment: Practical Automated Data Augmentation with a Reduced Search Space, "
    "arXiv:1909.13719",
    claim="ImageNet, ResNet-50: 1.3 points more, as much as policies that are searched for",
    neutral={"operations": 0},
    after=["selective_backprop", "importance_sampling", "rho_loss", "progressive_resizing"],  # choose by clean images
    title="RandAugment",
)
def randaugment(recipe: Recipe, *, operations: int = 2, magnitude: float = 0.3) -> Recipe:
    """Apply random operations to each image, one after the other, all as strong, in a random direction.

    Each is drawn for each image by itself: nothing, rotation, shear or translation along either axis, brightness,
    contrast, sharpness, solarising, or posterising. Pixels are understood by the least and the greatest of the image,
    which may be normalised; what moves in from outside is as dark as the darkest. The paper's changes of colour,
    equalising and autocontrast are left out: they need images of three channels, or of known range.

    When it helps: image classification over many epochs: 0.7 points for ResNet-50, 1.4 for ResNet-101 (MosaicML
        Composer's method card).
    When it does not: short runs; small images on few CPU cores, where augmenting costs as much as training.

    operations: number of operations on each image; 0 turns it off.
    magnitude: of all operations, from 0 (hardly visible) to 1; the paper's 9 of 30 is 0.3.
    """
    if operations < 0:
        raise InvalidTechnique(f"randaugment: operations is {operations}; it should be 0 (off) or more")
    if not 0.0 <= magnitude <= 1.0:
        raise InvalidTechnique(f"randaugment: magnitude is {magnitude}; it should be from 0 to 1")
    if "image" not in recipe.traits:
        raise NotApplicable("randaugment changes images, and this workload has none")
    if operations == 0:
        return recipe

    def augment(batch: Batch, training: Training) -> Batch:
        batch = recipe.transform(batch, training)
        images = batch.inputs
        for _ in range(operations):
            which = torch.randint(len(OPERATIONS), (len(batch),), generator=training.rng)
            images = operated(images, which, torch.full((len(batch),), magnitude) * signs(len(batch), training.rng))
        return batch.replace(inputs=images)

    return recipe.wrap(transform=augment)


def operated(images: Tensor, which: Tensor, strengths: Tensor) -> Tensor:
    """Apply to each image (B, C, H, W) the operation of the number `which`, (B,), with its strength, (B,)."""
    images = images.clone()
    for number, operation in enumerate(OPERATIONS.values()):
        chosen = (which == number).nonzero()[:, 0]
        if len(chosen):
            there = chosen.to(images.device)
            images[there] = operation(images[there], strengths[chosen].to(images))
    return images


def signs(count: int, random: torch.Generator) -> Tensor:
    """Draw (count,) directions, -1 or 1."""
    return 2.0 * torch.randint(2, (count,), generator=random) - 1.0


def limits(images: Tensor) -> tuple[Tensor, Tensor]:
    """Return the least and the greatest pixel of each image, (K, 1, 1, 1)."""
    return images.amin((1, 2, 3), keepdim=True), images.amax((1, 2, 3), keepdim=True)


def moving(matrix: Callable[[Tensor], list[list[Tensor]]]) -> Operation:
    """Return an operation that moves pixels by an affine map, (K,) strengths -> 2 rows of 3 numbers, each (K,)."""

    def move(images: Tensor, strengths: Tensor) -> Tensor:
        low, _ = limits(images)
        maps = torch.stack([torch.stack(row, 1) for row in matrix(strengths)], 1)
        grid = F.affine_grid(maps, list(images.shape), align_corners=False)
        return F.grid_sample(images - low, grid, align_corners=False) + low

    return move


def rotation(strengths: Tensor) -> list[list[Tensor]]:
    """Turn by up to 30 degrees."""
    angle, zero = strengths * (math.pi / 6), torch.zeros_like(strengths)
    return [[angle.cos(), -angle.sin(), zero], [angle.sin(), angle.cos(), zero]]


def slanted(strengths: Tensor, *, rows: bool) -> list[list[Tensor]]:
    """Shear by up to 0.3."""
    one, zero, slope = torch.ones_like(strengths), torch.zeros_like(strengths), 0.3 * strengths
    return [[one, slope, zero], [zero, one, zero]] if rows else [[one, zero, zero], [slope, one, zero]]


def shifted(strengths: Tensor, *, rows: bool) -> list[list[Tensor]]:
    """Translate by up to 0.45 of the side, which is 2 long here."""
    one, zero, way = torch.ones_like(strengths), torch.zeros_like(strengths), 0.9 * strengths
    return [[one, zero, way], [zero, one, zero]] if rows else [[one, zero, zero], [zero, one, way]]


def brightness(images: Tensor, strengths: Tensor) -> Tensor:
    """Scale the distance to the darkest pixel by 0.1 to 1.9."""
    low, _ = limits(images)
    return low + (images - low) * (1.0 + 0.9 * strengths.view(-1, 1, 1, 1))


def contrast(images: Tensor, strengths: Tensor) -> Tensor:
    """Scale the distance to the mean by 0.1 to 1.9."""
    mean = images.mean((1, 2, 3), keepdim=True)
    return mean + (images - mean) * (1.0 + 0.9 * strengths.view(-1, 1, 1, 1))


def sharpness(images: Tensor, strengths: Tensor) -> Tensor:
    """Add up to 0.9 of the difference to the mean of each pixel's neighbourhood, or take it away."""
    blurred = F.avg_pool2d(images, 3, stride=1, padding=1, count_include_pad=False)
    return images + 0.9 * strengths.view(-1, 1, 1, 1) * (images - blurred)


def solarise(images: Tensor, strengths: Tensor) -> Tensor:
    """Invert what is brighter than a threshold, which falls from the brightest pixel to the darkest."""
    low, high = limits(images)
    threshold = high - strengths.abs().view(-1, 1, 1, 1) * (high - low)
    return torch.where(images > threshold, low + high - images, images)


def posterise(images: Tensor, strengths: Tensor) -> Tensor:
    """Round to 2^8 to 2^4 levels of brightness."""
    low, high = limits(images)
    steps = 2.0 ** (8 - (4 * strengths.abs()).round()).view(-1, 1, 1, 1) - 1
    scale = (high - low).clamp_min(_TINY)
    return low + ((images - low) / scale * steps).round() / steps * scale


#: name -> operation.
OPERATIONS: dict[str, Operation] = {
    "nothing": lambda images, _: images,
    "rotate": moving(rotation),
    "shear_x": moving(lambda strengths: slanted(strengths, rows=True)),
    "shear_y": moving(lambda strengths: slanted(strengths, rows=False)),
    "translate_x": moving(lambda strengths: shifted(strengths, rows=True)),
    "translate_y": moving(lambda strengths: shifted(strengths, rows=False)),
    "brightness": brightness,
    "contrast": contrast,
    "sharpness": sharpness,
    "solarise": solarise,
    "posterise": posterise,
}
