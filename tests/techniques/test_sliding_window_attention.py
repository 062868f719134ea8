import pytest
import torch

from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models import vit
from effbench.models.transformer import DotProduct
from effbench_techniques.model_centric.architecture.sliding_window_attention import Windowed, sliding_window_attention
from toy import CLASSES, begun, images, masked_tokens, random_numbers, run, same, tokens


def inputs():
    return [random_numbers(3, 2, 12, 4).roll(shift, 0).requires_grad_() for shift in range(3)]


@pytest.mark.parametrize("causal", [True, False])
def test_a_window_as_long_as_the_text_is_full_attention(causal: bool) -> None:
    q, k, v = inputs()
    full = DotProduct(causal=causal)(q, k, v)
    torch.testing.assert_close(Windowed(12, causal=causal)(q, k, v), full, rtol=0, atol=1e-6)
    assert not torch.allclose(Windowed(11, causal=causal)(q, k, v), full, rtol=0, atol=1e-6)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window", [1, 3])
def test_nothing_comes_from_outside_of_the_window(causal: bool, window: int) -> None:
    for position in (0, 5, 11):
        q, k, v = inputs()
        Windowed(window, causal=causal)(q, k, v)[:, :, position].sum().backward()
        after = 0 if causal else window - 1
        seen = [position - window < other <= position + after for other in range(12)]
        assert (v.grad.abs().sum((0, 1, 3)) > 0).tolist() == seen
        assert all(k.grad[:, :, other].abs().sum() == 0.0 for other in range(12) if not seen[other])


def test_it_is_the_softmax_over_the_window() -> None:
    q, k, v = inputs()
    found = Windowed(4, causal=True)(q, k, v)
    logits = (q[:, :, 9:10] @ k[:, :, 6:10].mT) / 2.0  # sqrt(4)
    torch.testing.assert_close(found[:, :, 9:10], logits.softmax(-1) @ v[:, :, 6:10])


def test_models_keep_their_weights_and_their_direction() -> None:
    for make, causal in ((tokens, True), (masked_tokens, False)):
        model, plain = begun(sliding_window_attention.apply(make(), {"window": 3})).model, begun(make()).model
        assert same(model, plain)
        kinds = [module for module in model.modules() if isinstance(module, Windowed)]
        assert len(kinds) == len(plain.blocks)
        assert all((kind.window, kind.causal) == (3, causal) for kind in kinds)


def test_window_zero_is_the_baseline_and_a_small_one_is_not() -> None:
    baseline = run(tokens(), 4)
    assert same(run(sliding_window_attention.apply(tokens(), {"window": 0}), 4).model, baseline.model)
    assert not same(run(sliding_window_attention.apply(tokens(), {"window": 4}), 4).model, baseline.model)


def test_it_says_why_it_does_not_apply() -> None:
    patches = images(model=lambda: vit(resolution=8, patch=2, classes=CLASSES, width=8, depth=1, heads=2))
    with pytest.raises(NotApplicable, match="is no text"):
        sliding_window_attention.apply(patches, {})
    with pytest.raises(InvalidTechnique, match="window is -1"):
        sliding_window_attention.apply(tokens(), {"window": -1})
