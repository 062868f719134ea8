import pytest
import torch
from torch import nn

from effbench.errors import Conflict, NotApplicable
from effbench.models import residuals, resnet
from effbench.techniques import compose
from effbench_techniques.model_centric.architecture.depthwise_separable_conv import depthwise_separable_conv
from effbench_techniques.model_centric.initialization.fixup import FixupBlock, Scale, Shift, fixup
from effbench_techniques.model_centric.initialization.kaiming_xavier import kaiming_xavier
from toy import begun, images, random_integers, random_numbers, run, state, tokens


def deep(depth: int, branches: int | None = None) -> nn.Module:
    """A ResNet of `3 * depth` branches; its weights scaled as if there were `branches`."""
    model = begun(fixup.apply(images(model=lambda: resnet(classes=4, width=4, depth=depth)), {})).model
    if branches is not None:
        with torch.no_grad():
            for block in model.blocks:
                block.first.weight *= (branches / (3 * depth)) ** -0.5
    return model


def updates(model: nn.Module, steps: int = 6) -> list[float]:
    """By how much the outputs change in each of some steps."""
    inputs, targets = random_numbers(32, 1, 8, 8), random_integers(4, 32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    outputs, changes = [model(inputs).detach()], []
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        outputs.append(model(inputs).detach())
        changes.append(float((outputs[-1] - outputs[-2]).abs().mean()))
    return changes


def test_branches_and_outputs_are_zero_at_the_beginning() -> None:
    model = begun(fixup.apply(images(), {})).model
    branches = residuals(model)
    assert len(branches) == 3
    for branch in branches.values():
        x = random_numbers(2, branch.first.in_channels, 8, 8)
        assert branch.residual(x).abs().max() == 0.0
        assert torch.equal(branch(x), branch.shortcut(x))
    assert model(random_numbers(5, 1, 8, 8)).abs().max() == 0.0


def test_the_size_of_an_update_does_not_grow_with_depth() -> None:
    shallow, much_deeper = updates(deep(1)), updates(deep(32))
    for one, other in zip(shallow, much_deeper, strict=True):
        assert 0.5 < other / one < 1.5
    unscaled = updates(deep(32, branches=1))
    assert unscaled[-1] / shallow[-1] > 3.0  # what the scaling is there for


def test_other_weights_are_the_baselines_times_a_power_of_the_number_of_branches() -> None:
    plain, fixed = begun(images()).model, begun(fixup.apply(images(), {})).model
    for before, after in zip(plain.blocks, fixed.blocks, strict=True):
        torch.testing.assert_close(after.first.weight, before.first.weight * 3**-0.5)
    assert torch.equal(plain.embed.weight, fixed.embed.weight)
    assert torch.equal(plain.blocks[1].projection.weight, fixed.blocks[1].projection.projection.weight)

    known = {each.name: each for each in (fixup, depthwise_separable_conv)}
    both, order = compose(images(), {name: {} for name in known}, known)
    assert order == ["depthwise_separable_conv", "fixup"]  # so that a branch has four layers
    apart = begun(depthwise_separable_conv.apply(images(), {})).model.blocks[0]
    block = begun(both).model.blocks[0]
    torch.testing.assert_close(block.first[0].weight, apart.first[0].weight * 3 ** (-1 / 6))
    assert block.last[0].weight.abs().min() > 0.0
    assert block.last[1].weight.abs().max() == 0.0


def test_there_is_no_norm_but_a_scalar_before_each_convolution_and_activation() -> None:
    model = begun(fixup.apply(images(), {})).model
    kinds = [type(module) for module in model.modules()]
    assert nn.BatchNorm2d not in kinds
    assert kinds.count(FixupBlock) == kinds.count(Scale) == 3
    assert kinds.count(Shift) == 4 * 3 + 2 + 2  # two projections; in the head one before the activation, one at the end
    block, x = model.blocks[1], random_numbers(2, 4, 8, 8)
    scalars = [*(s for s in block.modules() if isinstance(s, Shift)), block.scale]
    with torch.no_grad():
        block.last.weight.normal_()
        for number, scalar in enumerate(scalars):
            next(scalar.parameters()).fill_(0.1 * (number + 1))
    a, b, c, d, e, s = (0.1**0.5 * 0.1 * (number + 1) for number in range(6))
    inside = block.first((x + a).relu() + b)
    expected = block.projection.projection(x + e) + (1 + s) * block.last((inside + c).relu() + d)
    torch.testing.assert_close(block(x), expected)


def test_scalars_learn_at_a_tenth_of_the_rate() -> None:
    shift, rate = Shift(), 0.5
    shift(torch.zeros(1)).backward()
    before = shift(torch.zeros(1)).detach()
    with torch.no_grad():
        shift.bias -= rate * shift.bias.grad
    assert float((before - shift(torch.zeros(1))).detach()) == pytest.approx(0.1 * rate)


def test_all_weights_learn_at_any_resolution() -> None:
    recipe = fixup.apply(images(), {})
    before, training = state(begun(recipe).model), run(recipe, 8)
    after = state(training.model)
    assert not [name for name in before if torch.equal(before[name], after[name])]
    assert training.model(random_numbers(2, 1, 5, 5)).shape == (2, 4)


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="this model has none"):
        fixup.apply(tokens(), {})
    known = {each.name: each for each in (fixup, kaiming_xavier)}
    with pytest.raises(Conflict, match="draw the weights anew"):
        compose(images(), {name: {} for name in known}, known)
