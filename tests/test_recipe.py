"""Recipes: wrap, swap, and the conflicts between them; batches."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from effbench.errors import Conflict, InvalidTechnique, UnknownName
from effbench.recipe import TERMS, Batch, Examples, Milestone, Recipe
from effbench.toys import TOYS

CLASSIFIER = TOYS["vectors"]


def signed(author: str, recipe: Recipe | None = None) -> Recipe:
    return dataclasses.replace(recipe or CLASSIFIER(), author=author)


def double(outputs, batch):
    return outputs.sum(1)


def test_the_terms_are_all_fields_but_the_facts():
    fields = {field.name for field in dataclasses.fields(Recipe)}
    assert fields - set(TERMS) == {"classes", "traits", "author", "history", "scopes"}


def test_wrap_and_swap_change_the_term_and_sign_it():
    recipe = signed("mine").wrap(loss=double).swap(update=print)
    assert recipe.loss is double
    assert recipe.update is print
    assert recipe.history == (("wrap", "loss", "mine"), ("swap", "update", "mine"))


def test_the_old_recipe_is_left_as_it_was():
    recipe = signed("mine")
    before = recipe.loss
    recipe.wrap(loss=double)
    assert recipe.loss is before
    assert recipe.history == ()


@pytest.mark.parametrize("verb", ["wrap", "swap"])
def test_an_unknown_term_is_refused_with_the_near_one(verb):
    with pytest.raises(UnknownName, match=r"there is no term of a recipe 'los'; did you mean 'loss'\?"):
        getattr(CLASSIFIER(), verb)(los=double)


@pytest.mark.parametrize("fact", ["classes", "traits", "author", "history"])
def test_facts_are_no_terms(fact):
    with pytest.raises(UnknownName, match=f"there is no term of a recipe '{fact}'"):
        CLASSIFIER().wrap(**{fact: None})


@pytest.mark.parametrize("verb", ["wrap", "swap"])
def test_replacing_what_another_changed_is_a_conflict_that_names_both(verb):
    changed = getattr(signed("ema"), verb)(optimizer=print)
    with pytest.raises(Conflict, match=r"^muon replaces the optimizer that ema changed$"):
        signed("muon", changed).swap(optimizer=len)


def test_a_conflict_names_all_whose_work_would_be_lost():
    changed = signed("sam", signed("cutout").wrap(loss=double)).wrap(loss=double)
    with pytest.raises(Conflict, match=r"^mine replaces the loss that cutout and sam changed$"):
        signed("mine", changed).swap(update=print, loss=double)


def test_one_may_replace_what_oneself_changed_and_wrap_what_others_did():
    mine = signed("mine").wrap(loss=double).swap(loss=double)
    assert signed("other", mine).wrap(loss=double).history[-1] == ("wrap", "loss", "other")
    assert signed("other", mine).swap(update=print).update is print


def test_milestones_are_added_and_signed():
    def grow(training):
        pass

    recipe = signed("mine").at(0.5, grow).at(0.25, grow)
    assert recipe.milestones == (Milestone(0.5, grow), Milestone(0.25, grow))
    assert recipe.history == (("wrap", "milestones", "mine"),) * 2


@pytest.mark.parametrize("progress", [-0.1, 1.5, float("nan")])
def test_a_milestone_outside_the_budget_is_refused(progress):
    with pytest.raises(InvalidTechnique, match=f"found {progress}"):
        CLASSIFIER().at(progress, print)


def some_batch() -> Batch:
    index = torch.arange(4)
    return Batch(torch.arange(8.0).view(4, 2), index % 2, index, index + 1.0)


@pytest.mark.parametrize(
    ("chosen", "index"),
    [
        (torch.tensor([3, 0, 0]), [3, 0, 0]),
        (torch.tensor([True, False, True, False]), [0, 2]),
        (slice(1, 3), [1, 2]),
        (torch.tensor([], dtype=torch.long), []),
    ],
)
def test_indexing_a_batch_picks_the_same_examples_from_all_its_tensors(chosen, index):
    part = some_batch()[chosen]
    assert len(part) == len(index)
    assert part.index.tolist() == index
    assert part.inputs.tolist() == [[2.0 * i, 2.0 * i + 1] for i in index]
    assert part.targets.tolist() == [i % 2 for i in index]
    assert part.weight.tolist() == [i + 1.0 for i in index]


def test_replacing_tensors_of_a_batch_leaves_it_as_it_was():
    batch = some_batch()
    changed = batch.replace(weight=torch.zeros(4))
    assert changed.weight.sum() == 0
    assert batch.weight.sum() == 10
    assert changed.inputs is batch.inputs


def test_examples_have_a_length():
    assert len(Examples(torch.zeros(5, 2), torch.zeros(5))) == 5
