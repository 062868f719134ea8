import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from effbench.errors import NotApplicable
from effbench.models import residuals
from effbench.techniques import compose
from effbench_techniques.model_centric.architecture.depthwise_separable_conv import (
    depthwise_separable_conv,
    separable,
    separated,
)
from effbench_techniques.model_centric.initialization.zero_init_residual import zero_init_residual
from toy import begun, images, random_numbers, run, tokens


def flop(layer, x) -> int:
    with FlopCounterMode(display=False) as counter:
        layer(x)
    return counter.get_total_flops()


@pytest.mark.parametrize(("wide", "kernel", "stride"), [(32, 3, 1), (20, 5, 2), (8, 3, 2)])
def test_multiplications_are_one_nth_and_one_kth_squared(wide: int, kernel: int, stride: int) -> None:
    layer, x = nn.Conv2d(12, wide, kernel, stride, padding=kernel // 2), random_numbers(2, 12, 16, 16)
    made = separated(layer)
    assert made(x).shape == layer(x).shape
    assert flop(made, x) / flop(layer, x) == pytest.approx(1 / wide + 1 / kernel**2)


def test_outputs_are_as_large_as_those_of_the_layer_replaced() -> None:
    torch.manual_seed(0)
    layer, x = nn.Conv2d(64, 64, 3, padding=1, bias=False), torch.randn(4, 64, 16, 16)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out")
    assert float(separated(layer)(x).detach().std()) == pytest.approx(float(layer(x).detach().std()), rel=0.1)


def test_each_channel_is_looked_at_by_itself_and_then_mixed() -> None:
    made, x = separated(nn.Conv2d(3, 5, 3, padding=1, bias=True)), random_numbers(1, 3, 6, 6)
    alone = torch.cat(
        [nn.functional.conv2d(x[:, i : i + 1], made[0].weight[i : i + 1], padding=1) for i in range(3)], 1
    )
    mixed = torch.einsum("oc,bchw->bohw", made[1].weight[:, :, 0, 0], alone)
    torch.testing.assert_close(made(x), mixed + made[1].bias[:, None, None])


def test_the_stem_and_what_sees_one_pixel_stay() -> None:
    assert set(separable(images().model())) == {f"blocks.{i}.{name}" for i in range(3) for name in ("first", "last")}
    model = begun(depthwise_separable_conv.apply(images(), {})).model
    plain = begun(images()).model
    assert torch.equal(model.embed.weight, plain.embed.weight)
    assert torch.equal(model.blocks[1].projection.weight, plain.blocks[1].projection.weight)
    assert sum(w.numel() for w in model.parameters()) < 0.5 * sum(w.numel() for w in plain.parameters())


def test_branches_still_begin_at_zero_and_learn() -> None:
    known = {each.name: each for each in (depthwise_separable_conv, zero_init_residual)}
    recipe, order = compose(images(), {"zero_init_residual": {}, "depthwise_separable_conv": {}}, known)
    assert order == ["depthwise_separable_conv", "zero_init_residual"]
    branch = next(iter(residuals(begun(recipe).model).values()))
    x = random_numbers(2, 4, 8, 8)
    assert torch.equal(branch(x), branch.shortcut(x))
    trained = next(iter(residuals(run(recipe, 4).model).values()))
    assert trained.last[1].weight.abs().max() > 0


def test_it_refuses_a_model_without_convolutions() -> None:
    with pytest.raises(NotApplicable, match="no convolution"):
        depthwise_separable_conv.apply(tokens(), {})
