"""Techniques of any name and card, made for tests of what becomes of them."""

from __future__ import annotations

from effbench.recipe import Recipe
from effbench.techniques import Technique, technique

CARD = {"paper": "Nobody, Nothing, arXiv:0000.00000", "claim": "none"}


def make(name: str, leaf: str = "data_centric/sampling", body=None, **card: object) -> Technique:
    def function(recipe: Recipe, *, by: float = 1.0, count: int = 2, on: bool = False) -> Recipe:
        return body(recipe) if body else recipe.wrap(loss=lambda outputs, batch: recipe.loss(outputs, batch))

    function.__name__ = name
    return technique(leaf, **CARD, **card)(function)


def known(*techniques: Technique) -> dict[str, Technique]:
    return {each.name: each for each in techniques}
