import pytest
import torch

from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models import Residual, gpt
from effbench_techniques.model_centric.architecture.glu_ffn import glu_ffn
from toy import VOCABULARY, begun, images, masked_tokens, random_numbers, run, tokens


def size(module) -> int:
    return sum(weight.numel() for weight in module.parameters())


@pytest.mark.parametrize("width", [16, 48, 64, 100, 256])
def test_it_has_as_many_parameters_as_the_baseline(width: int) -> None:
    recipe = tokens(model=lambda: gpt(VOCABULARY, length=4, width=width, depth=1, heads=2))
    ours, theirs = (begun(each).model.blocks[0].feed_forward for each in (glu_ffn.apply(recipe, {}), recipe))
    assert size(ours) == pytest.approx(size(theirs), rel=0.01)


@pytest.mark.parametrize(
    ("gate", "function"),
    [
        ("silu", lambda x: x / (1 + (-x).exp())),
        ("gelu", lambda x: 0.5 * x * (1 + torch.erf(x / 2**0.5))),
        ("sigmoid", lambda x: 1 / (1 + (-x).exp())),
    ],
)
def test_one_half_says_how_much_of_the_other_gets_through(gate: str, function) -> None:
    layer = begun(glu_ffn.apply(masked_tokens(), {"gate": gate})).model.blocks[0].feed_forward
    x = random_numbers(2, 5, 8)
    hidden = layer.norm(x) @ layer.first.weight.T + layer.first.bias
    half = hidden.shape[-1] // 2
    expected = x + (hidden[..., :half] * function(hidden[..., half:])) @ layer.last.weight.T + layer.last.bias
    torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-5)


def test_weights_are_as_large_as_those_replaced_and_all_others_are_the_baselines() -> None:
    recipe = tokens(model=lambda: gpt(VOCABULARY, length=4, width=64, depth=2, heads=2))
    ours, theirs = begun(glu_ffn.apply(recipe, {})).model, begun(recipe).model
    for name in ("first", "last"):
        one, other = (getattr(model.blocks[1].feed_forward, name).weight.detach().std() for model in (ours, theirs))
        assert float(one) == pytest.approx(float(other), rel=0.05)
    plain = theirs.state_dict()
    for name, tensor in ours.state_dict().items():
        assert ".first." in name or ".last.weight" in name or torch.equal(tensor, plain[name])


def test_it_trains_and_stays_a_residual_branch() -> None:
    training = run(glu_ffn.apply(tokens(), {}), 4)
    layer = training.model.blocks[0].feed_forward
    assert isinstance(layer, Residual)
    assert layer.last.weight.isfinite().all()
    x = random_numbers(2, 3, 8)
    torch.testing.assert_close(layer(x), layer.shortcut(x) + layer.residual(x))


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="this model has none"):
        glu_ffn.apply(images(), {})
    with pytest.raises(InvalidTechnique, match="gate is 'relu'"):
        glu_ffn.apply(tokens(), {"gate": "relu"})
