import pytest
import torch
from torch import nn

from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models import mlp
from effbench.models.hidden import hidden_layers
from effbench_techniques.model_centric.initialization.kaiming_xavier import kaiming_xavier
from toy import begun, images, run, tokens, vectors


def signal(options, depth: int = 6, activation: bool = True) -> list[float]:
    """The ratio of the mean squares of what goes out of and into each hidden layer of 1024 units."""
    recipe = kaiming_xavier.apply(vectors(model=lambda: mlp(1024, 4, width=1024, depth=depth)), options)
    torch.manual_seed(0)
    model, ratios = recipe.model(), []
    x = torch.randn(64, 1024)
    x = x.relu() if activation else x
    for block in model.blocks:
        y = block(x) if activation else block.linear(x)
        ratios.append(float((y.square().mean() / x.square().mean()).detach()))
        x = y.detach()
    return ratios


def test_the_signal_neither_grows_nor_fades() -> None:
    assert signal({}) == pytest.approx([1.0] * 5, abs=0.1)
    assert signal({"scheme": "xavier"}, activation=False) == pytest.approx([1.0] * 5, abs=0.1)


def test_weights_of_the_wrong_size_are_the_control() -> None:
    assert signal({"scale": 3.0}) == pytest.approx([9.0] * 5, rel=0.1)
    assert signal({"scale": 1 / 3}) == pytest.approx([1 / 9] * 5, rel=0.1)


@pytest.mark.parametrize("make", [images, tokens])
def test_hidden_layers_are_drawn_anew_and_all_others_are_the_baselines(make) -> None:
    ours, plain = begun(kaiming_xavier.apply(make(), {})).model, begun(make()).model
    hidden = {f"{name}.weight" for name in hidden_layers(plain)}
    for name, tensor in plain.state_dict().items():
        assert torch.equal(tensor, ours.state_dict()[name]) == (name not in hidden), name
    one, other = (begun(kaiming_xavier.apply(make(), {})).model for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_hidden_biases_start_at_zero_and_it_trains() -> None:
    assert all(
        (layer.bias == 0).all() for layer in hidden_layers(begun(kaiming_xavier.apply(vectors(), {})).model).values()
    )
    assert all(weight.isfinite().all() for weight in run(kaiming_xavier.apply(tokens(), {}), 4).model.parameters())


def test_it_says_why_it_does_not_apply() -> None:
    with pytest.raises(NotApplicable, match="no layer"):
        kaiming_xavier.apply(vectors(model=lambda: nn.Linear(6, 4)), {})
    for options in ({"scheme": "lecun"}, {"scale": 0.0}):
        with pytest.raises(InvalidTechnique, match=f"{next(iter(options))} is"):
            kaiming_xavier.apply(vectors(), options)
