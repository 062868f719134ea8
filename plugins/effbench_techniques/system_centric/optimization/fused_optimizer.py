"""Fused optimizer: one kernel for the whole update instead of one for each of its operations."""

from __future__ import annotations

import torch
from torch import nn
from torch.optim import Optimizer

from effbench import Recipe, technique
from effbench.errors import NotApplicable
from effbench.surgery import members


@technique(
    "system_centric/optimization",
    paper="no paper: NVIDIA Apex 2018, torch.optim since 2022",
    claim="fewer kernel launches and passes over memory in the update",
    scope="element",
)
def fused_optimizer(recipe: Recipe) -> Recipe:
    """Update all weights by one fused kernel, which reads and writes each tensor once.

    The optimizer is the baseline's with `fused=True`; the arithmetic is the same but for the order of rounding. Of
    several optimizers that step as one, those are fused that can be: Adam, AdamW, SGD and Adagrad.

    When it helps: models with many small tensors, whose update is a large part of the step.
    When it does not: where forward and backward dwarf the update; optimizers without a fused kernel.
    """
    with torch.random.fork_rng(devices=[]):
        optimizer = recipe.optimizer(recipe.model())
    if not fusible(optimizer):
        kinds = " and ".join(sorted({getattr(member, "rule", type(member)).__name__ for member in members(optimizer)}))
        raise NotApplicable(f"fused_optimizer: {kinds} has no fused kernel")

    def build(model: nn.Module) -> Optimizer:
        made = recipe.optimizer(model)
        for group in fusible(made):
            group["fused"], group["foreach"] = True, False
        return made

    return recipe.wrap(optimizer=build)


def fusible(optimizer: Optimizer) -> list[dict[str, object]]:
    """Return the parameter groups whose update torch can fuse."""
    return [group for group in optimizer.param_groups if "fused" in group]
