"""What a technique has done once, aside from the run: train a scout model, score every example.

It belongs into a milestone, so that it is on the clock. The run's own model, optimizer and random numbers stay as
they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from effbench.recipe import Batch, Recipe, Training
from effbench.train import Positions, set_rate, take_step
from effbench.workloads.evaluation import evaluating

_EXAMPLES = 256  # scored at a time: bounds the memory, and changes nothing else


def train_aside(recipe: Recipe, training: Training, positions: Tensor, steps: int) -> nn.Module:
    """Train a fresh model by `recipe` for some steps, the rate fully decayed; return it as it is placed.

    positions: (K,) examples that it is trained on, in random order.
    """
    seed = int(torch.randint(2**62, (), generator=training.rng))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = recipe.model()
        forward = recipe.placement(model)
        optimizer = recipe.optimizer(model)
        for parameters in optimizer.param_groups:
            parameters.setdefault("initial_lr", parameters["lr"])
        aside = Training(
            recipe=recipe,
            model=model,
            forward=forward,
            optimizer=optimizer,
            rng=torch.Generator().manual_seed(seed),
            order=torch.Generator().manual_seed(seed),
            epoch_examples=len(positions),
        )
        drawn = Positions(_epochs(positions, aside.order))
        for step in range(steps):
            aside.progress = step / steps
            set_rate(aside, recipe.lr_schedule((step + 1) / steps))
            take_step(aside, drawn)
    return model


def score(recipe: Recipe, training: Training, model: nn.Module, scored: Callable[[Any, Batch], Tensor]) -> Tensor:
    """Return the score of every example of the data set, (N,), on the CPU, by a model in evaluation mode.

    scored: (outputs, batch) -> (B,). Examples are scored as they are loaded, without the recipe's transform.
    """
    with evaluating(model):
        found = []
        for positions in torch.split(torch.arange(len(recipe.dataset)), _EXAMPLES):
            batch = recipe.loader(positions, training)
            found.append(scored(model(batch.inputs), batch).float().cpu())
    return torch.cat(found)


def _epochs(positions: Tensor, random: torch.Generator) -> Iterator[Tensor]:
    while True:
        yield positions[torch.randperm(len(positions), generator=random)]
