import math

import pytest
import torch

from effbench.errors import InvalidTechnique
from effbench.train import start
from effbench_techniques.system_centric.optimization.bf16_autocast import (
    Float32Attention,
    bf16_autocast,
    exempt_attention,
    in_float32,
)
from toy import begun, first_batch, images, masked_tokens, run, state, tokens

HALF, SINGLE = torch.bfloat16, torch.float32


def types_seen(options) -> dict[str, torch.dtype]:
    """Types of what layers return in a forward pass."""
    training = start(bf16_autocast.apply(tokens(), options), 0)
    seen: dict[str, torch.dtype] = {}
    for name, module in training.model.named_modules():
        module.register_forward_hook(lambda module, inputs, output, name=name: seen.update({name: output.dtype}))
    seen["outputs"] = training.forward(training.recipe.dataset.inputs[:2]).dtype
    return seen


def test_matrices_are_multiplied_in_bfloat16_and_norms_attention_and_outputs_are_in_float32() -> None:
    seen = types_seen({})
    assert seen["blocks.0.attention.qkv"] == seen["blocks.1.feed_forward.last"] == seen["head.output"] == HALF
    assert seen["blocks.0.attention.norm"] == seen["head.norm"] == SINGLE
    assert seen["blocks.0.attention.attend"] == SINGLE
    assert seen["outputs"] == SINGLE


def test_attention_is_in_bfloat16_where_it_is_told_to() -> None:
    assert types_seen({"float32_attention": "never"})["blocks.0.attention.attend"] == HALF
    assert types_seen({"float32_attention": "always"})["blocks.0.attention.attend"] == SINGLE


def test_weights_gradients_and_optimizer_state_stay_in_float32() -> None:
    training = run(bf16_autocast.apply(tokens(), {}))
    batch = first_batch(training.recipe, training)
    losses = training.recipe.gradient(training, batch)
    kinds = {weight.dtype for weight in training.model.parameters()}
    kinds |= {weight.grad.dtype for weight in training.model.parameters()}
    kinds |= {state["exp_avg"].dtype for state in training.optimizer.state.values()}
    assert kinds == {SINGLE}
    assert losses.dtype == SINGLE


@pytest.mark.parametrize("toy", [tokens, masked_tokens, images])
def test_the_loss_follows_that_of_float32(toy) -> None:
    curves: list[list[float]] = [[], []]
    for curve, recipe in zip(curves, (toy(), bf16_autocast.apply(toy(), {})), strict=True):
        run(recipe, 50, look=lambda training, curve=curve: curve.append(float(training.losses.mean())))
    plain, half = torch.tensor(curves)
    assert torch.isfinite(half).all()
    assert float((plain - half).abs().mean()) < 0.03
    assert float((plain - half)[-10:].mean().abs()) < 0.03
    assert not torch.equal(plain, half)


def test_what_is_evaluated_is_in_float32() -> None:
    training = run(bf16_autocast.apply(tokens(), {}))
    twin = tokens().model()
    twin.load_state_dict(training.model.state_dict())
    inputs = training.recipe.dataset.inputs[:4]
    assert torch.equal(training.recipe.eval_model(training)(inputs), twin(inputs))


def test_it_begins_with_the_baselines_weights_under_their_names() -> None:
    ours, theirs = state(start(bf16_autocast.apply(tokens(), {}), 0).model), state(start(tokens(), 0).model)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_attention_is_exempted_once() -> None:
    model = tokens().model()
    exempt_attention(model)
    exempt_attention(model)
    exempted = [module for module in model.modules() if isinstance(module, Float32Attention)]
    assert len(exempted) == 2
    assert not any(isinstance(module.attend, Float32Attention) for module in exempted)


def test_all_outputs_are_cast_wherever_they_are() -> None:
    half, whole = torch.ones(2, dtype=HALF), torch.ones(2, dtype=torch.long)
    cast = in_float32({"logits": half, "all": [half, (whole, half)], "name": "x"})
    assert cast["logits"].dtype == cast["all"][0].dtype == cast["all"][1][1].dtype == SINGLE
    assert cast["all"][1][0] is whole
    assert cast["name"] == "x"


def test_range_is_that_of_float32() -> None:
    assert math.isfinite(float(torch.tensor(-1e9, dtype=HALF)))
    assert float(torch.tensor(1e-30, dtype=HALF)) > 0
    training = begun(bf16_autocast.apply(tokens(), {}))
    with torch.no_grad():
        training.model.head.norm.weight.mul_(1e30)
    assert torch.isfinite(training.forward(training.recipe.dataset.inputs[:2])).all()


def test_it_refuses_a_place_that_it_does_not_know() -> None:
    with pytest.raises(
        InvalidTechnique, match="float32_attention is 'gpu'; it should be one of 'cpu', 'always', 'never'"
    ):
        bf16_autocast.apply(tokens(), {"float32_attention": "gpu"})
