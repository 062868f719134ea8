"""Each law that a technique keeps by itself catches a planted fault of its kind."""

from __future__ import annotations

from typing import NoReturn

import pytest
import torch
from torch import Tensor, nn

from effbench import laws
from effbench.recipe import Batch, Recipe, Training
from effbench.techniques import technique
from effbench.toys import TOYS
from planted import CARD, LEAF, broken, choosy, keeping, scaled, swapping

# --- the toys -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("toy", TOYS)
def test_a_toy_sees_its_examples_more_than_once(toy):
    from effbench.laws.observing import STEPS, Witness

    witness = Witness(TOYS[toy]())
    seen = witness.observe(witness.recipe).seen
    drawn = STEPS * witness.recipe.batch_size(0.0)
    assert drawn > 2 * len(witness.recipe.dataset)  # so that an order that goes wrong in a later epoch shows
    assert len(seen.chunks) == -(-drawn // len(witness.recipe.dataset))


# --- a technique that does nothing wrong --------------------------------------------------------------------------


def test_a_lawful_technique_is_found_lawful_on_every_toy():
    findings = laws.check(scaled)
    assert all(found.ok for found in findings)
    checked = {found.toy for found in findings if found.law == "applies"}
    assert checked == set(TOYS)
    assert {found.law for found in findings} == {
        "described",
        "applies",
        "neutral",
        "fresh",
        "watched",
        "wraps",
        "paired",
    }


# --- one planted fault for each law -------------------------------------------------------------------------------


def test_refusing_every_toy_is_not_green():
    assert "refuses every toy" in broken(choosy)["applies"]
    assert "vectors: it wants video" in broken(choosy)["applies"]


@technique(LEAF, **CARD)
def clumsy(recipe: Recipe) -> Recipe:
    """Break in training."""

    def loss(outputs: Tensor, batch: Batch) -> Tensor:
        raise KeyError("lost")

    return recipe.swap(loss=loss)


@technique(LEAF, **CARD)
def leaving(recipe: Recipe, *, late: bool = False) -> Recipe:
    """Leave the program, at once or in the first step."""

    def leave(*_: object) -> NoReturn:
        raise SystemExit("enough")

    return recipe.wrap(gradient=leave) if late else leave()


@pytest.mark.parametrize("late", [False, True])
def test_leaving_the_program_is_found(late):
    found = laws.check(leaving, options={"late": late}, toys={"vectors": TOYS["vectors"]})
    assert [str(finding.detail) for finding in found if finding.law == "applies"] == [
        f"SystemExit: enough (raised in test_laws.py, line {leaving.function.__code__.co_firstlineno + 5})"
    ]


def test_leaving_is_found_in_pairs_too():
    for options, where in (({}, "composing"), ({"leaving": {"late": True}}, "training")):
        found = laws.check_pair(leaving, scaled, "vectors", TOYS["vectors"](), options=options)
        assert f"{where} raised SystemExit: enough" in found[-1].detail


def test_an_error_that_is_no_refusal_is_found_with_its_place():
    assert "KeyError: 'lost' (raised in test_laws.py, line" in broken(clumsy)["applies"]


@technique(LEAF, **CARD, neutral={"by": 0.0})
def nearly_neutral(recipe: Recipe, *, by: float = 0.1) -> Recipe:
    """Add to the loss, and touch the gradient even where nothing is added.

    by: how much.
    """

    def loss(outputs: Tensor, batch: Batch) -> Tensor:
        return recipe.loss(outputs, batch) * (1.0 + 1e-3) + by

    return recipe.wrap(loss=loss)


def test_neutral_options_that_change_the_weights_are_found():
    fault = broken(nearly_neutral)
    assert set(fault) == {"neutral"}
    assert "{'by': 0.0}" in fault["neutral"]
    assert "tensors differ" in fault["neutral"]


@technique(LEAF, **CARD, neutral={"on": False})
def thirsty(recipe: Recipe, *, on: bool = True) -> Recipe:
    """Draw from torch's global random numbers, which are dropout's.

    on: whether anything is done with what is drawn.
    """

    def transform(batch: Batch, training: Training) -> Batch:
        noise = torch.rand(())
        batch = recipe.transform(batch, training)
        return batch.replace(inputs=batch.inputs + noise) if on else batch

    return recipe.wrap(transform=transform)


def test_a_neutral_technique_must_not_shift_dropout():
    assert set(broken(thirsty)) == {"neutral"}


CALLS: list[int] = []


@technique(LEAF, **CARD)
def remembering(recipe: Recipe) -> Recipe:
    """Count in a global list how often it was called, and weigh by it."""

    def loss(outputs: Tensor, batch: Batch) -> Tensor:
        CALLS.append(1)
        return recipe.loss(outputs, batch) * len(CALLS)

    return recipe.wrap(loss=loss)


@technique(LEAF, **CARD)
def enclosing(recipe: Recipe) -> Recipe:
    """Keep the number of its calls in a closure, which outlives a run."""
    calls = []

    def loss(outputs: Tensor, batch: Batch) -> Tensor:
        calls.append(1)
        return recipe.loss(outputs, batch) * len(calls)

    return recipe.wrap(loss=loss)


@technique(LEAF, **CARD)
def staining(recipe: Recipe) -> Recipe:
    """Write into the data set."""

    def transform(batch: Batch, training: Training) -> Batch:
        training.recipe.dataset.inputs[batch.index] *= 0.9
        return recipe.transform(batch, training)

    return recipe.wrap(transform=transform)


def test_state_that_outlives_a_run_is_found_wherever_it_is():
    assert "a second run trains other weights" in broken(remembering)["fresh"]
    assert "a second run trains other weights" in broken(enclosing)["fresh"]
    assert "trains other weights" in broken(staining)["fresh"]
    assert not broken(keeping)


@technique(LEAF, **CARD)
def rogue(recipe: Recipe) -> Recipe:
    """Leave a mark on torch itself."""
    nn.Dropout.forward = lambda self, inputs: inputs
    return recipe.wrap(loss=lambda outputs, batch: recipe.loss(outputs, batch))


def test_a_technique_that_changes_something_global_is_found(monkeypatch):
    monkeypatch.setattr(nn.Dropout, "forward", nn.Dropout.forward)
    assert "after it the baseline itself trains other weights" in broken(rogue)["fresh"]


@technique(LEAF, **CARD)
def snatching(recipe: Recipe) -> Recipe:
    """Evaluate half the weights, and forget to give the others back."""

    def halved(training: Training) -> nn.Module:
        model = recipe.eval_model(training)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter *= 0.5
        return model

    return recipe.wrap(eval_model=halved)


def test_an_evaluation_that_disturbs_training_is_found():
    assert set(broken(snatching)) == {"watched"}


@technique(LEAF, **CARD)
def pretending(recipe: Recipe) -> Recipe:
    """Say wrap, and discard the old loss."""

    def loss(outputs: Tensor, batch: Batch) -> Tensor:
        return nn.functional.cross_entropy(outputs, batch.targets, reduction="none")

    return recipe.wrap(loss=loss)


@technique(LEAF, **CARD)
def bypassing(recipe: Recipe) -> Recipe:
    """Take a gradient of a loss of its own, so that what other techniques do to the loss is lost."""

    def gradient(training: Training, batch: Batch) -> Tensor:
        losses = nn.functional.cross_entropy(training.forward(batch.inputs), batch.targets, reduction="none")
        (losses * batch.weight).sum().backward()
        return losses.detach()

    return recipe.swap(gradient=gradient)


@technique(LEAF, **CARD)
def tidying(recipe: Recipe) -> Recipe:
    """Forget the milestones of others."""
    return recipe.wrap(milestones=())


def test_a_wrapped_term_that_is_not_called_is_found():
    assert "wraps the loss, but in 6 steps never calls the old one" in broken(pretending)["wraps"]
    assert "leaves the loss alone, but in 6 steps nothing calls it" in broken(bypassing)["wraps"]
    assert "wraps the milestones" in broken(tidying)["wraps"]
    assert not broken(swapping)


@technique(LEAF, **CARD)
def shifting(recipe: Recipe) -> Recipe:
    """Draw from the global random numbers before the baseline's weights are drawn."""

    def model() -> nn.Module:
        torch.rand(1)
        return recipe.model()

    return recipe.wrap(model=model)


@technique(LEAF, **CARD)
def reordering(recipe: Recipe) -> Recipe:
    """Seed the baseline's generator for a purpose of its own."""

    def transform(batch: Batch, training: Training) -> Batch:
        training.order.manual_seed(training.step)
        return recipe.transform(batch, training)

    return recipe.wrap(transform=transform)


@technique(LEAF, **CARD)
def drawing(recipe: Recipe) -> Recipe:
    """Draw from the generator that is there for techniques, and make weights of its own after the baseline's."""

    def model() -> nn.Module:
        made = recipe.model()
        with torch.no_grad():
            next(made.parameters()).add_(torch.rand(1))
        return made

    def transform(batch: Batch, training: Training) -> Batch:
        chosen = torch.rand(len(batch), generator=training.rng) < 0.9
        return recipe.transform(batch, training)[chosen]

    return recipe.wrap(model=model, transform=transform)


def test_other_initial_weights_and_another_order_are_found():
    assert "does not start from the baseline's initial weights" in broken(shifting)["paired"]
    assert "yields another order: " in broken(reordering)["paired"]
    assert "of chunk 1 differ" in broken(reordering)["paired"]
    assert not broken(drawing)
