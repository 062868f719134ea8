"""Change a model while it trains: grow, shrink or replace parts; optimizer and placement follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn
from torch.optim import Optimizer

from effbench.recipe import Training

Origin = Mapping[nn.Parameter, nn.Parameter]


def operate(training: Training, edit: Callable[[nn.Module], Origin | None]) -> None:
    """Let `edit` change the model in place, then rebuild what hangs on its parameters.

    edit: changes the model; returns new parameter -> parameter whose optimizer state it inherits (or None). Parameters
        that stay keep their state; new ones without an origin start afresh.

    The optimizer is built anew by the recipe, the model placed anew, and `training.generation` goes up, which tells
    those who keep tensors by parameter (averages, masks) to look again.
    """
    old = training.optimizer
    origin = edit(training.model) or {}
    new = training.recipe.optimizer(training.model)
    rates = {id(p): g["initial_lr"] for g in old.param_groups for p in g["params"]}
    for group in new.param_groups:
        known = [rates[id(p)] for p in group["params"] if id(p) in rates]
        group.setdefault("initial_lr", known[0] if known else group["lr"])
    carry_state(old, new, origin)
    training.optimizer = new
    training.forward = training.recipe.placement(training.model)
    training.generation += 1


def carry_state(old: Optimizer, new: Optimizer, origin: Origin) -> None:
    """Copy the optimizer state of each parameter of `new` from the same parameter in `old`, or from its origin.

    State whose shape no longer fits is left out.
    """
    states = {p: state for member in members(old) for p, state in member.state.items()}
    for member in members(new):
        for group in member.param_groups:
            for parameter in group["params"]:
                source = origin.get(parameter, parameter)
                if source in states and source.shape == parameter.shape:
                    member.state[parameter] = {
                        name: value.clone() if isinstance(value, torch.Tensor) else value
                        for name, value in states[source].items()
                    }


def members(optimizer: Optimizer) -> tuple[Optimizer, ...]:
    """Return the optimizers that `optimizer` consists of; itself where it is a plain one."""
    return tuple(getattr(optimizer, "members", (optimizer,)))
