import pytest
import torch
from torch import nn

from effbench.errors import NotApplicable
from effbench_techniques.model_centric.architecture.rmsnorm import rmsnorm, without_mean
from toy import begun, images, masked_tokens, random_numbers, run, same, tokens


def test_on_numbers_of_mean_zero_it_is_layernorm() -> None:
    x = random_numbers(5, 7, 16)
    x = x - x.mean(-1, keepdim=True)
    norm = nn.LayerNorm(16)
    nn.init.uniform_(norm.weight, 0.5, 2.0)
    torch.testing.assert_close(without_mean(norm)(x), norm(x), rtol=0, atol=1e-5)
    assert not torch.allclose(without_mean(norm)(x + 1.0), norm(x + 1.0), atol=1e-2)


def test_it_divides_by_the_root_of_the_mean_square() -> None:
    x = random_numbers(3, 16)
    found = without_mean(nn.LayerNorm(16, eps=1e-3))(x)
    for i in range(3):
        mean_square = sum(float(e) ** 2 for e in x[i]) / 16
        torch.testing.assert_close(found[i], x[i] / (mean_square + 1e-3) ** 0.5)


def test_shape_affinity_and_epsilon_stay() -> None:
    made = without_mean(nn.LayerNorm((2, 3), eps=0.5, elementwise_affine=False))
    assert (made.normalized_shape, made.eps, made.weight) == ((2, 3), 0.5, None)


@pytest.mark.parametrize("make", [tokens, masked_tokens])
def test_every_layernorm_of_a_model_goes_and_the_other_weights_stay(make) -> None:
    model, plain = begun(rmsnorm.apply(make(), {})).model, begun(make()).model
    norms = sum(isinstance(module, nn.LayerNorm) for module in plain.modules())
    assert sum(isinstance(module, nn.RMSNorm) for module in model.modules()) == norms > 0
    assert not any(isinstance(module, nn.LayerNorm) for module in model.modules())
    theirs = plain.state_dict()
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in model.state_dict().items())
    assert len(theirs) - len(model.state_dict()) == norms  # their biases


def test_gains_do_not_decay_and_learn() -> None:
    training = run(rmsnorm.apply(tokens(), {}), 3)
    gain = training.model.blocks[0].attention.norm.weight
    (group,) = [group for group in training.optimizer.param_groups if any(gain is weight for weight in group["params"])]
    assert group["weight_decay"] == 0.0
    assert not torch.equal(gain, torch.ones(8))
    assert not same(training.model, run(tokens(), 3).model)


def test_it_refuses_a_model_without_layernorms() -> None:
    with pytest.raises(NotApplicable, match="this model has none"):
        rmsnorm.apply(images(), {})


def test_under_autocast_the_gain_is_taken_in_the_precision_of_the_input() -> None:
    norm = without_mean(nn.LayerNorm(8))
    x = torch.randn(4, 8, dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = norm(x)  # torch warns where the two differ, and a warning is an error here
    assert found.dtype is torch.bfloat16
    torch.testing.assert_close(found.float(), norm(x.float()), rtol=2e-2, atol=2e-2)
