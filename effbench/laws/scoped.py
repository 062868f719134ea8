"""The law of scope, tried: change one number of a gradient, and see which weights go elsewhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from effbench.budget import Budget
from effbench.clock import StepClock
from effbench.laws.observing import SEED, STEPS
from effbench.recipe import Batch, Recipe, Scope, Training
from effbench.train import start, train


def scoped_by(scope: Scope, recipe: Recipe) -> str:
    """Say which weights that lie beyond `scope` heed the gradient of another one; "" where none does.

    In each of some tensors, one number of the first gradient is made another, and the weights are compared that are
    trained and those that would be evaluated. All gradients are random numbers, whatever the weights are.
    """
    plain = stepped(recipe, {})
    for name, weight in tried(recipe.model()):
        middle = weight.numel() // 2
        other = stepped(recipe, {name: middle})
        for each, moved in other.items():
            changed = (moved != plain[each]).flatten()
            if each.removeprefix("evaluated ") == name:
                if scope == "tensor":
                    continue
                changed[middle] = False
            if heeding := int(changed.sum()):
                return (
                    f"its scope is {scope!r}, and yet {heeding} other weights, of {each}, heed the gradient of a "
                    f"single one of {name}"
                )
    return ""


def tried(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """Yield the largest tensor of each number of dimensions, in the model's blocks where it has some."""
    weights = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
    weights = [(name, weight) for name, weight in weights if name.startswith("blocks.")] or weights
    for dimensions in sorted({weight.ndim for _, weight in weights}):
        yield max((each for each in weights if each[1].ndim == dimensions), key=lambda each: each[1].numel())


def stepped(recipe: Recipe, changed: dict[str, int]) -> dict[str, Tensor]:
    """Return the weights after some steps with random gradients, trained and evaluated ones, by name.

    changed: name -> position at which the gradient of the first step is another.
    """
    random = torch.Generator().manual_seed(SEED)

    def gradient(training: Training, batch: Batch) -> Tensor:
        for name, weight in training.model.named_parameters():
            if weight.requires_grad:
                slope = torch.randn(weight.shape, generator=random)
                if training.step == 0 and name in changed:
                    slope.view(-1)[changed[name]].mul_(-2.0)
                weight.grad = slope
        return torch.ones(len(batch))

    training = start(dataclasses.replace(recipe, gradient=gradient), SEED)
    for _ in train(training, Budget(STEPS, "steps"), StepClock()):
        pass
    return found(training)


def found(training: Training) -> dict[str, Tensor]:
    """Return copies of the weights of a run, those that would be evaluated among them."""
    evaluated = training.recipe.eval_model(training)
    models = {"": training.model, "evaluated ": evaluated}
    return {
        f"{prefix}{name}": weight.detach().clone()
        for prefix, model in models.items()
        for name, weight in model.named_parameters()
    }
