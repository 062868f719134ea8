"""Batch augmentation: several copies of each example in one batch, each augmented in its own way."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from effbench import Recipe, Training, technique
from effbench.errors import InvalidTechnique

_MOST_COPIES = 1000  # of an example, all of which are drawn at once


@technique(
    "data_centric/regularization",
    paper="Hoffer et al., Augment Your Batch: Better Training with Larger Batches, arXiv:1901.09335; at constant batch "
    "size in Berman et al., MultiGrain, arXiv:1902.05509",
    claim="ImageNet, ResNet-50: fewer updates to the same accuracy, and about one point more at equal epochs",
    neutral={"copies": 1},
    title="Batch augmentation",
)
def batch_augmentation(recipe: Recipe, *, copies: int = 2) -> Recipe:
    """Repeat each example in the batch, so that each update sees several augmentations of fewer examples.

    The batch size stays, so a batch has 1 / copies as many different examples, and an epoch takes `copies` times as
    many steps. Augmentations, which have to be in the same set, differ for each copy; without any the copies are alike,
    and the batch is but a smaller one that costs as much.

    When it helps: long runs with large batches, whose gradient has little noise left.
    When it does not: short budgets, in which half of the different examples are seen in the same time.

    copies: how often each example is in a batch; 1 turns it off.
    """
    if not 1 <= copies <= _MOST_COPIES:
        raise InvalidTechnique(f"batch_augmentation: copies is {copies}; it should be 1 (off) to {_MOST_COPIES}")
    if copies == 1:
        return recipe

    def sampler(training: Training) -> Iterator[Tensor]:
        for chunk in recipe.sampler(training):
            yield chunk.repeat_interleave(copies)

    return recipe.wrap(sampler=sampler)
