"""Change a model while it trains: grow, shrink or replace parts; optimizer and placement follow."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping

from torch import nn
from torch.optim import Optimizer

from effbench.recipe import Training

Origin = Mapping[nn.Parameter, nn.Parameter]


def operate(training: Training, edit: Callable[[nn.Module], Origin | None]) -> None:
    """Let `edit` change the model in place, then rebuild what hangs on its parameters.

    edit: changes the model; returns new parameter -> parameter whose optimizer state it inherits (or None). Parameters
        that stay keep their state; new ones without an origin start afresh, and so do those that changed their shape.

    The model is placed anew, the optimizer built anew by the recipe at the rates of the moment, and
    `training.generation` goes up, which tells those who keep tensors by parameter (averages, masks) to look again.
    """
    old = training.optimizer
    shapes = {p: p.shape for group in old.param_groups for p in group["params"]}
    origin = edit(training.model) or {}
    for parameter, shape in shapes.items():
        if parameter.shape != shape:
            for member in members(old):
                member.state.pop(parameter, None)
    training.forward = training.recipe.placement(training.model)  # first: it may move parameters, or replace them
    training.optimizer = training.recipe.optimizer(training.model)
    carry_rates(old, training.optimizer)
    carry_state(old, training.optimizer, origin)
    training.generation += 1


def carry_rates(old: Optimizer, new: Optimizer) -> None:
    """Give each group of `new` the rates, peak and present, of the parameters that it shares with `old`.

    A group of new parameters alone has the peak that it was built with, and stands where the schedule stands.
    """
    rates = {p: (group["initial_lr"], group["lr"]) for group in old.param_groups for p in group["params"]}
    factor = max((now / peak for peak, now in rates.values() if peak), default=1.0)
    for group in new.param_groups:
        built = (group["lr"], group["lr"] * factor)
        peak, group["lr"] = next((rates[p] for p in group["params"] if p in rates), built)
        group.setdefault("initial_lr", peak)


def carry_state(old: Optimizer, new: Optimizer, origin: Origin) -> None:
    """Copy the optimizer state of each parameter of `new` from the same parameter in `old`, or from its origin.

    State of an origin that has another shape is left out.
    """
    states = {p: state for member in members(old) for p, state in member.state.items()}
    for member in members(new):
        for group in member.param_groups:
            for parameter in group["params"]:
                source = origin.get(parameter, parameter)
                if source in states and source.shape == parameter.shape:
                    member.state[parameter] = copy.deepcopy(states[source])


def members(optimizer: Optimizer) -> tuple[Optimizer, ...]:
    """Return the optimizers that `optimizer` consists of; itself where it is a plain one."""
    return tuple(getattr(optimizer, "members", (optimizer,)))
