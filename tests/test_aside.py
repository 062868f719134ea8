"""A scout learns from what it is given, and the run does not notice; scores are those of evaluation."""

import dataclasses

import pytest
import torch

from effbench.aside import score, train_aside
from effbench.toys import EXAMPLES, TOYS
from effbench.train import start

torch.set_num_threads(1)


def state(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize("toy", ["images", "text", "masked_text"])
def test_a_scout_learns_and_the_run_does_not_notice(toy) -> None:
    recipe = TOYS[toy]()
    training = start(recipe, 0)
    before, order, random = state(training.model), training.order.get_state(), torch.get_rng_state()
    scout = train_aside(recipe, training, torch.arange(16), 60)
    assert all(torch.equal(before[name], tensor) for name, tensor in training.model.state_dict().items())
    assert torch.equal(training.order.get_state(), order)
    assert torch.equal(torch.get_rng_state(), random)
    assert training.step == training.examples == 0
    untrained, trained = (score(recipe, training, model, recipe.loss)[:16].mean() for model in (training.model, scout))
    assert trained < untrained


def test_a_scout_sees_only_what_it_is_given_and_starts_from_weights_of_its_own() -> None:
    seen = []
    plain = TOYS["vectors"]()

    def loader(positions, training):
        seen.append(positions)
        return plain.loader(positions, training)

    recipe = dataclasses.replace(plain, loader=loader)
    mine = torch.tensor([3, 5, 7, 11, 13])

    def scout(steps: int):
        return state(train_aside(recipe, start(recipe, 0), mine, steps))

    once, again, untrained, own = scout(4), scout(4), scout(0), state(start(recipe, 0).model)
    assert set(torch.cat(seen).tolist()) == set(mine.tolist())
    assert all(torch.equal(once[name], again[name]) for name in once)
    assert not any(torch.equal(untrained[name], own[name]) for name in own if name.endswith("0.weight"))


def test_every_example_is_scored_in_evaluation_mode_and_modes_are_put_back() -> None:
    recipe = TOYS["images"]()
    training = start(recipe, 0)
    training.model.blocks[0].eval()
    before = state(training.model)
    found = score(recipe, training, training.model, recipe.loss)
    one = recipe.loader(torch.tensor([17]), training)
    assert found.shape == (EXAMPLES,)
    assert all(torch.equal(before[name], tensor) for name, tensor in training.model.state_dict().items())
    assert training.model.training
    assert not training.model.blocks[0].training
    with torch.no_grad():
        torch.testing.assert_close(found[17], recipe.loss(training.model.eval()(one.inputs), one)[0])
