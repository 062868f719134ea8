"""What a technique must say, and what it may return."""

from __future__ import annotations

import dataclasses
import functools

import pytest
import torch

from effbench.errors import InvalidTechnique, UnknownName
from effbench.recipe import Recipe
from effbench.techniques import technique
from effbench.toys import TOYS
from made_techniques import CARD, make

torch.set_num_threads(1)


# --- what it must say ---------------------------------------------------------------------------------------------


def test_a_technique_is_its_function_and_its_card():
    made = make("mine", neutral={"by": 0.0}, after=["other"], conflicts={"rival": "why"}, title="Mine", tolerance=0.1)
    assert made.name == "mine"
    assert made.options == {"by": 1.0, "count": 2, "on": False}
    assert (made.leaf, made.neutral, made.after) == ("data_centric/sampling", {"by": 0.0}, ("other",))
    assert (made.conflicts, made.title, made.tolerance) == ({"rival": "why"}, "Mine", 0.1)
    assert make("plain").tolerance == 1e-4


def test_a_leaf_that_is_not_there_is_refused():
    with pytest.raises(UnknownName, match="no leaf of the taxonomy 'data_centric/sample'"):
        make("mine", leaf="data_centric/sample")


def positional(recipe: Recipe, by: float = 1.0) -> Recipe:
    return recipe


def required(recipe: Recipe, *, by: float) -> Recipe:
    return recipe


def greedy(recipe: Recipe, **options: float) -> Recipe:
    return recipe


def nothing() -> None:
    pass


def keyword(*, recipe: Recipe) -> Recipe:
    return recipe


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (positional, "'by' should be keyword-only with a default, as in `def positional\\(recipe, \\*, by=1.0\\)`"),
        (required, "'by' should be keyword-only with a default"),
        (greedy, "'options' should be keyword-only with a default"),
        (nothing, "nothing should take the recipe as its first parameter"),
        (keyword, "keyword should take the recipe as its first parameter"),
    ],
)
def test_a_function_of_another_shape_is_refused(function, why):
    with pytest.raises(InvalidTechnique, match=why):
        technique("data_centric/sampling", **CARD)(function)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (functools.partial(positional), "a technique is a function, written with def; found functools.partial"),
        (Recipe, "a technique is a function, written with def; found <class"),
        (print, "a technique is a function, written with def; found <built-in"),
        (lambda recipe: recipe, "'<lambda>' is no name of a technique; write the function with def"),
    ],
)
def test_what_is_no_function_with_a_name_is_refused(made, why):
    with pytest.raises(InvalidTechnique, match=why):
        technique("data_centric/sampling", **CARD)(made)


@pytest.mark.parametrize(
    ("card", "why"),
    [
        ({"paper": None}, "paper = None: write text"),
        ({"claim": 4}, "claim = 4: write text"),
        ({"after": "mixup"}, r"after = 'mixup': write a list of techniques, such as \['mixup'\]"),
        ({"neutral": ["by"]}, r"neutral = \['by'\]: write a dictionary, such as {option: value}"),
        ({"conflicts": ["ema"]}, r"conflicts = \['ema'\]: write a dictionary, such as {technique: why}"),
        ({"conflicts": {"ema": 3}}, r"conflicts: ema = 3: write why they exclude each other"),
        ({"after": [3]}, r"after and conflicts tell techniques by their names, found 3"),
        ({"last": "yes"}, r"last = 'yes': write True or False"),
        ({"races": 1}, r"races = 1: write True or False"),
        ({"tolerance": "1e-4"}, r"tolerance = '1e-4': write a number from 0, such as 1e-4"),
        ({"tolerance": float("nan")}, r"tolerance = nan: write a number from 0"),
        ({"unequal": True}, r"unequal = True: write why, as text"),
    ],
)
def test_a_card_of_another_kind_is_refused(card, why):
    with pytest.raises(InvalidTechnique, match=why):
        technique("data_centric/sampling", **{**CARD, **card})


@pytest.mark.parametrize("card", [{"after": ["mine"]}, {"conflicts": {"mine": "why not"}}])
def test_a_technique_that_waits_for_itself_or_excludes_itself_is_refused(card):
    with pytest.raises(InvalidTechnique, match="mine names itself in `after` or `conflicts`"):
        make("mine", **card)


def test_neutral_options_are_checked_when_they_are_declared():
    with pytest.raises(InvalidTechnique, match=r"mine has no option 'bi'; it has: by, count, on$"):
        make("mine", neutral={"bi": 0.0})


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"bye": 1.0}, r"mine has no option 'bye'; it has: by, count, on; did you mean 'by'\?"),
        ({"zzz": 1.0}, r"mine has no option 'zzz'; it has: by, count, on$"),
        ({"by": "1"}, r"option by is '1', which is text; it should be a number, such as the default 1.0"),
        ({"by": True}, r"option by is True, which is true or false; it should be a number"),
        ({"by": None}, r"option by is None, which is nothing; it should be a number"),
        ({"by": [1.0]}, r"option by is \[1.0\], which is list; it should be a number"),
        ({"count": 2.5}, r"option count is 2.5, which is a number; it should be a whole number"),
        ({"count": False}, r"option count is False, which is true or false; it should be a whole number"),
        ({"by": float("nan")}, r"mine: option by is nan, with which nothing can be computed"),
        ({"by": 10**400}, r"option by is a whole number of more than 64 bits, with which nothing can be computed"),
        ({"count": -(2**63)}, r"option count is a whole number of more than 64 bits"),
        ({"on": 1}, r"option on is 1, which is a whole number; it should be true or false"),
    ],
)
def test_options_that_do_not_exist_or_fit_are_refused(options, why):
    with pytest.raises(InvalidTechnique, match=why):
        make("mine").check_options(options)


def test_options_that_fit_are_taken():
    make("mine").check_options({"by": 2, "count": 3, "on": True})

    def many(recipe: Recipe, *, names: tuple[str, ...] = ("a",), anything: object = None, mode: str = "x") -> Recipe:
        return recipe

    technique("data_centric/sampling", **CARD)(many).check_options({"names": ["b"], "anything": 3, "mode": "y"})


# --- what it returns ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("returned", "kind"), [(None, "nothing"), (3, "a whole number"), ({}, "dict")])
def test_a_technique_that_returns_no_recipe_is_refused(returned, kind):
    with pytest.raises(InvalidTechnique, match=f"mine returned {kind}; a technique returns a Recipe"):
        make("mine", body=lambda recipe: returned).apply(TOYS["vectors"](), {})


@pytest.mark.parametrize("term", ["loss", "dataset", "processes", "milestones"])
def test_a_change_that_bypasses_wrap_and_swap_is_refused(term):
    """No conflict over it would be seen."""
    made = make("mine", body=lambda recipe: dataclasses.replace(recipe, **{term: object()}))
    with pytest.raises(InvalidTechnique, match=rf"mine changed the {term} behind .* use recipe.wrap\({term}=...\)"):
        made.apply(TOYS["vectors"](), {})


def test_facts_may_change_freely():
    made = make("mine", body=lambda recipe: dataclasses.replace(recipe, classes=7, traits=frozenset({"odd"})))
    changed = made.apply(TOYS["vectors"](), {})
    assert (changed.classes, changed.traits) == (7, {"odd"})


def test_changes_are_signed_and_the_pen_is_handed_back():
    recipe = make("mine").apply(TOYS["vectors"](), {})
    assert recipe.history == (("wrap", "loss", "mine"),)
    assert recipe.author == ""


def test_a_technique_may_use_another_and_both_sign_what_they_did():
    inner = make("inner")
    outer = make("outer", body=lambda recipe: inner.apply(recipe, {}).wrap(update=print))
    recipe = outer.apply(TOYS["vectors"](), {})
    assert recipe.history == (("wrap", "loss", "inner"), ("wrap", "update", "outer"))
