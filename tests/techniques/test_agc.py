import math

import pytest
import torch
from torch import nn

from effbench.errors import InvalidTechnique
from effbench_techniques.optimization_centric.large_batch.agc import agc, clip, unit_norms
from toy import images, run, same, tokens, vectors


def with_gradients(recipe, size: float) -> nn.Module:
    torch.manual_seed(0)
    model = recipe.model()
    for weight in model.parameters():
        weight.grad = size * torch.randn_like(weight)
    return model


@pytest.mark.parametrize("make", [vectors, images, tokens])
def test_no_unit_but_those_of_the_output_layer_has_a_gradient_above_the_limit(make) -> None:
    model = with_gradients(make(), 1.0)
    before = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    clip(model, limit=0.1, floor=1e-3)
    output = [module for module in model.modules() if isinstance(module, nn.Linear)][-1]
    for name, weight in model.named_parameters():
        if any(weight is spared for spared in output.parameters()):
            assert torch.equal(weight.grad, before[name])
            continue
        for unit, slope, was in zip(
            *((t.detach().flatten(1) if t.ndim > 1 else t.detach()[None]) for t in (weight, weight.grad, before[name])),
            strict=True,
        ):
            most = 0.1 * max(1e-3, float(unit.norm()))
            expected = was if was.norm() <= most else was * most / was.norm()  # as in the paper, equation 3
            torch.testing.assert_close(slope, expected, rtol=1e-5, atol=1e-8)


def test_small_gradients_stay_bit_by_bit() -> None:
    model = with_gradients(images(), 1e-9)
    before = [weight.grad.clone() for weight in model.parameters()]
    clip(model, limit=0.1, floor=1e-3)
    assert all(torch.equal(weight.grad, was) for weight, was in zip(model.parameters(), before, strict=True))


def test_a_unit_is_a_row_a_kernel_or_a_vector() -> None:
    assert unit_norms(torch.ones(5)) == pytest.approx(5**0.5)
    assert unit_norms(torch.ones(3, 4)).flatten().tolist() == [2.0] * 3
    assert unit_norms(torch.ones(2, 4, 3, 3)).shape == (2, 1, 1, 1)
    assert unit_norms(torch.ones(2, 4, 3, 3)).flatten().tolist() == [6.0] * 2


@pytest.mark.parametrize("make", [vectors, images])
def test_without_a_limit_it_is_the_baseline_and_with_one_it_is_not(make) -> None:
    baseline = run(make(), 4)
    assert same(run(agc.apply(make(), {"limit": math.inf}), 4).model, baseline.model)
    assert same(run(agc.apply(make(), {"limit": 1e9}), 4).model, baseline.model)
    assert not same(run(agc.apply(make(), {}), 4).model, baseline.model)


@pytest.mark.parametrize("options", [{"limit": 0.0}, {"limit": float("nan")}, {"floor": 0.0}])
def test_wrong_options_are_refused(options) -> None:
    with pytest.raises(InvalidTechnique, match=next(iter(options))):
        agc.apply(vectors(), options)
