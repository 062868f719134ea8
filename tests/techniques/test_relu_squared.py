import pytest
import torch
from torch import nn

from effbench.errors import NotApplicable
from effbench.techniques import compose
from effbench_techniques.model_centric.architecture.glu_ffn import glu_ffn
from effbench_techniques.model_centric.architecture.relu_squared import ReLUSquared, relu_squared
from toy import begun, images, masked_tokens, random_numbers, run, tokens


def test_it_is_the_square_of_what_is_positive_and_its_slope_twice_that() -> None:
    x = random_numbers(50).requires_grad_()
    y = ReLUSquared()(x)
    y.sum().backward()
    assert y.tolist() == pytest.approx([float(e) ** 2 if e > 0 else 0.0 for e in x.detach()])
    assert x.grad.tolist() == pytest.approx([2 * max(float(e), 0.0) for e in x.detach()])


@pytest.mark.parametrize("make", [tokens, masked_tokens])
def test_every_feed_forward_layer_has_it_and_no_weight_changes(make) -> None:
    model, plain = begun(relu_squared.apply(make(), {})).model, begun(make()).model
    blocks = len(plain.blocks)
    assert sum(isinstance(module, ReLUSquared) for module in model.modules()) == blocks
    heads = sum(isinstance(module, nn.GELU) for module in plain.head.modules())  # BERT's head keeps its own
    assert sum(isinstance(module, nn.GELU) for module in model.modules()) == heads
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), plain.parameters(), strict=True))


def test_a_gated_layer_stays_gated() -> None:
    known = {each.name: each for each in (glu_ffn, relu_squared)}
    recipe, order = compose(tokens(), {"relu_squared": {}, "glu_ffn": {}}, known)
    assert order == ["glu_ffn", "relu_squared"]
    layer = run(recipe, 3).model.blocks[0].feed_forward
    value, gate = layer.first(x := random_numbers(2, 3, 8)).chunk(2, dim=-1)
    torch.testing.assert_close(layer.activation(layer.first(x)), value * gate.relu().square())


def test_it_refuses_a_model_without_feed_forward_layers() -> None:
    with pytest.raises(NotApplicable, match="this model has none"):
        relu_squared.apply(images(), {})
