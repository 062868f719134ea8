"""Lookahead: let slow weights follow fast ones every few steps."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from effbench import Recipe, Training, technique
from effbench.averages import holding, parameters_of
from effbench.errors import InvalidTechnique


@technique(
    "optimization_centric/averaged_weights",
    paper="Zhang et al., Lookahead Optimizer: k Steps Forward, 1 Step Back, arXiv:1907.08610",
    claim="faster convergence and less variance on CIFAR, ImageNet, Penn Treebank and WMT, whatever the options",
    neutral={"alpha": 1.0},
    conflicts=dict.fromkeys(
        ("ema", "lawa", "schedule_free", "swa"), "each says which average of the weights is evaluated"
    ),
    scope="element",
)
def lookahead(recipe: Recipe, *, alpha: float = 0.5, interval: int = 5) -> Recipe:
    """Take `interval` steps, then go back to a point on the way from where they began to where they led.

    The slow weights move by `alpha` of the way that the fast ones went, and the fast ones go on from there with the
    momentum that they have. The slow weights are evaluated, with the buffers of the fast ones. When the model grows,
    the slow weights start anew.

    When it helps: rates so high that the fast weights oscillate; it is a part of the recipe of airbench's records.
    When it does not: a rate that decays to zero leaves the fast weights no way to go; modded-nanogpt measured 3250 ->
        3210 steps for a cousin of it, not significant.

    alpha: share of the way that the slow weights follow, above 0; 1 turns it off.
    interval: steps of the fast weights from one step of the slow ones to the next.
    """
    if not 0.0 < alpha <= 1.0:
        raise InvalidTechnique(f"lookahead: alpha is {alpha}; it should be a share above 0, up to 1 (off)")
    if interval < 1:
        raise InvalidTechnique(f"lookahead: interval is {interval}; it should be 1 or more steps")
    if alpha == 1.0:
        return recipe

    def update(training: Training) -> None:
        with training.extra():
            slow = slow_weights(training)
        recipe.update(training)
        slow["steps"] += 1
        if slow["steps"] % interval == 0:
            with training.extra(), torch.no_grad():
                for name, fast in parameters_of(training.model).items():
                    fast.copy_(slow["weights"][name].lerp_(fast, alpha))

    def at_the_slow_weights(training: Training) -> nn.Module:
        slow = training.kept.get("lookahead")
        if slow is None or slow["generation"] != training.generation:
            return recipe.eval_model(training)
        return holding(slow["weights"], training, recipe.eval_model)

    return recipe.wrap(update=update, eval_model=at_the_slow_weights)


def slow_weights(training: Training) -> dict[str, Any]:
    """Return what is kept of the slow weights; they begin where the fast ones are."""
    slow: dict[str, Any] | None = training.kept.get("lookahead")
    if slow is None or slow["generation"] != training.generation:
        weights = {name: weight.clone() for name, weight in parameters_of(training.model).items()}
        slow = {"generation": training.generation, "steps": 0, "weights": weights}
        training.kept["lookahead"] = slow
    return slow
