"""Techniques for tests of the laws: lawful ones, and one that refuses everything."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from effbench import laws
from effbench.errors import NotApplicable
from effbench.recipe import Batch, Recipe, Training
from effbench.techniques import Technique, technique
from effbench.toys import TOYS
from made_techniques import CARD

torch.set_num_threads(1)

LEAF = "optimization_centric/objective"


def broken(technique: Technique, *toys: str, **arguments: object) -> dict[str, str]:
    """Law -> what is wrong, for the laws that `technique` breaks on some toys."""
    chosen = {toy: TOYS[toy] for toy in toys or ("vectors",)}
    return {found.law: str(found) for found in laws.check(technique, toys=chosen, **arguments) if not found.ok}


@technique(LEAF, **CARD, neutral={"by": 1.0})
def scaled(recipe: Recipe, *, by: float = 0.5) -> Recipe:
    """Scale the loss.

    by: the factor.
    """

    def loss(outputs: Tensor, batch: Batch) -> Tensor:
        return by * recipe.loss(outputs, batch)

    return recipe.wrap(loss=loss)


@technique(LEAF, **CARD)
def choosy(recipe: Recipe) -> Recipe:
    """Take no toy."""
    raise NotApplicable("it wants video")


@technique(LEAF, **CARD)
def keeping(recipe: Recipe) -> Recipe:
    """Keep the number of its calls in the training, as it should be."""

    def gradient(training: Training, batch: Batch) -> Tensor:
        training.kept["keeping"] = calls = training.kept.get("keeping", 0) + 1
        return recipe.gradient(training, batch.replace(weight=batch.weight * calls))

    return recipe.wrap(gradient=gradient)


@technique(LEAF, **CARD)
def swapping(recipe: Recipe) -> Recipe:
    """Discard the old loss, and say so."""

    def loss(outputs: Tensor, batch: Batch) -> Tensor:
        return nn.functional.cross_entropy(outputs, batch.targets, reduction="none")

    return recipe.swap(loss=loss)
