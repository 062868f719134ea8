from itertools import pairwise

import pytest
import torch
from torch import nn

from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models import resnet
from effbench.optimizers import sgd
from effbench_techniques.model_centric.curriculum.layer_freezing import layer_freezing
from toy import CLASSES, images, masked_tokens, run, same, state, tokens, vectors


def history(recipe, steps: int = 12):
    """All tensors of the model after each step."""
    states: list[dict[str, torch.Tensor]] = []

    def look(training) -> None:
        states.append(state(training.model))
        training.model.eval()
        training.model.train()  # as those do who evaluate

    return states, run(recipe, steps, look=look)


def moved(states, prefix: str) -> list[bool]:
    """Whether any tensor, buffers included, changed from each step to the next."""
    return [
        any(not torch.equal(before[name], after[name]) for name in before if name.startswith(prefix))
        for before, after in pairwise(states)
    ]


def test_frozen_weights_and_buffers_stay_bit_by_bit_though_the_model_is_evaluated_on_the_way() -> None:
    optimizer = sgd(0.05, momentum=0.9, weight_decay=0.1)
    recipe = layer_freezing.apply(images(optimizer=optimizer), {"start": 0.5, "level": 0.75})
    states, training = history(recipe)  # embed at step 6, block 0 at step 8, block 1 at step 10
    assert moved(states, "embed.") == [True] * 5 + [False] * 6
    assert moved(states, "blocks.0.") == [True] * 7 + [False] * 4
    assert moved(states, "blocks.1.") == [True] * 9 + [False] * 2
    for name in ("first_norm.running_mean", "first_norm.num_batches_tracked"):
        assert moved(states, f"blocks.0.{name}") == [True] * 7 + [False] * 4
    assert moved(states, "blocks.2.") == [True] * 11
    assert training.generation == 3


def test_the_backward_pass_is_shorter() -> None:
    grads: list[dict[str, bool]] = []

    def update(training) -> None:
        grads.append({name: weight.grad is not None for name, weight in training.model.named_parameters()})
        images().update(training)

    run(layer_freezing.apply(images(update=update), {"start": 0.5, "level": 0.5}), 8)
    assert all(grads[3].values())
    assert {name.split(".")[0] for name, has in grads[4].items() if not has} == {"embed"}
    frozen = {name for name, has in grads[-1].items() if not has}
    assert frozen == {name for name in grads[-1] if name.startswith(("embed.", "blocks.0."))}


def test_features_of_frozen_parts_have_no_way_back() -> None:
    needs: list[bool] = []
    recipe = layer_freezing.apply(tokens(), {"start": 0.4, "level": 1.0})

    def watch(training) -> None:
        training.model.blocks[0].register_forward_pre_hook(lambda m, inputs: needs.append(inputs[0].requires_grad))

    run(recipe.at(0.0, watch), 10)
    assert needs == [True] * 4 + [False] * 6  # though the tokens' weight is shared with the output layer, and learns


def test_a_weight_that_the_head_shares_goes_on_learning_from_it() -> None:
    for make in (tokens, masked_tokens):
        states, _ = history(layer_freezing.apply(make(), {"start": 0.5, "level": 0.5}))
        assert moved(states, "embed.tokens.") == [True] * 10 + [False]  # the last rate is zero
        assert moved(states, "embed.positions.") == [True] * 5 + [False] * 6


def test_dropout_in_frozen_parts_drops_nothing_and_others_go_on() -> None:
    def model():
        made = vectors().model()
        made.blocks.append(nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)))
        made.blocks.append(nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)))
        return made

    modes: list[tuple[bool, bool]] = []

    def gradient(training, batch):
        modes.append(tuple(training.model.blocks[i][1].training for i in (1, 2)))
        return vectors().gradient(training, batch)

    run(layer_freezing.apply(vectors(model=model, gradient=gradient), {"start": 0.5, "level": 0.75}), 6)
    assert modes == [(True, True)] * 5 + [(False, True)]  # embed, block 0, block 1 at 3, 4 and 5


def test_start_one_is_the_baseline_and_a_half_is_not() -> None:
    baseline = run(images(), 6)
    assert same(run(layer_freezing.apply(images(), {"start": 1.0}), 6).model, baseline.model)
    assert not same(run(layer_freezing.apply(images(), {}), 6).model, baseline.model)


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match=r"no share of 0\.5"):
        layer_freezing.apply(vectors(model=lambda: nn.Linear(6, 4)), {})
    with pytest.raises(NotApplicable, match=r"no share of 0\.01"):
        layer_freezing.apply(images(model=lambda: resnet(classes=CLASSES, width=4)), {"level": 0.01})
    for options in ({"start": 1.1}, {"level": 0.0}):
        option, value = next(iter(options.items()))
        with pytest.raises(InvalidTechnique, match=f"{option} is {value}"):
            layer_freezing.apply(images(), options)
