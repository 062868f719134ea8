"""TrivialAugment: one random operation of random strength on each image."""

from __future__ import annotations

import torch

from effbench import Batch, Recipe, Training, technique
from effbench.errors import NotApplicable
from effbench_techniques.data_centric.regularization.randaugment import OPERATIONS, operated, signs


@technique(
    "data_centric/regularization",
    paper="Mueller and Hutter, TrivialAugment: Tuning-free Yet State-of-the-Art Data Augmentation, arXiv:2103.10158",
    claim="as good as RandAugment and better, with nothing to tune",
    after=["selective_backprop", "importance_sampling", "rho_loss", "progressive_resizing"],  # choose by clean images
    title="TrivialAugment",
)
def trivialaugment(recipe: Recipe) -> Recipe:
    """Draw one operation and one strength for each image, both uniformly.

    The operations and their ranges are those of `randaugment`, the smaller of the two spaces in the paper.

    When it helps: long runs of image classification; cheaper than RandAugment, with no option.
    When it does not: short runs, where there is nothing to regularise.
    """
    if "image" not in recipe.traits:
        raise NotApplicable("trivialaugment changes images, and this workload has none")

    def augment(batch: Batch, training: Training) -> Batch:
        batch = recipe.transform(batch, training)
        which = torch.randint(len(OPERATIONS), (len(batch),), generator=training.rng)
        strengths = torch.rand(len(batch), generator=training.rng) * signs(len(batch), training.rng)
        return batch.replace(inputs=operated(batch.inputs, which, strengths))

    return recipe.wrap(transform=augment)
