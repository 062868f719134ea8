"""Small runs of the loop on toys: what tests of training have in common."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from effbench.budget import Budget
from effbench.clock import Ledger, StepClock, WallClock
from effbench.recipe import Batch, Recipe, Training
from effbench.toys import TOYS
from effbench.train import start, train

torch.set_num_threads(1)


def vectors(**changes: object) -> Recipe:
    return dataclasses.replace(TOYS["vectors"](), **changes)


def noting(recipe: Recipe, seen: list[Tensor]) -> Recipe:
    """Note the positions of every batch."""

    def loader(positions: Tensor, training: Training) -> Batch:
        seen.append(positions.clone())
        return recipe.loader(positions, training)

    return dataclasses.replace(recipe, loader=loader)


def run(recipe: Recipe, budget: str = "6 steps", clock=None, **how) -> Training:
    training = start(recipe, how.pop("seed", 0), **how)
    for _ in train(training, Budget.parse(budget), clock or StepClock()):
        pass
    return training


def rates(recipe: Recipe, budget: str, clock, **how) -> list[float]:
    """The learning rate of every step, as a share of the peak."""
    training = start(recipe, 0, **how)
    group = training.optimizer.param_groups[0]
    return [group["lr"] / group["initial_lr"] for _ in train(training, Budget.parse(budget), clock)]


def straight(progress: float) -> float:
    """A schedule that falls from the peak to nothing in a line."""
    return 1.0 - progress


def weights(training: Training) -> Tensor:
    return torch.cat([tensor.flatten().double() for tensor in training.model.state_dict().values()])


class Time:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def taking(recipe: Recipe, seconds, time: Time) -> Recipe:
    """Let the gradient of step k take seconds[k], the last one from there on."""

    def gradient(training: Training, batch: Batch) -> Tensor:
        time.seconds += seconds[min(training.step, len(seconds) - 1)]
        return recipe.gradient(training, batch)

    return dataclasses.replace(recipe, gradient=gradient)


def under_wall(recipe: Recipe, seconds, budget: str) -> tuple[Training, list[float]]:
    time = Time()
    training = start(taking(recipe, seconds, time), 0, ledger=Ledger(time, time))
    group = training.optimizer.param_groups[0]
    seen = [group["lr"] / group["initial_lr"] for _ in train(training, Budget.parse(budget), WallClock())]
    return training, seen
