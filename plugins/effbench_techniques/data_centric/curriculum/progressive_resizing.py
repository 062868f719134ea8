"""Progressive resizing: small images first, full size last."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F

from effbench import Batch, Recipe, Training, technique
from effbench.errors import InvalidTechnique, NotApplicable


@technique(
    "data_centric/curriculum",
    paper="Tan and Le, EfficientNetV2: Smaller Models and Faster Training, arXiv:2104.00298; "
    "before it in fastai's entry to DAWNBench, 2018",
    claim="EfficientNetV2 trains up to 11 times faster than earlier models at equal accuracy",
    neutral={"initial_scale": 1.0},
)
def progressive_resizing(
    recipe: Recipe,
    *,
    initial_scale: float = 0.5,
    delay: float = 0.5,
    finetune: float = 0.2,
    size_increment: int = 4,
) -> Recipe:
    """Train on small images first, and on images of full size last.

    The images are small until `delay` of the budget, grow linearly, and have their full size in the last `finetune` of
    it. Height and width are rounded down to multiples of `size_increment`, so that there are few sizes, and each has
    one price. Pixels are interpolated bilinearly, with a filter against aliasing.

    When it helps: convolutional networks whose cost grows with the number of pixels, when coarse features come first.
        These defaults are those that MosaicML Composer's method card recommends.
    When it does not: images so small that half their size loses what there is to see; networks that are bound by
        overhead, not by pixels.

    initial_scale: share of the full height and width at the beginning; 1 turns it off.
    delay: share of the budget before the images begin to grow.
    finetune: share of the budget at its end in which the images have their full size.
    size_increment: height and width are multiples of so many pixels, except at full size.
    """
    if not 0.0 < initial_scale <= 1.0:
        raise InvalidTechnique(
            f"progressive_resizing: initial_scale is {initial_scale}; it should be a share above 0, up to 1 (off)"
        )
    if min(delay, finetune) < 0.0 or not delay + finetune <= 1.0:
        raise InvalidTechnique(
            f"progressive_resizing: delay is {delay} and finetune {finetune}; they should be shares of the budget, "
            "together 1 at most"
        )
    if size_increment < 1:
        raise InvalidTechnique(
            f"progressive_resizing: size_increment is {size_increment}; it should be 1 pixel or more"
        )
    if not {"image", "any_resolution"} <= recipe.traits:
        raise NotApplicable("progressive_resizing needs images, and a model that takes them at any resolution")
    if initial_scale == 1.0:
        return recipe
    size_at = growing(initial_scale, delay, finetune, size_increment)

    def resize(batch: Batch, training: Training) -> Batch:
        batch = recipe.transform(batch, training)
        full = batch.inputs.shape[-2:]
        size = [size_at(training.progress, side) for side in full]
        if size == list(full):
            return batch
        inputs = F.interpolate(batch.inputs, size, mode="bilinear", antialias=True)
        return batch.replace(inputs=inputs)

    return recipe.wrap(transform=resize)


def growing(initial_scale: float, delay: float, finetune: float, increment: int) -> Callable[[float, int], int]:
    """Return the function (progress, full side) -> side, both in pixels."""

    def size_at(progress: float, full: int) -> int:
        if progress >= 1.0 - finetune:
            return full
        grown = max(0.0, progress - delay) / (1.0 - finetune - delay) if progress > delay else 0.0
        wanted = full * (initial_scale + (1.0 - initial_scale) * grown)
        return min(full, max(increment, int(wanted) // increment * increment))

    return size_at
