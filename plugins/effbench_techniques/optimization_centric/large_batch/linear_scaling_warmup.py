"""Linear scaling with warm-up: k times the batch, k times the learning rate, reached gradually."""

from __future__ import annotations

import math

import torch

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique
from effbench.optimizers import rate_for_batch

_RULES = ("auto", "linear", "sqrt")


@technique(
    "optimization_centric/large_batch",
    paper="Goyal et al., Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour, arXiv:1706.02677; for Adam, "
    "Malladi et al., On the SDEs and Scaling Rules for Adaptive Gradient Algorithms, arXiv:2205.10287",
    claim="ImageNet, ResNet-50: 76.3 % in an hour on 256 GPUs, in batches of 8192",
    neutral={"factor": 1},
    after=[  # scale whichever schedule there is
        "batch_size_schedule",
        "budget_linear_decay",
        "cosine_decay",
        "cyclical_lr",
        "one_cycle",
        "rex",
        "schedule_free",
        "step_decay",
        "wsd",
    ],
    conflicts={"lars": "its rates are for large batches already", "lamb": "its rates are for large batches already"},
)
def linear_scaling_warmup(recipe: Recipe, *, factor: int = 4, rule: str = "auto", warmup: float = 0.1) -> Recipe:
    """Make batches larger, and the learning rate with them, which rises to its new height over a warm-up.

    A step of k times the batch stands for k steps, so SGD takes k times the rate; Adam and its kin, whose steps have
    the size of their rate, take its square root. At first the rate is the baseline's, and grows in a line to the
    scaled one: the rule fails where weights change fast, at the beginning.

    When it helps: hardware that a small batch does not fill: several devices, or models so small that a step is mostly
        overhead. Up to a critical batch, equal epochs reach equal loss.
    When it does not: one core that the baseline's batch fills already. There k times the batch is k times the time,
        and the budget buys a k-th of the steps. Beyond the critical batch the rule breaks.

    factor: how many times larger a batch is; 1 turns it off.
    rule: how the rate grows: "linear", "sqrt", or "auto", which is linear for SGD and the root for all else.
    warmup: share of the budget in which the rate grows to the scaled one.
    """
    if factor < 1:
        raise InvalidTechnique(f"linear_scaling_warmup: factor is {factor}; it should be 1 (off) or more")
    if rule not in _RULES:
        raise InvalidTechnique(
            f"linear_scaling_warmup: rule is {rule!r}; it should be one of {', '.join(map(repr, _RULES))}"
        )
    if not 0.0 <= warmup < 1.0:
        raise InvalidTechnique(f"linear_scaling_warmup: warmup is {warmup}; it should be a share from 0, below 1")
    if factor == 1:
        return recipe
    scale = {"linear": float(factor), "sqrt": math.sqrt(factor)}.get(rule) or by_optimizer(recipe, factor)

    def scaled(progress: float) -> float:
        grown = min(1.0, progress / warmup) if warmup else 1.0
        return recipe.lr_schedule(progress) * (1.0 + (scale - 1.0) * grown)

    return recipe.wrap(batch_size=lambda progress: factor * recipe.batch_size(progress), lr_schedule=scaled)


def by_optimizer(recipe: Recipe, factor: int) -> float:
    """Return by how much the rate grows with a batch of `factor` times the size, for the optimizer that there is."""
    with torch.random.fork_rng(devices=[]):
        return rate_for_batch(recipe.optimizer(recipe.model()), factor)
