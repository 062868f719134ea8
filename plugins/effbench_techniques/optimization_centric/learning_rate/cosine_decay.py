"""Cosine decay: let the learning rate fall along half a cosine, once or several times."""

from __future__ import annotations

import math

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique
from effbench.schedules import warmed_up

_ROUNDING = 1e-9  # a progress is a quotient; one that ends a cycle must not begin the next


@technique(
    "optimization_centric/learning_rate",
    paper="Loshchilov and Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts, arXiv:1608.03983",
    claim="CIFAR-10 3.14 % and CIFAR-100 16.21 % error, with ensembles of the models at the end of each cycle",
)
def cosine_decay(recipe: Recipe, *, warmup: float = 0.05, floor: float = 0.0, cycles: int = 1) -> Recipe:
    """Let the learning rate fall along half a cosine, from its peak at the end of the warm-up to `floor` at the end.

    The factor is `floor + (1 - floor) * (1 + cos(pi * t)) / 2`, where t runs from 0 to 1 over what the warm-up leaves
    of the budget; with several cycles, over each of as many equal parts of it. The last step of each cycle is at
    `floor`.

    When it helps: any budget that ends when the schedule ends; it and linear decay beat step decay at small budgets
        (Li et al., Budgeted Training, arXiv:1905.04753).
    When it does not: about equal to a linear decay, which the baselines have (the same source). Restarts throw away a
        part of what was won, and only the last cycle counts under a fixed budget.

    warmup: share of the budget in which the rate rises; 0 turns the warm-up off.
    floor: share of the peak rate that is left at the end of a cycle; 0 decays fully.
    cycles: how often the rate falls, each time from the peak; 1 is without restarts.
    """
    if not 0.0 <= warmup < 1.0:
        raise InvalidTechnique(f"cosine_decay: warmup is {warmup}; it should be a share from 0 (none), below 1")
    if not 0.0 <= floor < 1.0:
        raise InvalidTechnique(f"cosine_decay: floor is {floor}; it should be a share from 0 (full decay), below 1")
    if cycles < 1:
        raise InvalidTechnique(f"cosine_decay: cycles is {cycles}; it should be 1 (no restart) or more")

    def fall(progress: float) -> float:
        done = cycles * (progress - warmup) / (1.0 - warmup)
        begun = max(0, math.ceil(done - _ROUNDING) - 1)  # cycles before this one
        return floor + (1.0 - floor) * (1.0 + math.cos(math.pi * min(1.0, done - begun))) / 2.0

    return recipe.swap(lr_schedule=warmed_up(warmup, fall))
