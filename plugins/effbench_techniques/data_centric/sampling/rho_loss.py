"""RHO-loss: train on what is not learnt yet, and can be."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from effbench import Batch, Recipe, Training, technique
from effbench.aside import train_aside
from effbench.errors import InvalidTechnique
from effbench.workloads.evaluation import evaluating

_ROUNDING = 1e-9  # 0.56 * 25 is a little more than 14, and should not keep 15


@technique(
    "data_centric/sampling",
    paper="Mindermann et al., Prioritized Training on Points that are Learnable, Worth Learning, and Not Yet Learnt, "
    "arXiv:2206.07137",
    claim="Clothing-1M: 18 times fewer steps, and 2 points more accuracy, than uniform sampling",
    neutral={"ratio": 1.0},
    after=["progressive_resizing", "seq_length_warmup", "selective_backprop"],
    title="RHO-loss",
)
def rho_loss(recipe: Recipe, *, ratio: float = 0.25, holdout: float = 0.1, holdout_steps: int = 50) -> Recipe:
    """Train on the examples whose loss is highest above what a model of held-out data says cannot be reduced.

    A share of the examples is held out before the first step, and never trained on. A model of the same kind is trained
    on it for some steps, with its rate decayed; all of that is on the clock. From then on, 1 / `ratio` times as many
    examples are drawn, and those are trained on whose loss minus the loss of the hold-out model is highest: neither the
    learnt ones, whose loss is low, nor noise, whose loss is high in both. The hold-out model's loss of an example is
    computed once, except where masks make another example of it each time.

    When it helps: large, noisy, redundant data, where most examples are learnt or cannot be, and a hold-out model that
        serves many runs; here every run pays for its own.
    When it does not: no gain for BERT once the cost of the selection counts (Kaddour et al., No Train No Gain,
        arXiv:2307.06440).

    ratio: share of the drawn examples that are trained on; 1 turns it off.
    holdout: share of the examples that is held out.
    holdout_steps: steps of training of the hold-out model; 0 takes an irreducible loss of zero, and holds nothing out.
    """
    if not 0.0 < ratio <= 1.0:
        raise InvalidTechnique(f"rho_loss: ratio is {ratio}; it should be a share above 0, up to 1 (off)")
    if not 0.0 < holdout < 1.0:
        raise InvalidTechnique(f"rho_loss: holdout is {holdout}; it should be a share between 0 and 1")
    if holdout_steps < 0:
        raise InvalidTechnique(f"rho_loss: holdout_steps is {holdout_steps}; it should be 0 or more")
    if ratio == 1.0:
        return recipe

    def train_holdout(training: Training) -> None:
        memory = remembered(training, holdout, holdout_steps)
        memory["model"] = train_aside(recipe, training, memory["held_out"].nonzero()[:, 0], holdout_steps)

    def sampler(training: Training) -> Iterator[Tensor]:
        held_out = remembered(training, holdout, holdout_steps)["held_out"]
        for chunk in recipe.sampler(training):
            if len(rest := chunk[~held_out[chunk]]):
                yield rest

    def select(batch: Batch, training: Training) -> Batch:
        batch = recipe.transform(batch, training)
        kept = min(len(batch), max(2, math.ceil(ratio * len(batch) - _ROUNDING)))
        with training.extra():
            with evaluating(training.model):
                losses = recipe.loss(training.forward(batch.inputs), batch)
            memory = remembered(training, holdout, holdout_steps)
            rho = losses - irreducible(recipe, batch, memory, reuse="masked" not in recipe.traits)
            return batch[rho.argsort(descending=True, stable=True)[:kept].sort().values]

    drawing = recipe.wrap(
        batch_size=lambda progress: math.ceil(recipe.batch_size(progress) / ratio - _ROUNDING),
        transform=select,
    )
    return drawing.wrap(sampler=sampler).at(0.0, train_holdout) if holdout_steps else drawing


def remembered(training: Training, holdout: float, steps: int) -> dict[str, Any]:
    """Return what is remembered of the run: (N,) which examples are held out, their model, (N,) losses by it, or NaN.

    Before the hold-out model is trained, there is none.
    """
    if "rho_loss" not in training.kept:
        count = len(training.recipe.dataset)
        held_out = torch.zeros(count, dtype=torch.bool)
        if steps:
            some = min(count - 1, max(1, round(holdout * count)))
            held_out[torch.randperm(count, generator=training.rng)[:some]] = True
        losses = torch.full((count,), math.nan)
        training.kept["rho_loss"] = {"held_out": held_out, "model": None, "losses": losses}
    memory: dict[str, Any] = training.kept["rho_loss"]
    return memory


def irreducible(recipe: Recipe, batch: Batch, memory: dict[str, Any], *, reuse: bool) -> Tensor:
    """Return the hold-out model's losses of a batch, (B,); zero where there is no such model.

    reuse: take the losses of examples that were seen before from memory.
    """
    if (model := memory["model"]) is None:
        return torch.zeros(len(batch), device=batch.inputs.device)
    index = batch.index.cpu()
    known: Tensor = memory["losses"]
    unknown = known[index].isnan() if reuse else torch.ones(len(batch), dtype=torch.bool)
    if unknown.any():
        new = batch[unknown.to(batch.inputs.device)]
        with evaluating(model):
            known[index[unknown]] = recipe.loss(model(new.inputs), new).float().cpu()
    return known[index].to(batch.inputs.device)
