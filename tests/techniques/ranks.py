"""What tests of several processes share: train, and bring home what every rank has to tell."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist

from effbench.budget import Budget
from effbench.clock import StepClock
from effbench.distributed.group import Group
from effbench.distributed.launch import run_ranks
from effbench.recipe import Recipe, Training
from effbench.train import start, train
from toy import flat


def on_all_ranks(
    recipe: Recipe, tell: Callable[[Training], object], steps: int = 6, look: Callable[[Training], object] | None = None
) -> list[object]:
    """Train in as many processes as the recipe wants; `look` after each step; return what each rank tells."""

    def body(group: Group) -> list[object]:
        training = start(recipe, 0, group=group)
        for _ in train(training, Budget(steps, "steps"), StepClock()):
            if look is not None:
                look(training)
        told: list[object] = [tell(training)]
        if group.size > 1:
            everyone: list[object] = [None] * group.size
            dist.all_gather_object(everyone, told[0])
            return everyone
        return told

    return run_ranks(recipe.processes, body)


def evaluated(training: Training) -> torch.Tensor:
    """The weights of the model that would be evaluated, in one vector."""
    return flat(training.recipe.eval_model(training))


def distance(recipe: Recipe, one_process: Recipe, steps: int = 6) -> float:
    """The largest difference of a weight when rank 0 of several processes and when one process has trained it."""
    several, alone = on_all_ranks(recipe, evaluated, steps)[0], on_all_ranks(one_process, evaluated, steps)[0]
    assert several.shape == alone.shape
    return float((several - alone).abs().max())
