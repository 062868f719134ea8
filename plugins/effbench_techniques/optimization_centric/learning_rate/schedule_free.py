"""Schedule-free learning: average the weights instead of letting the learning rate fall."""

from __future__ import annotations

import copy
import math
from typing import Any, Literal

from schedulefree import AdamWScheduleFree
from torch import nn
from torch.optim import Optimizer

from effbench import Recipe, Training, technique
from effbench.averages import renew_statistics
from effbench.errors import InvalidTechnique
from effbench.optimizers import groups_at
from effbench.schedules import constant, warmed_up

_COUNTS = ("k", "weight_sum", "lr_max")  # what schedulefree keeps by group: steps, sum of the averaging weights, peak


@technique(
    "optimization_centric/learning_rate",
    paper="Defazio et al., The Road Less Scheduled, arXiv:2405.15682",
    claim="first in the self-tuning track of AlgoPerf 2024, about 8 to 10 % faster than the baseline",
    conflicts={"ema": "each says which average of the weights is evaluated"},
    title="Schedule-free AdamW",
    scope="element",
)
def schedule_free(recipe: Recipe, *, lr: float = 1e-2, momentum: float = 0.9, warmup: float = 0.05) -> Recipe:
    """Keep the rate constant after a warm-up, and evaluate a running average of the weights.

    AdamW steps a sequence z; x is the average of all z, weighted by the square of the rate; gradients are taken between
    them, at `y = momentum * x + (1 - momentum) * z`. Training holds y, an evaluation gets a copy of the model that
    holds x, and training goes on bit by bit as if nobody had looked. BatchNorm's statistics are those of y, so the copy
    takes them anew, over 20 batches. The parameter groups are the baseline's, and so is what weight decay takes from a
    weight in a step, rate times decay. The mathematics is that of the package schedulefree.

    When it helps: when the end is not known beforehand: x is good at any time. AlgoPerf, self-tuning: 0.8542 against
        the baseline's 0.8194 (arXiv:2502.15015). The rate should be 1 to 10 times that of a scheduled AdamW.
    When it does not: a budget is an end that is known, and a rate that decays to zero inside it is a strong rival.

    lr: peak learning rate.
    momentum: share of x in the point where gradients are taken, above 0 (no average in it), below 1.
    warmup: share of the budget in which the rate rises; 0 is none.
    """
    if not 0.0 < lr < math.inf:
        raise InvalidTechnique(f"schedule_free: lr is {lr}; it should be a positive, finite rate")
    if not 0.0 < momentum < 1.0:
        raise InvalidTechnique(f"schedule_free: momentum is {momentum}; it should be a share between 0 and 1")
    if not 0.0 <= warmup < 1.0:
        raise InvalidTechnique(f"schedule_free: warmup is {warmup}; it should be a share from 0 (none), below 1")

    def build(model: nn.Module) -> Optimizer:
        groups = groups_at(recipe.optimizer(model), lr)
        optimizer: Optimizer = AdamWScheduleFree(groups, lr=lr, betas=(momentum, 0.999))
        switch(optimizer, "train")
        return optimizer

    def update(training: Training) -> None:
        carry_counts(training)
        recipe.update(training)
        counts = {name: training.optimizer.param_groups[0][name] for name in _COUNTS}
        training.kept["schedule_free"] = {"generation": training.generation, "counts": counts}

    def averaged(training: Training) -> nn.Module:
        weights = [weight.detach() for weight in training.model.parameters()]
        own = [weight.clone() for weight in weights]
        switch(training.optimizer, "eval")
        model = copy.deepcopy(recipe.eval_model(training))
        switch(training.optimizer, "train")
        for weight, value in zip(weights, own, strict=True):
            weight.copy_(value)  # there and back by arithmetic is not bit by bit
        renew_statistics(model, recipe, training)
        return model

    swapped = recipe.swap(optimizer=build, lr_schedule=warmed_up(warmup, constant))
    return swapped.wrap(update=update, eval_model=averaged)


def switch(optimizer: Optimizer, mode: Literal["train", "eval"]) -> None:
    """Let the weights hold y ("train") or x ("eval")."""
    getattr(optimizer, mode)()


def carry_counts(training: Training) -> None:
    """Let a new optimizer, built because the model got other parameters, go on with the average of the old one."""
    kept: dict[str, Any] | None = training.kept.get("schedule_free")
    if kept is None or kept["generation"] == training.generation:
        return
    for group in training.optimizer.param_groups:
        group.update(kept["counts"])
        for weight in group["params"]:
            state = training.optimizer.state[weight]
            if "z" not in state and weight.grad is not None:
                # As if all gradients before had been like the first one, as in Adam's first step; a second moment of
                # zero, corrected for as many steps as the others took, would make that step far too long.
                state["z"] = weight.detach().clone()
                state["exp_avg_sq"] = weight.grad.square() * (1.0 - group["betas"][1] ** group["k"])
