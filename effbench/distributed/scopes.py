"""How far a step of a weight may look, where each process has a part of a model."""

from __future__ import annotations

from typing import get_args

import torch
from torch import optim
from torch.optim import Optimizer

from effbench.errors import Conflict
from effbench.recipe import Recipe, Scope
from effbench.surgery import members

#: Optimizers whose step of a weight depends on that weight and its gradient alone.
ELEMENTWISE: frozenset[type[Optimizer]] = frozenset(
    {optim.SGD, optim.Adam, optim.AdamW, optim.Adamax, optim.NAdam, optim.RAdam, optim.Adagrad, optim.RMSprop}
)
_BY_TENSOR: frozenset[type[Optimizer]] = frozenset({optim.Adafactor, optim.Muon})
_WIDER: tuple[Scope, ...] = get_args(Scope)


def refuse_beyond(recipe: Recipe, scope: Scope, why: str) -> None:
    """Raise Conflict where a weight is stepped by more than a process has of the model, for a reason with `{others}`.

    Techniques that changed the optimizer or the update have stated what they look at; the baseline's optimizer, where
    none has changed it, is known by its kind.
    """
    changed = {author for _, term, author in recipe.history if term in {"optimizer", "update"} and author}
    scopes = {f"the update of {author}": recipe.scopes.get(author, "model") for author in sorted(changed)}
    if not any(term == "optimizer" for _, term, _ in recipe.history):
        scopes |= {f"the baseline's {kind.__name__}": scope_of(kind) for kind in kinds_of(recipe)}
    wide = [f"{who} (scope {found!r})" for who, found in scopes.items() if _WIDER.index(found) > _WIDER.index(scope)]
    if wide:
        raise Conflict(why.format(others=" and ".join(wide)))


def kinds_of(recipe: Recipe) -> list[type[Optimizer]]:
    """Return the kinds of optimizers that step the recipe's model, by name."""
    with torch.random.fork_rng(devices=[]):
        kinds = {type(member) for member in members(recipe.optimizer(recipe.model()))}
    return sorted(kinds, key=lambda kind: kind.__name__)


def scope_of(kind: type[Optimizer]) -> Scope:
    """Return what a kind of optimizer looks at when it steps a weight: "model" where that is not known."""
    if kind in ELEMENTWISE:
        return "element"
    return "tensor" if kind in _BY_TENSOR else "model"
