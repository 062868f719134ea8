"""What the standard workloads have in common: their data, and the recipe that a baseline starts from."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import torch

from effbench import data, terms
from effbench.data import Splits
from effbench.errors import UnknownName
from effbench.recipe import Examples, Gradient, ModelFactory, OptimizerFactory, Recipe, Transform, Update

SPLITS = ("train", "validation", "test")


@functools.lru_cache(maxsize=4)
def splits(dataset: str) -> Splits:
    """Load a built-in data set, and remember it: a trial asks for it at every evaluation."""
    return data.load(dataset)


def examples_of(dataset: str, split: str) -> Examples:
    """Return the examples of one split of a built-in data set.

    Raises:
        UnknownName: there is no such split.
    """
    if split not in SPLITS:
        raise UnknownName("split", split, SPLITS)
    examples: Examples = getattr(splits(dataset), split)
    return examples


def baseline(
    dataset: Examples,
    model: ModelFactory,
    device: torch.device,
    *,
    batch_size: int,
    optimizer: OptimizerFactory,
    warmup: float,
    gradient: Gradient = terms.backward,
    update: Update = terms.step,
    transform: Transform = terms.unchanged,
    classes: int | None = None,
    traits: Iterable[str] = (),
) -> Recipe:
    """Make a baseline: data and model on the device, random order, cross-entropy, warm-up and linear decay to zero.

    warmup: share of the budget in which the rate rises.
    """
    return Recipe(
        dataset=Examples(dataset.inputs.to(device), dataset.targets.to(device)),
        sampler=terms.shuffled,
        loader=terms.by_position,
        batch_size=lambda progress: batch_size,  # noqa: ARG005 - the same from beginning to end
        transform=transform,
        model=model,
        placement=lambda model: model.to(device),
        loss=terms.cross_entropy,
        gradient=gradient,
        optimizer=optimizer,
        lr_schedule=terms.warmup_then_linear(warmup),
        update=update,
        eval_model=terms.trained_model,
        classes=classes,
        traits=frozenset(traits) | ({"clipped"} if update is not terms.step else set()),
    )
