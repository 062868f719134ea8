import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from effbench.distributed.sharing import share
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models import gpt
from effbench.techniques import compose
from effbench_techniques.data_centric.sampling.random_ltd import bypassed, middle_blocks, random_ltd
from effbench_techniques.model_centric.curriculum.progressive_stacking import progressive_stacking
from effbench_techniques.model_centric.curriculum.stochastic_depth import stochastic_depth
from toy import VOCABULARY, begun, first_batch, images, random_numbers, run, same, tokens, vectors


def deep(depth: int = 4, **changes):
    return tokens(model=lambda: gpt(VOCABULARY, length=16, width=8, depth=depth, heads=2), **changes)


def passed(training) -> list[list[int]]:
    """Tokens that each attention sees, one list a step."""
    counts: list[list[int]] = []
    for number, block in enumerate(training.model.blocks):
        if number == 0:
            block.attention.register_forward_hook(lambda *_: counts.append([]))
        block.attention.register_forward_hook(lambda m, inputs, output: counts[-1].append(inputs[0].shape[1]))
    return counts


def test_the_tokens_left_out_go_around_unchanged_and_the_others_through() -> None:
    block, x = begun(deep()).model.blocks[1], random_numbers(3, 16, 8)
    with torch.no_grad(), bypassed(block, 0.25, 7):
        found, again = block(x), block(x)
    assert torch.equal(found, again)
    changed = (found != x).any(2)
    assert changed.sum(1).tolist() == [4, 4, 4]
    assert not torch.equal(changed[0], changed[1])
    assert "forward" not in vars(block)
    for i in range(3):
        with torch.no_grad():
            torch.testing.assert_close(found[i][changed[i]], block(x[i][changed[i]][None])[0])  # in their order


def test_more_and_more_tokens_get_through_the_middle_blocks() -> None:
    recipe = random_ltd.apply(deep(), {"duration": 0.6, "stages": 3})
    training = begun(recipe)
    counts = passed(training)
    for step in range(10):
        training.progress = step / 10
        recipe.gradient(training, share(first_batch(recipe, training), training))
    assert counts == [[16, 8, 8, 16]] * 3 + [[16, 12, 12, 16]] * 3 + [[16] * 4] * 4
    assert recipe.phases == pytest.approx([0.3, 0.6])


def test_compute_falls_with_the_tokens() -> None:
    def flop(options) -> int:
        recipe = random_ltd.apply(deep(), options)
        training = begun(recipe)
        batch = share(first_batch(recipe, training), training)
        with FlopCounterMode(display=False) as counter:
            recipe.gradient(training, batch)
        return counter.get_total_flops()

    whole, half, quarter = (flop({"initial_scale": scale}) for scale in (1.0, 0.5, 0.25))
    assert 0.9 < (whole - half) / (half - quarter) / 2 < 1.3  # more than linear, for attention


def test_at_the_end_it_is_the_baseline() -> None:
    recipe = random_ltd.apply(deep(), {})
    gradients = []
    for one in (deep(), recipe):
        training = begun(one, progress=0.7)
        one.gradient(training, share(first_batch(one, training), training))
        gradients.append([weight.grad for weight in training.model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_which_blocks_are_in_the_middle() -> None:
    model = deep(5).model()
    assert middle_blocks(model, 1) == list(model.blocks)[1:4]
    assert middle_blocks(model, 0) == list(model.blocks)
    assert middle_blocks(vectors().model(), 0) == []


def test_it_goes_with_what_drops_and_stacks_blocks() -> None:
    known = {each.name: each for each in (random_ltd, stochastic_depth, progressive_stacking)}
    run(compose(deep(), {"random_ltd": {}, "stochastic_depth": {}, "progressive_stacking": {}}, known)[0], 8)


def test_all_tokens_are_the_baseline_and_half_are_not() -> None:
    baseline = run(deep(), 4)
    assert same(run(random_ltd.apply(deep(), {"initial_scale": 1.0}), 4).model, baseline.model)
    assert not same(run(random_ltd.apply(deep(), {}), 4).model, baseline.model)


def test_it_says_why_it_does_not_apply() -> None:
    for recipe in (images(), tokens()):  # no attention; two blocks
        with pytest.raises(NotApplicable, match="the 1 at either end"):
            random_ltd.apply(recipe, {})
    for options in ({"initial_scale": 0.0}, {"duration": 0.0}, {"stages": 1}, {"spared": -1}):
        option, value = next(iter(options.items()))
        with pytest.raises(InvalidTechnique, match=f"{option} is {value}"):
            random_ltd.apply(deep(), options)
