import copy

import pytest
import torch
from torch import nn

from effbench.errors import Conflict, InvalidTechnique, NotApplicable
from effbench.models import bert, cnn1d, gpt, mlp, resnet
from effbench.train import start
from effbench_techniques.model_centric.curriculum.progressive_stacking import interchangeable, progressive_stacking
from toy import VOCABULARY, images, random_numbers, run, same, state, tokens, vectors


def deep(depth: int = 4):
    return tokens(model=lambda: gpt(VOCABULARY, length=16, width=8, depth=depth, heads=2))


def test_depth_doubles_at_each_stage() -> None:
    depths: list[int] = []
    run(
        progressive_stacking.apply(deep(4), {"stages": 3, "full": 0.6}),
        10,
        look=lambda training: depths.append(len(training.model.blocks)),
    )
    assert depths == [1] * 3 + [2] * 3 + [4] * 4


def test_it_begins_with_the_baselines_weights() -> None:
    shallow = state(start(progressive_stacking.apply(deep(), {}), 0).model)
    plain = state(start(deep(), 0).model)
    assert len(shallow) < len(plain)
    assert all(torch.equal(shallow[name], plain[name]) for name in shallow)


@pytest.mark.parametrize("depth", [2, 3, 4, 5])
def test_the_grown_net_has_copies_of_the_trained_blocks(depth: int) -> None:
    recipe = progressive_stacking.apply(deep(depth), {})
    seen = []
    watched = recipe.at(0.5, lambda training: seen.append(training.model))
    run(watched, 2, look=lambda training: seen.append(state(training.model)) if training.step == 1 else None)
    before, grown = seen[0], seen[1]
    kept = (depth + 1) // 2
    assert len(grown.blocks) == depth
    trained = before["blocks.0.attention.qkv.weight"]
    assert not torch.equal(trained, state(start(recipe, 0).model)["blocks.0.attention.qkv.weight"])
    for upper in range(kept, depth):
        lower, copied = grown.blocks[upper - kept], grown.blocks[upper]
        assert lower is not copied
        assert not set(lower.parameters()) & set(copied.parameters())


def at_growth(options) -> list:
    """(optimizer state of a copy, of its original, weight of the copy, of the original), right after growing."""
    found: list = []

    def look(training) -> None:
        lower, upper = (training.model.blocks[i].attention.qkv.weight for i in (0, 2))
        states = training.optimizer.state
        found.extend(
            (copy.deepcopy(states[upper]), copy.deepcopy(states[lower]), upper.detach().clone(), lower.detach().clone())
        )

    run(progressive_stacking.apply(deep(), options).at(0.5, look), 6)
    return found


def test_copies_equal_their_originals_and_inherit_their_optimizer_state() -> None:
    copied, original, upper, lower = at_growth({})
    assert torch.equal(upper, lower)
    assert int(copied["step"]) == 3
    assert torch.equal(copied["exp_avg"], original["exp_avg"])
    assert torch.equal(copied["exp_avg_sq"], original["exp_avg_sq"])
    assert copied["exp_avg"] is not original["exp_avg"]


def test_or_the_copies_state_starts_anew_and_the_originals_goes_on() -> None:
    copied, original, upper, lower = at_growth({"inherit": False})
    assert torch.equal(upper, lower)
    assert not copied
    assert int(original["step"]) == 3


def test_all_blocks_train_afterwards() -> None:
    training = run(progressive_stacking.apply(deep(), {}), 8)
    optimized = {weight for group in training.optimizer.param_groups for weight in group["params"]}
    assert optimized == set(training.model.parameters())
    lower, upper = (training.model.blocks[i].attention.qkv.weight for i in (0, 2))
    assert not torch.equal(lower, upper)
    assert training.generation == 1


def test_one_stage_is_the_baseline() -> None:
    assert same(run(progressive_stacking.apply(deep(), {"stages": 1})).model, run(deep()).model)


def test_blocks_stand_for_each_other_where_built_alike_and_keeping_shapes() -> None:
    image, series, text = random_numbers(2, 1, 8, 8), random_numbers(2, 1, 40), torch.zeros(2, 16, dtype=torch.long)
    assert interchangeable(resnet(width=4, depth=3), image) == [3, 1, 2, 1, 2]
    assert interchangeable(cnn1d(), series) == [1, 1]  # alike, but each halves the length
    assert interchangeable(mlp(64, 4, width=8, depth=4), image) == [3]
    assert interchangeable(bert(5, length=16, width=8, depth=3, heads=2), text) == [3]
    assert interchangeable(nn.Linear(64, 2), image.flatten(1)) == []


def test_a_residual_network_grows_stage_by_stage() -> None:
    recipe = progressive_stacking.apply(images(model=lambda: resnet(classes=4, width=4, depth=3)), {})
    depths: list[int] = []
    run(recipe, 4, look=lambda training: depths.append(len(training.model.blocks)))
    assert depths == [2 + 1 + 1 + 1 + 1, 6, 9, 9]


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="no two blocks"):
        progressive_stacking.apply(images(), {})
    with pytest.raises(NotApplicable, match="no two blocks"):
        progressive_stacking.apply(vectors(model=lambda: nn.Linear(6, 4)), {})
    for options in ({"stages": 0}, {"full": 0.0}, {"full": 1.0}):
        option, value = next(iter(options.items()))
        with pytest.raises(InvalidTechnique, match=f"{option} is {value}"):
            progressive_stacking.apply(deep(), options)


def test_it_refuses_when_another_changes_the_number_of_blocks() -> None:
    def shorten(training) -> None:
        training.model.blocks = training.model.blocks[:1]

    with pytest.raises(Conflict, match="left 2 blocks and finds 1"):
        run(progressive_stacking.apply(deep().at(0.3, shorten), {}))
