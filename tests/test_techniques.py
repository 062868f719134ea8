"""What a technique must say, and how a set of techniques becomes one recipe."""

from __future__ import annotations

import dataclasses
import functools
import itertools

import pytest
import torch

from effbench.errors import Conflict, InvalidTechnique, NotApplicable, UnknownName
from effbench.recipe import Recipe
from effbench.techniques import Technique, compose, in_order, technique
from effbench.toys import TOYS

torch.set_num_threads(1)

CARD = {"paper": "Nobody, Nothing, arXiv:0000.00000", "claim": "none"}


def make(name: str, leaf: str = "data_centric/sampling", body=None, **card: object) -> Technique:
    def function(recipe: Recipe, *, by: float = 1.0, count: int = 2, on: bool = False) -> Recipe:
        return body(recipe) if body else recipe.wrap(loss=lambda outputs, batch: recipe.loss(outputs, batch))

    function.__name__ = name
    return technique(leaf, **CARD, **card)(function)


def known(*techniques: Technique) -> dict[str, Technique]:
    return {each.name: each for each in techniques}


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
    ],
)
def test_a_card_of_another_kind_is_refused(card, why):
    with pytest.raises(InvalidTechnique, match=why):
        technique("data_centric/sampling", **{**CARD, **card})


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


# --- order --------------------------------------------------------------------------------------------------------


def test_order_is_by_branch_then_after_then_name():
    techniques = known(
        make("fsdp", "system_centric/model"),
        make("ema", "optimization_centric/averaged_weights"),
        make("mixup", "data_centric/regularization", after=["selective_backprop"]),
        make("selective_backprop", "data_centric/sampling"),
        make("cutout", "data_centric/regularization"),
        make("muon", "optimization_centric/learning_rate"),
        make("stacking", "model_centric/curriculum"),
    )
    expected = ["cutout", "selective_backprop", "mixup", "stacking", "ema", "muon", "fsdp"]
    assert in_order(techniques, techniques) == expected
    assert in_order(["mixup", "ema"], techniques) == ["mixup", "ema"]  # who is not there is not waited for


def test_the_last_of_a_branch_goes_around_all_others_of_it():
    techniques = known(
        make("a", "system_centric/model"),
        make("network", "system_centric/optimization", last=True),
        make("z", "system_centric/model"),
        make("y", "system_centric/model", after=["z"]),
    )
    assert in_order(techniques, techniques) == ["a", "z", "y", "network"]


def test_order_does_not_depend_on_the_order_of_naming_or_finding():
    techniques = known(make("c", after=["d"]), make("a"), make("d", after=["a"]), make("b", "system_centric/data"))
    orders = {
        tuple(in_order(names, dict(found)))
        for names in itertools.permutations(techniques)
        for found in itertools.permutations(techniques.items())
    }
    assert orders == {("a", "d", "c", "b")}


def test_after_reaches_across_branches():
    techniques = known(make("data", after=["system"]), make("system", "system_centric/model"))
    assert in_order(techniques, techniques) == ["system", "data"]


def test_those_that_wait_for_each_other_are_named_and_no_others():
    techniques = known(
        make("a", after=["b"]), make("b", after=["c"]), make("c", after=["b"]), make("d"), make("self", after=["self"])
    )
    with pytest.raises(Conflict, match=r"^b, c, b: each wants to go after the one that is named next$"):
        in_order(["a", "b", "c", "d"], techniques)
    with pytest.raises(Conflict, match=r"^self, self: "):
        in_order(["self", "d"], techniques)


def test_an_unknown_technique_is_refused_with_the_near_one():
    with pytest.raises(UnknownName, match=r"there is no technique 'mixp'; did you mean 'mixup'\? There is: mixup, sam"):
        in_order(["sam", "mixp"], known(make("mixup"), make("sam")))


def inputs_of(recipe: Recipe) -> float:
    from effbench.train import start

    training = start(recipe, 0)
    batch = recipe.transform(recipe.loader(torch.arange(4), training), training)
    plain = TOYS["vectors"]().dataset.inputs[:4]
    return tuple(((batch.inputs - value).abs().max() < 1e-6).item() for value in (2 * (plain + 1), 2 * plain + 1))


def transforming(name: str, change, **card: object) -> Technique:
    def body(recipe: Recipe) -> Recipe:
        def transform(batch, training):
            batch = recipe.transform(batch, training)
            return batch.replace(inputs=change(batch.inputs))

        return recipe.wrap(transform=transform)

    return make(name, body=body, **card)


def test_who_goes_first_is_fixed_by_the_techniques_and_what_they_do_follows():
    """Doubling and adding one do not commute."""
    double, plus1 = transforming("double", lambda x: 2 * x), transforming("plus1", lambda x: x + 1)
    for names in (["double", "plus1"], ["plus1", "double"]):
        recipe, order = compose(TOYS["vectors"](), {name: {} for name in names}, known(double, plus1))
        assert order == ["double", "plus1"]
        assert inputs_of(recipe) == (False, True)
        late = transforming("double", lambda x: 2 * x, after=["plus1"])
        recipe, order = compose(TOYS["vectors"](), {name: {} for name in names}, known(plus1, late))
        assert order == ["plus1", "double"]
        assert inputs_of(recipe) == (True, False)


# --- sets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, -3, 2.0, True, "two", 100_000])
def test_a_number_of_processes_that_cannot_be_is_refused(count):
    wide = make("wide", body=lambda recipe: recipe.swap(processes=count))
    with pytest.raises(InvalidTechnique, match=f"wide wants {count!r} processes; it should be a whole number from 1"):
        compose(TOYS["vectors"](), {"wide": {}}, known(wide))


def test_the_empty_set_is_the_baseline():
    baseline = TOYS["vectors"]()
    recipe, order = compose(baseline, {}, {})
    assert recipe is baseline
    assert order == []


def test_options_reach_the_function():
    seen = {}

    def mine(recipe: Recipe, *, by: float = 1.0, mode: str = "x") -> Recipe:
        seen.update(by=by, mode=mode)
        return recipe

    made = technique("data_centric/sampling", **CARD)(mine)
    compose(TOYS["vectors"](), {"mine": {"by": 2.0}}, known(made))
    assert seen == {"by": 2.0, "mode": "x"}
    with pytest.raises(InvalidTechnique, match="mine has no option 'alhpa'; it has: by, mode"):
        compose(TOYS["vectors"](), {"mine": {"alhpa": 2.0}}, known(made))


@pytest.mark.parametrize("who", ["one", "two"])
def test_an_exclusion_holds_whoever_declares_it(who):
    other = {"one": "two", "two": "one"}[who]
    declaring = make(who, conflicts={other: "both evaluate an average"})
    with pytest.raises(Conflict, match=f"^{who} and {other} exclude each other: both evaluate an average$"):
        compose(TOYS["vectors"](), {"one": {}, "two": {}}, known(declaring, make(other)))
    compose(TOYS["vectors"](), {who: {}}, known(declaring))  # alone it is fine


def test_two_that_replace_one_term_are_refused_by_name():
    first, second = (make(name, body=lambda recipe: recipe.swap(optimizer=print)) for name in ("lion", "muon"))
    with pytest.raises(Conflict, match=r"^muon replaces the optimizer that lion changed$"):
        compose(TOYS["vectors"](), {"muon": {}, "lion": {}}, known(second, first))


def test_a_refusal_and_any_other_error_pass_through_unchanged():
    def refuse(recipe: Recipe) -> Recipe:
        raise NotApplicable("no classes here")

    def fail(recipe: Recipe) -> Recipe:
        raise ZeroDivisionError("oops")

    with pytest.raises(NotApplicable, match="no classes here"):
        compose(TOYS["vectors"](), {"mine": {}}, known(make("mine", body=refuse)))
    with pytest.raises(ZeroDivisionError, match="oops"):
        compose(TOYS["vectors"](), {"mine": {}}, known(make("mine", body=fail)))
