"""EMA: evaluate an exponential moving average of the weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from effbench import Recipe, Training, technique
from effbench.averages import holding, tensors_of
from effbench.errors import InvalidTechnique


@technique(
    "optimization_centric/averaged_weights",
    paper="Tarvainen and Valpola, Mean Teachers Are Better Role Models, arXiv:1703.01780; "
    "after Polyak and Juditsky, Acceleration of Stochastic Approximation by Averaging, 1992",
    claim="smoother and better evaluation than the last weights",
    neutral={"half_life": 0.0},
    conflicts={"schedule_free": "each says which average of the weights is evaluated"},
    title="EMA",
    scope="element",
)
def ema(recipe: Recipe, *, half_life: float = 0.02) -> Recipe:
    """Evaluate a moving average of the weights instead of the last ones; training goes on as if it were not there.

    After every step, `average = decay * average + (1 - decay) * weights`. The decay follows from the share of the
    budget that the step took, `decay = 0.5 ** (share / half_life)`, so that one half-life suits every budget.
    BatchNorm's running statistics are averaged along with the weights that they belong to; counters are copied. When
    the model grows, the average starts anew.

    When it helps: convolutional networks (MosaicML Composer's method card), and rates that do not decay to zero. The
        average of the tail takes a record of modded-nanogpt from 2750 to 2720 steps.
    When it does not: a rate that has decayed to zero averages by itself; it "did not help" in the experiments of
        nanochat, and an EMA of checkpoints scored 0.34 in AlgoPerf where the baseline had 0.57 (arXiv:2502.15015).

    half_life: share of the budget in which weights of the past lose half of their influence; 0 evaluates the last ones.
    """
    if not 0.0 <= half_life <= 1.0:
        raise InvalidTechnique(f"ema: half_life is {half_life}; it should be a share of the budget, from 0 (off) to 1")
    if half_life == 0.0:
        return recipe

    def update(training: Training) -> None:
        recipe.update(training)
        with training.extra(), torch.no_grad():
            remember(training, half_life)

    def averaged(training: Training) -> nn.Module:
        average = training.kept.get("ema")
        if average is None or average["generation"] != training.generation:
            return recipe.eval_model(training)
        return holding(average["tensors"], training, recipe.eval_model)

    return recipe.wrap(update=update, eval_model=averaged)


def remember(training: Training, half_life: float) -> None:
    """Move the average towards the present weights; keep it, with its progress and the generation of the model."""
    present = tensors_of(training.model)
    average: dict[str, Any] | None = training.kept.get("ema")
    if average is None or average["generation"] != training.generation:
        tensors = {name: tensor.clone() for name, tensor in present.items()}
        training.kept["ema"] = {
            "tensors": tensors,
            "progress": training.progress,
            "generation": training.generation,
        }
        return
    decay = 0.5 ** ((training.progress - average["progress"]) / half_life)
    average["progress"] = training.progress
    for name, tensor in present.items():
        if tensor.is_floating_point():
            average["tensors"][name].lerp_(tensor, 1.0 - decay)
        else:
            average["tensors"][name].copy_(tensor)
