"""Replace parts of a model that are found by their kind: what techniques of architecture have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import nn

from effbench.errors import NotApplicable
from effbench.recipe import Recipe

M = TypeVar("M", bound=nn.Module)


def replacing(recipe: Recipe, kind: type[M], make: Callable[[M], nn.Module], otherwise: str) -> Recipe:
    """Return a recipe whose model has `make(module)` in the place of every module of this very kind.

    make: gets a module of the baseline's, initialised, and may use it or parts of it.

    Raises:
        NotApplicable: there is no such module; `otherwise` is what is said then.
    """
    with torch.random.fork_rng(devices=[]):
        if not any(type(module) is kind for module in recipe.model().modules()):
            raise NotApplicable(otherwise)

    def model() -> nn.Module:
        made = recipe.model()
        replace(made, kind, make)
        return made

    return recipe.wrap(model=model)


def replace(model: nn.Module, kind: type[M], make: Callable[[M], nn.Module]) -> None:
    """Put `make(module)` into the place of every module of this very kind; one that is used twice stays one."""
    made: dict[nn.Module, nn.Module] = {}
    for name, module in list(model.named_modules(remove_duplicate=False)):
        if type(module) is kind:
            if module not in made:
                made[module] = make(module)
            model.set_submodule(name, made[module])
