"""SWA: keep the rate up at the end of training, and evaluate the mean of the weights there."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from effbench import Recipe, Training, technique
from effbench.averages import holding, parameters_of, renew_statistics
from effbench.errors import InvalidTechnique


@technique(
    "optimization_centric/averaged_weights",
    paper="Izmailov et al., Averaging Weights Leads to Wider Optima and Better Generalization, arXiv:1803.05407",
    claim="CIFAR-100, WideResNet-28-10: 80.8 % -> 82.2 %",
    neutral={"start": 1.0},
    after=["wsd", "rex", "budget_linear_decay"],  # keep up the rate of whichever schedule there is
    conflicts=dict.fromkeys(("ema", "lawa", "schedule_free"), "each says which average of the weights is evaluated"),
    title="Stochastic weight averaging",
    scope="element",
)
def swa(recipe: Recipe, *, start: float = 0.75, floor: float = 0.2) -> Recipe:
    """Do not let the rate decay at the end, so that the weights wander around an optimum, and evaluate their mean.

    From `start` on, the rate does not fall below `floor` times its peak, and the weights after every step count alike;
    the paper, whose runs are long, takes them once an epoch. BatchNorm's statistics are those of no single model, so
    the copy that is evaluated takes them anew, over 20 batches. When the model grows, the mean starts anew.

    When it helps: a rate that stays constant, for which the mean does what a decay would do.
    When it does not: against a rate that decays to zero inside the budget there is little left to average; it "did not
        help" in the experiments of nanochat.

    start: share of the budget after which averaging begins; 1 turns it off.
    floor: share of the peak below which the rate does not fall from then on; 0 leaves the schedule as it is.
    """
    if not 0.0 <= start <= 1.0:
        raise InvalidTechnique(f"swa: start is {start}; it should be a share of the budget, from 0 to 1 (off)")
    if not 0.0 <= floor <= 1.0:
        raise InvalidTechnique(f"swa: floor is {floor}; it should be a share of the peak rate, from 0 to 1")
    if start == 1.0:
        return recipe

    def kept_up(progress: float) -> float:
        factor = recipe.lr_schedule(progress)
        return max(factor, floor) if progress > start else factor

    def update(training: Training) -> None:
        recipe.update(training)
        if training.progress >= start:
            with training.extra(), torch.no_grad():
                remember(training)

    def averaged(training: Training) -> nn.Module:
        mean = training.kept.get("swa")
        if mean is None or mean["generation"] != training.generation:
            return recipe.eval_model(training)
        model = holding(mean["weights"], training, recipe.eval_model)
        renew_statistics(model, recipe, training)
        return model

    return recipe.wrap(lr_schedule=kept_up, update=update, eval_model=averaged)


def remember(training: Training) -> None:
    """Let the present weights count in the mean, as much as each before them."""
    present = parameters_of(training.model)
    mean: dict[str, Any] | None = training.kept.get("swa")
    if mean is None or mean["generation"] != training.generation:
        weights = {name: weight.clone() for name, weight in present.items()}
        training.kept["swa"] = {"generation": training.generation, "count": 1, "weights": weights}
        return
    mean["count"] += 1
    for name, weight in present.items():
        mean["weights"][name].lerp_(weight, 1.0 / mean["count"])
