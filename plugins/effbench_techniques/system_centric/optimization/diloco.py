"""DiLoCo: let processes train by themselves for long, and follow the mean of their ways with momentum."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn

from effbench import Recipe, Training, technique
from effbench.averages import parameters_of
from effbench.distributed.averaging import average
from effbench.distributed.data_parallel import check_processes, share_batches
from effbench.errors import InvalidTechnique


@technique(
    "system_centric/optimization",
    paper="Douillard et al., DiLoCo: Distributed Low-Communication Training of Language Models, arXiv:2311.08105",
    claim="C4, 8 workers: a perplexity no worse than that of full synchronisation, with 500 times less communication",
    neutral={"processes": 1, "outer_lr": 1.0, "momentum": 0.0},
    conflicts=dict.fromkeys(
        ("ema", "lawa", "lookahead", "schedule_free", "swa"), "each says which average of the weights is evaluated"
    )
    | dict.fromkeys(("gradual_magnitude_pruning", "rigl"), "replicas keep other weights, and their mean keeps all"),
    title="DiLoCo",
    unequal="each process takes many steps by itself before the common weights follow",
)
def diloco(
    recipe: Recipe, *, processes: int = 2, interval: int = 50, outer_lr: float = 0.7, momentum: float = 0.9
) -> Recipe:
    """Let each process take `interval` steps from common weights, then step these along the mean of their ways.

    The inner optimizer is the recipe's, and keeps its state in each process. The way that a process went, from the
    common weights w to its own, negated, is its outer gradient; the mean of them over the processes, g, is given to SGD
    with Nesterov's momentum: v = momentum * v + g, w = w - outer_lr * (g + momentum * v). All go on from there. What
    would be the common weights if the round ended now is evaluated, with the buffers of rank 0. When the model grows,
    the common weights start anew, from the mean of the replicas. A process sends 2 (n - 1) / n bytes every `interval`
    steps for each byte of the parameters.

    When it helps: processes that are far from each other, and budgets of many rounds.
    When it does not: budgets of a few rounds, which the outer momentum is too slow for.

    processes: number of processes; 1 trains one that looks ahead by itself.
    interval: inner steps from one outer step to the next; the paper's 500 are for much longer runs.
    outer_lr: rate of the outer steps.
    momentum: momentum of the outer steps.
    """
    check_processes("diloco", processes)
    if interval < 1:
        raise InvalidTechnique(f"diloco: interval is {interval}; it should be 1 or more steps")
    if not 0.0 < outer_lr < math.inf or not 0.0 <= momentum < 1.0:
        raise InvalidTechnique(
            f"diloco: outer_lr is {outer_lr} and momentum {momentum}; they should be above 0, and from 0, below 1"
        )
    if processes == 1 and outer_lr == 1.0 and momentum == 0.0:
        return recipe

    def update(training: Training) -> None:
        with training.extra():
            common = common_weights(training)
        recipe.update(training)
        if (training.step + 1) % interval == 0:
            with training.extra():
                common["weights"], common["speed"] = outer_step(training, common, outer_lr, momentum)
                hold(training.model, common["weights"])

    def at_the_common_weights(training: Training) -> nn.Module:
        model, common = recipe.eval_model(training), training.kept.get("diloco")
        if common is None or common["generation"] != training.generation:
            return model
        weights: list[Tensor] = common["weights"]
        if training.step % interval:
            weights, _ = outer_step(training, common, outer_lr, momentum)
        moved = copy.deepcopy(model)
        hold(moved, weights)
        return moved

    shared = share_batches(recipe, processes, alike=False) if processes > 1 else recipe
    return shared.wrap(update=update, eval_model=at_the_common_weights)


def common_weights(training: Training) -> dict[str, Any]:
    """Return what is kept of the common weights; they begin where the replicas are."""
    common: dict[str, Any] | None = training.kept.get("diloco")
    if common is None or common["generation"] != training.generation:
        weights = [weight.clone() for weight in parameters_of(training.model).values()]
        if common is not None and training.group.size > 1:  # only at first are the replicas alike
            average(weights, training.group)
            hold(training.model, weights)
        common = {"generation": training.generation, "weights": weights, "speed": list(map(torch.zeros_like, weights))}
        training.kept["diloco"] = common
    return common


@torch.no_grad()
def outer_step(
    training: Training, common: dict[str, Any], outer_lr: float, momentum: float
) -> tuple[list[Tensor], list[Tensor]]:
    """Return the common weights and their speed after a step; what is kept stays as it is."""
    weights: list[Tensor] = common["weights"]
    slopes = [w - own for w, own in zip(weights, parameters_of(training.model).values(), strict=True)]
    if training.group.size > 1:
        average(slopes, training.group)
    speed = [momentum * v + g for v, g in zip(common["speed"], slopes, strict=True)]
    moved = [w - outer_lr * (g + momentum * v) for w, g, v in zip(weights, slopes, speed, strict=True)]
    return moved, speed


@torch.no_grad()
def hold(model: nn.Module, weights: list[Tensor]) -> None:
    """Write weights into a model."""
    for parameter, weight in zip(model.parameters(), weights, strict=True):
        parameter.copy_(weight)
