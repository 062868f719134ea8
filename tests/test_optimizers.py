"""Weight decay where it belongs, and several optimizers as one."""

from __future__ import annotations

import copy
import io

import pytest
import torch
from torch import nn
from torch.optim import AdamW, Muon

from effbench.models import gpt
from effbench.optimizers import (
    Together,
    adamw,
    clipped_step,
    decay_groups,
    sgd,
)
from effbench.recipe import Training

torch.set_num_threads(1)


class Everything(nn.Module):
    """One layer of each kind that decay must tell apart."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.convolution = nn.Conv2d(2, 2, 3)
        self.layer_norm = nn.LayerNorm((2, 3))  # a norm whose weight is a matrix
        self.batch_norm = nn.BatchNorm2d(2)
        self.embedding = nn.Embedding(5, 4)
        self.gain = nn.Parameter(torch.ones(3))
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.bias = nn.Parameter(torch.ones(2, 2))  # as the table of relative positions in attention
        self.tied = nn.Linear(4, 5, bias=False)
        self.tied.weight = self.embedding.weight


DECAYS = {"linear.weight", "convolution.weight", "embedding.weight"}


@pytest.mark.parametrize("factory", [adamw(0.1, 0.5), sgd(0.1, 0.9, 0.5)])
def test_decay_shrinks_matrices_and_nothing_else(factory):
    model = Everything()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(0.5, 1.5)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizer = factory(model)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, parameter in model.named_parameters():
        factor = 0.95 if name in DECAYS else 1.0
        # In SGD decay is part of the gradient, which Nesterov's momentum counts 1.9 times at first.
        if isinstance(optimizer, torch.optim.SGD) and name in DECAYS:
            factor = 1 - 0.1 * 0.5 * 1.9
        torch.testing.assert_close(parameter.detach(), before[name] * factor, rtol=1e-6, atol=0)


def test_every_parameter_is_in_one_group_once():
    model = Everything()
    grouped = [p for group in decay_groups(model, 0.5) for p in group["params"]]
    assert len(grouped) == len(set(grouped)) == len(list(model.parameters())) == 12
    assert set(grouped) == set(model.parameters())


def test_what_is_shared_with_a_norm_does_not_decay():
    norm = nn.LayerNorm((3, 3))
    linear = nn.Linear(3, 3, bias=False)
    linear.weight = norm.weight
    for model in (nn.Sequential(norm, linear), nn.Sequential(linear, norm)):
        groups = decay_groups(model, 0.5)
        assert [group["weight_decay"] for group in groups] == [0.0]


def test_the_output_layer_of_a_gpt_decays_once():
    model = gpt(50)
    decaying, rest = decay_groups(model, 0.1)
    assert sum(p is model.embed.tokens.weight for p in decaying["params"]) == 1
    assert all(p.ndim == 1 for p in rest["params"])
    assert len(decaying["params"]) == 2 + 2 * 4  # two embeddings; qkv, last, first, last in each block


def test_a_long_gradient_is_scaled_and_a_short_one_is_not():
    for gradient, moved in ((torch.tensor([3.0, 4.0]), [0.6, 0.8]), (torch.tensor([0.3, 0.4]), [0.3, 0.4])):
        model = nn.Linear(2, 1, bias=False)
        nn.init.zeros_(model.weight)
        model.weight.grad = gradient[None].clone()
        training = Training(
            recipe=None,
            model=model,
            forward=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
            rng=torch.Generator(),
            order=torch.Generator(),
            epoch_examples=1,
        )
        clipped_step(1.0)(training)
        torch.testing.assert_close(model.weight.detach()[0], -torch.tensor(moved), rtol=1e-5, atol=1e-6)
        assert model.weight.grad is None


def two_layers(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4))


def members_of(model: nn.Sequential) -> tuple[Muon, AdamW]:
    matrices = [p for p in model.parameters() if p.ndim == 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    return Muon(matrices, lr=0.02), AdamW(vectors, lr=0.003)


def train(model: nn.Module, step, zero_grad, steps: int, seed: int = 1) -> None:
    inputs = torch.randn(steps, 8, 6, generator=torch.Generator().manual_seed(seed))
    for batch in inputs:
        model(batch).square().mean().backward()
        step()
        zero_grad()


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_together_steps_as_its_members_would_alone():
    apart, joined = two_layers(), two_layers()
    muon, adam = members_of(apart)
    together = Together(*members_of(joined))
    train(apart, lambda: (muon.step(), adam.step()), lambda: (muon.zero_grad(), adam.zero_grad()), 5)
    train(joined, together.step, together.zero_grad, 5)
    assert same_weights(apart, joined)
    assert not same_weights(joined, two_layers())


def test_rates_set_on_together_are_its_members():
    model = two_layers()
    together = Together(*members_of(model))
    for group in together.param_groups:
        group["lr"] = group["weight_decay"] = 0.0
    train(model, together.step, together.zero_grad, 3)
    assert same_weights(model, two_layers())
    assert [len(group["params"]) for group in together.param_groups] == [2, 2]


def through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    return torch.load(io.BytesIO(file.getvalue()), weights_only=True)


def test_together_is_saved_and_loaded_and_then_goes_on_as_before():
    straight, stopped = two_layers(), two_layers()
    one, first = Together(*members_of(straight)), Together(*members_of(stopped))
    for model, optimizer in ((straight, one), (stopped, first)):
        train(model, optimizer.step, optimizer.zero_grad, 3)
    first.param_groups[0]["lr"] = one.param_groups[0]["lr"] = 0.01
    resumed = two_layers(seed=9)
    resumed.load_state_dict(stopped.state_dict())
    second = Together(*members_of(resumed))
    second.load_state_dict(through_a_file(first.state_dict()))
    for model, optimizer in ((straight, one), (resumed, second)):
        train(model, optimizer.step, optimizer.zero_grad, 4, seed=2)
    assert same_weights(straight, resumed)
    for member in second.members:
        assert all(member.state[p] is second.state[p] for g in member.param_groups for p in g["params"])
        assert all(any(g is group for group in second.param_groups) for g in member.param_groups)


def test_a_copy_of_together_steps_its_own_parameters():
    model = two_layers()
    together = Together(*members_of(model))
    train(model, together.step, together.zero_grad, 2)
    twin, copied = copy.deepcopy((model, together))
    train(twin, copied.step, copied.zero_grad, 3, seed=2)
    train(model, together.step, together.zero_grad, 3, seed=2)
    assert same_weights(model, twin)
    assert copied.state[twin[0].weight] is not together.state[model[0].weight]


def test_together_runs_a_closure_once():
    model = two_layers()
    together = Together(*members_of(model))
    calls = []

    def closure() -> float:
        calls.append(torch.is_grad_enabled())
        loss = model(torch.ones(2, 6)).square().mean()
        loss.backward()
        return loss.item()

    expected = model(torch.ones(2, 6)).square().mean().item()
    with torch.no_grad():
        assert together.step(closure) == expected
    assert calls == [True]
    assert not same_weights(model, two_layers())


def test_together_refuses_what_it_cannot_place():
    model = two_layers()
    with pytest.raises(ValueError, match="belongs to two optimizers"):
        Together(AdamW(model.parameters()), AdamW(model[0].parameters()))
    with pytest.raises(TypeError, match="build its members with them"):
        Together(*members_of(model)).add_param_group({"params": [nn.Parameter(torch.ones(2))]})
