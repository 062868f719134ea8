"""Cut a model into the stages of a pipeline: who holds what, and what the whole is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from effbench.errors import NotApplicable
from effbench.models.experts import Experts
from effbench.models.network import Network
from effbench.recipe import Recipe

Stages = Sequence[Sequence[str]]  # the names of each stage's modules, in the order in which they are called


def stages_of(model: nn.Module, count: int, technique: str) -> Stages:
    """Cut a model into `count` stages of consecutive blocks; the first has the embedding, the last the head.

    Raises:
        NotApplicable: the model is more, or less, than embedding, blocks and head; there are fewer blocks than stages;
            or there are experts, whose loss of balance is added in the middle.
    """
    if not isinstance(model, Network) or type(model).forward is not Network.forward or is_hooked(model):
        raise NotApplicable(f"{technique} cuts a model between its blocks, and this model has none, or does more")
    parts = {name: each for name, each in model.named_children() if name in {"embed", "blocks", "head"}}
    inside = {id(tensor) for part in parts.values() for tensor in (*part.parameters(), *part.buffers())}
    if outside := [name for name, tensor in model.state_dict(keep_vars=True).items() if id(tensor) not in inside]:
        raise NotApplicable(f"{technique} cuts a model between its blocks, and {outside[0]} lies in none of its parts")
    if any(isinstance(module, Experts) for module in model.modules()):
        raise NotApplicable(f"{technique} knows the loss at the end of the model alone, and experts add one of balance")
    if (blocks := len(model.blocks)) < count:
        raise NotApplicable(f"{technique} cuts the model's blocks into {count} stages, and it has {blocks}")
    edges = [blocks * number // count for number in range(count + 1)]
    stages = [[f"blocks.{n}" for n in range(edges[s], edges[s + 1])] for s in range(count)]
    stages[0].insert(0, "embed")
    stages[-1].append("head")
    return stages


def is_hooked(module: nn.Module) -> bool:
    """Tell whether more happens in a call of a module than its class says, so that replacing it would lose that."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return "forward" in vars(module) or any(getattr(module, each) for each in hooks)


def check_stages(recipe: Recipe, count: int) -> None:
    """Raise NotApplicable where the model of a recipe cannot be cut into `count` stages."""
    with torch.random.fork_rng(devices=[]):
        stages_of(recipe.model(), count, recipe.author)


def shared_parameters(model: nn.Module, stages: Stages) -> list[tuple[nn.Parameter, tuple[int, ...]]]:
    """Return the parameters that several stages use, such as those of a token embedding, and the stages, in order."""
    users: dict[nn.Parameter, list[int]] = {}
    for number, names in enumerate(stages):
        for parameter in {p: None for name in names for p in model.get_submodule(name).parameters()}:
            users.setdefault(parameter, []).append(number)
    return [(parameter, tuple(numbers)) for parameter, numbers in users.items() if len(numbers) > 1]


def keep(model: nn.Module, stages: Stages, own: Sequence[int]) -> list[nn.Sequential]:
    """Leave in a model the stages whose numbers are in `own`, and return them, ready to be called."""
    for number, names in enumerate(stages):
        if number not in own:
            for name in names:
                model.set_submodule(name, Elsewhere(name))
    return [nn.Sequential(*(model.get_submodule(name) for name in stages[number])) for number in own]


class Elsewhere(nn.Module):
    """Stands in a model for a part that another process has."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, *features: Any) -> Any:  # noqa: ARG002 - whatever it is given
        """Raise NotApplicable."""
        raise NotApplicable(f"this process has no {self.name} to call; of a pipeline, call `training.forward`")

    def extra_repr(self) -> str:
        """Show what it stands for."""
        return self.name
