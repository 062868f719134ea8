"""A stranger's plugin: techniques that take their time, for steps that differ in what they cost."""

from __future__ import annotations

import time

import torch

import effbench
from effbench import Batch, Recipe, Training

LEAF = "optimization_centric/objective"
NOTE = {"paper": "none; made for tests, arXiv:0000.00000", "claim": "none"}


@effbench.technique(LEAF, **NOTE)
def slow(recipe: Recipe, *, seconds: float = 0.05, first: float = 0.0) -> Recipe:
    """Sleep in every step, and longer in the first."""

    def gradient(training: Training, batch: Batch) -> torch.Tensor:
        time.sleep(first if first and training.step == 0 else seconds)
        return recipe.gradient(training, batch)

    return recipe.wrap(gradient=gradient)


@effbench.technique(LEAF, **NOTE)
def by_example(recipe: Recipe, *, seconds: float = 0.001, slices: int = 1) -> Recipe:
    """Take as long as there are examples, and take the gradient slice by slice."""

    def gradient(training: Training, batch: Batch) -> torch.Tensor:
        time.sleep(seconds * len(batch))
        return torch.cat([recipe.gradient(training, batch[part]) for part in torch.arange(len(batch)).chunk(slices)])

    return recipe.wrap(gradient=gradient)


@effbench.technique(LEAF, **NOTE)
def preparation(recipe: Recipe, *, seconds: float = 1.0) -> Recipe:
    """Spend time before the first step."""
    return recipe.at(0.0, lambda training: time.sleep(seconds))


@effbench.technique(LEAF, **NOTE)
def busy(recipe: Recipe, *, seconds: float = 0.001) -> Recipe:
    """Keep the processor busy in every step."""
    return recipe.wrap(gradient=taking(recipe, lambda count: seconds))


@effbench.technique(LEAF, **NOTE)
def half_batches(recipe: Recipe) -> Recipe:
    """Train on half a batch for half of the budget."""
    return recipe.wrap(batch_size=lambda progress: 10 if progress < 0.5 else 20)


@effbench.technique(LEAF, **NOTE)
def upside_down(recipe: Recipe) -> Recipe:
    """Take longer for half a batch than for a whole one, as only a disturbed machine makes it seem."""
    slower = taking(recipe, lambda count: 0.001 if count == 20 else 0.02)
    return recipe.wrap(gradient=slower, batch_size=lambda progress: 10 if progress < 0.5 else 20)


def taking(recipe: Recipe, seconds):
    def gradient(training: Training, batch: Batch) -> torch.Tensor:
        until = time.process_time() + seconds(len(batch))
        while time.process_time() < until:
            pass
        return recipe.gradient(training, batch)

    return gradient


@effbench.hookimpl
def effbench_techniques() -> list[effbench.Technique]:
    return [thing for thing in globals().values() if isinstance(thing, effbench.Technique)]
