import pytest
import torch
from torch import nn

from effbench.errors import InvalidTechnique, NotApplicable
from effbench_techniques.model_centric.compression.qat_fake_quant import (
    Quantised,
    qat_fake_quant,
    rounded_inputs,
    rounded_weights,
)
from toy import images, random_numbers, run, same, tokens, vectors


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("rounded", [rounded_weights, rounded_inputs])
def test_rounding_twice_is_rounding_once_and_errs_by_half_a_step_at_most(rounded, bits: int) -> None:
    x = random_numbers(6, 50) + 0.3
    once = rounded(x, bits)
    torch.testing.assert_close(rounded(once, bits), once, rtol=1e-4, atol=1e-6)
    if rounded is rounded_weights:
        steps = x.abs().amax(1, keepdim=True) / (2 ** (bits - 1) - 1)
        assert all(len(row.unique()) <= 2**bits - 1 for row in once)
    else:
        steps = ((x.max() - x.min()) / (2**bits - 1)).expand(6, 1)
        assert len(once.unique()) <= 2**bits
    inside = 1.01 if rounded is rounded_weights else 2.02  # the ends move by up to half a step, for zero's sake
    assert ((once - x).abs() <= inside * steps / 2).all()
    assert (once - x).abs().max() > 0.2 * steps.max()
    assert rounded(torch.zeros(3, 4), bits).abs().max() == 0.0


def test_the_gradient_goes_through_as_if_there_were_no_rounding() -> None:
    for rounded in (rounded_weights, rounded_inputs):
        x = random_numbers(6, 50).requires_grad_()
        factor = random_numbers(50, 6).T
        (rounded(x, 8) * factor).sum().backward()
        same_slope = (x.grad == factor).float().mean()
        assert same_slope > 0.99  # but for what is cut off at an end
        assert ((x.grad == factor) | (x.grad == 0)).all()


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Linear(12, 20), (5, 12)),
        (nn.Conv2d(6, 10, 3, stride=2, padding=1), (2, 6, 9, 9)),
        (nn.Conv1d(6, 10, 5, padding=2), (2, 6, 12)),
    ],
)
def test_a_layer_computes_with_rounded_weights_and_inputs(layer, shape) -> None:
    x = random_numbers(*shape)
    found = Quantised(layer, 4)(x)
    with torch.no_grad():
        expected = torch.func.functional_call(
            layer, {"weight": rounded_weights(layer.weight, 4)}, (rounded_inputs(x, 4),)
        )
    torch.testing.assert_close(found, expected)
    assert not torch.allclose(found, layer(x), atol=1e-3)
    torch.testing.assert_close(Quantised(layer, 8)(x), layer(x), rtol=0, atol=0.1)


def test_from_its_start_on_hidden_layers_round_and_optimizers_go_on() -> None:
    kinds, ages = [], []

    def look(training) -> None:
        layer = training.model.blocks[0].attention.qkv
        kinds.append(type(layer))
        ages.append(int(training.optimizer.state[layer.weight]["step"]))

    training = run(qat_fake_quant.apply(tokens(), {"start": 0.4}), 10, look=look)
    assert kinds == [nn.Linear] * 4 + [Quantised] * 6
    assert ages == list(range(1, 11))
    assert sum(isinstance(module, Quantised) for module in training.model.modules()) == 8
    assert type(training.model.head.output) is nn.Linear


def test_fewer_bits_compute_something_else_more() -> None:
    plain = run(tokens(), 5).model
    ids, errors = tokens().dataset.inputs[:4], []
    for bits in (8, 4, 2):
        training = run(qat_fake_quant.apply(tokens(), {"bits": bits, "start": 0.9}), 5)
        with torch.no_grad():
            errors.append(float((training.model(ids) - plain(ids)).abs().mean()))
    assert errors[0] == 0.0  # 0.9 lies behind the beginning of the last of five steps
    errors.clear()
    for bits in (8, 4, 2):
        training = run(qat_fake_quant.apply(tokens(), {"bits": bits, "start": 0.8}), 5)
        with torch.no_grad():
            errors.append(float((training.model(ids) - plain(ids)).abs().mean()))
    assert 0.0 < errors[0] < errors[1] < errors[2]


def test_no_bits_are_the_baseline_and_four_are_not() -> None:
    baseline = run(images(), 6)
    assert same(run(qat_fake_quant.apply(images(), {"bits": 0}), 6).model, baseline.model)
    trained = run(qat_fake_quant.apply(images(), {"bits": 4}), 6).model
    assert trained.state_dict().keys() != baseline.model.state_dict().keys()


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="no layer"):
        qat_fake_quant.apply(vectors(model=lambda: nn.Linear(6, 4)), {})
    for options in ({"bits": 1}, {"bits": 9}, {"start": 1.0}):
        with pytest.raises(InvalidTechnique, match=f"{next(iter(options))} is"):
            qat_fake_quant.apply(vectors(), options)
