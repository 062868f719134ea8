"""How a set of techniques becomes one recipe: in which order, and which exclude each other."""

from __future__ import annotations

import itertools

import pytest
import torch

from effbench.errors import Conflict, InvalidTechnique, NotApplicable, UnknownName
from effbench.recipe import Recipe
from effbench.techniques import Technique, compose, in_order, technique
from effbench.toys import TOYS
from made_techniques import CARD, known, make

torch.set_num_threads(1)


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
    techniques = known(make("a", after=["b"]), make("b", after=["c"]), make("c", after=["b"]), make("d"))
    with pytest.raises(Conflict, match=r"^b, c, b: each wants to go after the one that is named next$"):
        in_order(["a", "b", "c", "d"], techniques)


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
