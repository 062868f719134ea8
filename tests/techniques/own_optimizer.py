"""What tests of optimizers share: random gradients for a single weight, and what every optimizer promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from effbench.errors import Conflict
from effbench.recipe import Training
from effbench.techniques import Technique, compose, technique
from toy import begun, images, run, same, tokens, vectors

STEPS = 30


def steps(
    make: Callable[[list[nn.Parameter]], Optimizer], *shape: int, drift: float = 0.0
) -> Iterator[tuple[Tensor, Tensor, float, nn.Parameter, Optimizer]]:
    """Let an optimizer take steps of falling rate on one random weight, by random gradients around `drift`.

    Yields after each: the weight before the first step, the gradient, the rate, the weight, the optimizer.
    """
    random = torch.Generator().manual_seed(0)
    weight = nn.Parameter(torch.randn(*shape, generator=random))
    before = weight.detach().clone()
    optimizer = make([weight])
    peak = optimizer.param_groups[0]["lr"]
    for step in range(STEPS):
        gradient = drift + torch.randn(*shape, generator=random)
        rate = peak / (step + 1)
        optimizer.param_groups[0]["lr"] = rate
        weight.grad = gradient.clone()
        optimizer.step()
        assert torch.equal(weight.grad, gradient)  # which others may want to see
        yield before, gradient, rate, weight, optimizer


def keeps_the_groups(ours: Technique, rate: str = "lr") -> None:
    """The groups are the baseline's, and so is the share of a weight that decay takes, as SGD repeats it.

    rate: the option that is the rate.
    """
    for make in (vectors, images, tokens):
        optimizer = begun(ours.apply(make(), {rate: 0.01})).optimizer
        theirs = begun(make()).optimizer
        for group, baseline in zip(optimizer.param_groups, theirs.param_groups, strict=True):
            assert [p.shape for p in group["params"]] == [p.shape for p in baseline["params"]]
            repeats = 10.0 if make is images else 1.0
            assert group["lr"] * group["weight_decay"] == pytest.approx(
                baseline["lr"] * baseline["weight_decay"] * repeats
            )
            assert group["initial_lr"] == 0.01


def trains_and_excludes_others(ours: Technique) -> None:
    """It trains from the baseline's start, and another technique that brings an optimizer is refused by name."""
    training = begun(ours.apply(vectors(), {}))
    assert same(training.model, begun(vectors()).model)
    assert loss(run(ours.apply(vectors(), {}), 200)) < loss(training) - 0.2

    @technique("optimization_centric/learning_rate", paper="-", claim="-")
    def another(recipe):
        return recipe.swap(optimizer=recipe.optimizer)

    with pytest.raises(Conflict, match="optimizer"):
        compose(vectors(), {ours.name: {}, "another": {}}, {ours.name: ours, "another": another})


def loss(training: Training) -> float:
    """The mean loss over the data set."""
    dataset = training.recipe.dataset
    with torch.no_grad():
        return float(nn.functional.cross_entropy(training.model(dataset.inputs), dataset.targets))
