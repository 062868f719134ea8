"""InfoBatch: leave out some of the easy examples in every epoch, and let the others of them count more."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from effbench import Batch, Recipe, Training, technique
from effbench.errors import InvalidTechnique
from effbench.recipe import Loader

_PIECE = 32  # examples that are decided on together, shortly before they are trained on


@technique(
    "data_centric/sampling",
    paper="Qin et al., InfoBatch: Lossless Training Speed Up by Unbiased Dynamic Data Pruning, arXiv:2303.04947",
    claim="CIFAR-10, CIFAR-100 and ImageNet-1K: about 40 % of the cost saved without loss",
    neutral={"ratio": 0.0},
    title="InfoBatch",
)
def infobatch(recipe: Recipe, *, ratio: float = 0.5, full: float = 0.875) -> Recipe:
    """Leave out a random share of the examples whose last loss was below the mean, and weigh the others of them up.

    In every epoch, an example with a loss below the mean of all is left out with the probability `ratio`; if it stays,
    it counts 1 / (1 - ratio), so that the expected gradient is that of the whole data set. What has not been seen
    stays, and so does everything at the end of the budget. Losses are those of the training steps: looking is free.

    When it helps: many epochs over data of which much is easy. `uniform_subset` is its control.
    When it does not: budgets of less than two epochs: what is seen once cannot be left out the second time.

    ratio: probability of leaving out an easy example; 0 turns it off.
    full: share of the budget after which all examples are trained on.
    """
    if not 0.0 <= ratio < 1.0:
        raise InvalidTechnique(f"infobatch: ratio is {ratio}; it should be a probability from 0 (off), below 1")
    if not 0.0 <= full <= 1.0:
        raise InvalidTechnique(f"infobatch: full is {full}; it should be a share of the budget")
    if ratio == 0.0:
        return recipe

    def sampler(training: Training) -> Iterator[Tensor]:
        for epoch in recipe.sampler(training):
            memory = remembered(training)
            share_losses(training, memory)
            losses = memory["losses"]
            mean = losses.nanmean() if not losses.isnan().all() else torch.tensor(-math.inf)
            for piece in torch.split(epoch, _PIECE):
                draws = torch.rand(len(piece), generator=training.rng)
                easy = (losses[piece] < mean) & (training.progress < full)  # what is not known is not easy
                memory["factors"][piece] = torch.where(easy, 1.0 / (1.0 - ratio), 1.0)
                if len(kept := piece[~easy | (draws >= ratio)]):
                    yield kept

    def gradient(training: Training, batch: Batch) -> Tensor:
        found = recipe.gradient(training, batch)
        remembered(training)["new"][batch.index.cpu()] = found.float().cpu()
        return found

    return recipe.wrap(sampler=sampler, loader=weighing(recipe.loader), gradient=gradient)


def weighing(loader: Loader) -> Loader:
    """Return a loader that lets every example count as much as was decided when it was drawn."""

    def load(positions: Tensor, training: Training) -> Batch:
        batch = loader(positions, training)
        factors: Tensor = remembered(training)["factors"][positions.cpu()]
        if bool((factors == 1.0).all()):
            return batch
        return batch.replace(weight=batch.weight * factors.to(batch.inputs.device))

    return load


def remembered(training: Training) -> dict[str, Tensor]:
    """Return what is remembered of the N examples, each (N,): losses that all ranks know, new ones, and factors.

    Losses that are not known are NaN.
    """
    if "infobatch" not in training.kept:
        unknown = torch.full((len(training.recipe.dataset),), math.nan)
        factors = torch.ones(len(unknown))
        training.kept["infobatch"] = {"losses": unknown, "new": unknown.clone(), "factors": factors}
    memory: dict[str, Tensor] = training.kept["infobatch"]
    return memory


def share_losses(training: Training, memory: dict[str, Tensor]) -> None:
    """Let all ranks know the losses that each of them has seen; the mean, where several have seen an example."""
    new = memory["new"]
    seen = training.group.sum((~new.isnan()).float())
    total = training.group.sum(new.nan_to_num())
    memory["losses"] = torch.where(seen > 0, total / seen, memory["losses"])
    memory["new"] = torch.full_like(new, math.nan)
