"""The laws of techniques in company: pairs that break are found, and orders that matter."""

from __future__ import annotations

import dataclasses

import torch

from effbench import laws
from effbench.errors import Conflict
from effbench.recipe import Recipe, Training
from effbench.techniques import Technique, technique
from effbench.toys import TOYS
from planted import CARD, LEAF, choosy, keeping, scaled, swapping


def faults_of(one: Technique, other: Technique) -> dict[str, str]:
    findings = laws.check_pair(one, other, "vectors", TOYS["vectors"]())
    return {found.law: str(found) for found in findings if not found.ok}


@technique(LEAF, **CARD)
def jealous(recipe: Recipe) -> Recipe:
    """Break where another technique was there before."""
    if recipe.history:
        raise ValueError("I was to be alone")
    return recipe


@technique(LEAF, **CARD)
def vague(recipe: Recipe) -> Recipe:
    """Refuse company without a name."""
    if recipe.history:
        raise Conflict("this does not go together")
    return recipe


@technique(LEAF, **CARD)
def exploding(recipe: Recipe) -> Recipe:
    """Make weights infinite where another technique has wrapped the loss."""

    def update(training: Training) -> None:
        recipe.update(training)
        if any(term == "loss" for _, term, _ in recipe.history):
            with torch.no_grad():
                next(training.model.parameters()).fill_(float("inf"))

    return recipe.wrap(update=update)


@technique(LEAF, **CARD)
def zealous(recipe: Recipe) -> Recipe:
    """Break in training where another technique has wrapped the loss."""

    def update(training: Training) -> None:
        if any(term == "loss" for _, term, _ in recipe.history):
            raise IndexError("out of luck")
        recipe.update(training)

    return recipe.wrap(update=update)


def test_pairs_that_break_are_found():
    a_scaled = dataclasses.replace(scaled, leaf="data_centric/sampling")  # goes first
    assert "composing raised ValueError: I was to be alone" in faults_of(a_scaled, jealous)["pairs"]
    assert "the conflict does not name both: this does not go together" in faults_of(a_scaled, vague)["pairs"]
    assert "are not finite" in faults_of(a_scaled, exploding)["pairs"]
    assert "training raised IndexError: out of luck" in faults_of(a_scaled, zealous)["pairs"]
    assert not faults_of(a_scaled, keeping)


def test_pairs_that_are_refused_by_name_are_fine():
    assert not faults_of(
        swapping, dataclasses.replace(scaled, leaf="data_centric/sampling")
    )  # a conflict over the loss
    assert not faults_of(choosy, scaled)


APPLIED: list[int] = []


@technique(LEAF, **CARD)
def fickle(recipe: Recipe) -> Recipe:
    """Change another term every time."""
    APPLIED.append(1)
    if len(APPLIED) % 2:
        return recipe.wrap(update=lambda training: recipe.update(training))
    return recipe.wrap(loss=lambda outputs, batch: recipe.loss(outputs, batch))


def test_an_order_of_naming_that_matters_is_found():
    assert "the order of naming matters" in faults_of(fickle, scaled)["sets"]


def test_techniques_that_wait_for_each_other_are_found():
    first = dataclasses.replace(scaled, after=("keeping",))
    second = dataclasses.replace(keeping, after=("scaled",))
    found = laws.check_order({"scaled": first, "keeping": second, "jealous": jealous})
    assert not found.ok
    assert "keeping, scaled, keeping: each wants to go after the one that is named next" in found.detail
    assert laws.check_order({"scaled": first, "keeping": keeping}).ok


def test_pairs_take_turns_on_the_toys():
    known = {each.name: each for each in (scaled, keeping, swapping)}
    findings = list(laws.check_pairs(known))
    assert len({found.toy for found in findings}) == 3
    assert sorted({found.technique for found in findings}) == ["keeping+scaled", "keeping+swapping", "scaled+swapping"]
