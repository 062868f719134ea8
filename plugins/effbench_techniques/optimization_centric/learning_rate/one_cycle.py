"""One cycle: one triangle of the learning rate with a high peak, and the inverse of it for the momentum."""

from __future__ import annotations

import math

from effbench import Recipe, Training, technique
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.recipe import Schedule


@technique(
    "optimization_centric/learning_rate",
    paper="Smith and Topin, Super-Convergence: Very Fast Training of Neural Networks Using Large Learning Rates, "
    "arXiv:1708.07120; Smith, A Disciplined Approach to Neural Network Hyper-Parameters, arXiv:1803.09820",
    claim="CIFAR-10, ResNet-56: 92.4 % after 10,000 steps, where 80,000 steps of step decay give 91.2 %",
    scope="element",
)
def one_cycle(
    recipe: Recipe,
    *,
    peak: float = 2.0,
    rise: float = 0.3,
    start: float = 0.04,
    end: float = 4e-6,
    momentum_low: float = 0.85,
    momentum_high: float = 0.95,
) -> Recipe:
    """Let the learning rate rise linearly to a high peak, then fall linearly to almost nothing, and momentum mirror it.

    The rate goes from `start` times its peak to the peak over the share `rise` of the budget, then down to `end` times
    the peak at the end. Momentum, or Adam's beta1, goes the other way: `high - (high - low) * rate / peak`. The high
    rate in the middle regularises, and low momentum keeps it stable.

    When it helps: small budgets, from which the long warm-up lets a rate profit that would diverge at once; Cramming
        trains BERT with a triangle that ends with the budget (arXiv:2212.14034).
    When it does not: a baseline whose peak is tuned and that decays linearly has most of it already; a peak that is
        too high never recovers.

    peak: highest learning rate, as a multiple of the baseline's; 1 keeps the baseline's.
    rise: share of the budget in which the rate rises, above 0, below 1.
    start: rate of the first step, as a share of the peak.
    end: rate of the last step, as a share of the peak; 0 decays fully.
    momentum_low: momentum at the peak of the rate, from 0, below 1.
    momentum_high: momentum where the rate is 0; equal to `momentum_low`, it turns the cycle of the momentum off.
    """
    if not 0.0 < peak < math.inf:
        raise InvalidTechnique(f"one_cycle: peak is {peak}; it should be a positive, finite multiple")
    if not 0.0 < rise < 1.0:
        raise InvalidTechnique(f"one_cycle: rise is {rise}; it should be a share between 0 and 1")
    for name, share in (("start", start), ("end", end)):
        if not 0.0 <= share <= 1.0:
            raise InvalidTechnique(f"one_cycle: {name} is {share}; it should be a share of the peak, from 0 to 1")
    if not 0.0 <= momentum_low <= momentum_high < 1.0:
        raise InvalidTechnique(
            f"one_cycle: momentum_low is {momentum_low} and momentum_high {momentum_high}; "
            "it should be 0 <= low <= high < 1"
        )

    def update(training: Training) -> None:
        mirror(training, peak, momentum_low, momentum_high)
        recipe.update(training)

    return recipe.swap(lr_schedule=triangle(peak, rise, start, end)).wrap(update=update)


def triangle(peak: float, rise: float, start: float, end: float) -> Schedule:
    """Rise linearly from `start * peak` at progress 0 to `peak` at `rise`, then fall linearly to `end * peak` at 1."""

    def factor(progress: float) -> float:
        if progress < rise:
            return peak * (start + (1.0 - start) * progress / rise)
        return peak * (end + (1.0 - end) * (1.0 - progress) / (1.0 - rise))

    return factor


def mirror(training: Training, peak: float, low: float, high: float) -> None:
    """Set the momentum of every parameter group by its present rate.

    Raises:
        NotApplicable: the optimizer has no momentum.
    """
    for group in training.optimizer.param_groups:
        momentum = high - (high - low) * min(1.0, group["lr"] / (group["initial_lr"] * peak))
        if "betas" in group:
            group["betas"] = (momentum, *group["betas"][1:])
        elif "momentum" in group:
            group["momentum"] = momentum
        else:
            raise NotApplicable(f"one_cycle cycles the momentum, and {type(training.optimizer).__name__} has none")
