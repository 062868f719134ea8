"""What techniques may count on in every standard model, and what makes each family what it is."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import nn

from effbench.models import (
    Network,
    Residual,
    bert,
    cnn1d,
    gpt,
    mlp,
    residuals,
    resnet,
    switch_gpt,
    text_classifier,
    vit,
)

torch.set_num_threads(1)


def images(batch: int = 3, resolution: int = 16) -> torch.Tensor:
    return torch.randn(batch, 1, resolution, resolution, generator=torch.Generator().manual_seed(0))


def series(batch: int = 3) -> torch.Tensor:
    return torch.randn(batch, 1, 40, generator=torch.Generator().manual_seed(0))


def tokens(batch: int = 3, length: int = 64, vocabulary: int = 80) -> torch.Tensor:
    return torch.randint(vocabulary, (batch, length), generator=torch.Generator().manual_seed(0))


# family -> how to make it, what it takes, the shape of what it gives, parameters, residual branches
FAMILIES = {
    "mlp": (lambda: mlp(40, 10), series, (3, 10), 144_650, 0),
    "cnn1d": (cnn1d, series, (3, 10), 5_210, 0),
    "resnet": (resnet, images, (3, 10), 19_714, 3),
    "vit": (vit, images, (3, 10), 86_986, 6),
    "gpt": (lambda: gpt(80), tokens, (3, 64, 80), 109_312, 4),
    "switch_gpt": (lambda: switch_gpt(80), tokens, (3, 64, 80), 208_832, 4),
    "bert": (lambda: bert(80), tokens, (3, 64, 80), 113_680, 4),
    "text_classifier": (lambda: text_classifier(80, 7, length=64), tokens, (3, 7), 109_895, 4),
}


@pytest.fixture(params=FAMILIES)
def family(request):
    make, inputs, shape, parameters, branches = FAMILIES[request.param]
    return seeded(make), inputs(), shape, parameters, branches


def seeded(make) -> nn.Module:
    torch.manual_seed(0)
    return make()


def awake(model: nn.Module) -> nn.Module:
    """Move all parameters away from where they start, so that zeros and ones hide nothing."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return model


def test_outputs_and_size(family):
    model, inputs, shape, parameters, _ = family
    outputs = model(inputs)
    assert outputs.shape == shape
    assert outputs.dtype == torch.float32
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


def test_forward_is_embed_then_blocks_then_head(family):
    model, inputs, *_ = family
    assert isinstance(model, Network)
    model.eval()
    features = model.embed(inputs)
    for block in model.blocks:
        features = block(features)
    assert torch.equal(model.head(features), model(inputs))
    assert {name.partition(".")[0] for name, _ in model.named_parameters()} <= {"embed", "blocks", "head"}


def test_every_parameter_gets_a_gradient(family):
    model, inputs, *_ = family
    model(inputs).square().sum().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []


@pytest.mark.parametrize("name", FAMILIES)
def test_a_seed_gives_the_same_weights(name):
    one, other = (seeded(FAMILIES[name][0]) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_a_residual_block_adds_its_branch_to_the_shortcut(family):
    model, inputs, _, _, branches = family
    awake(model).eval()
    found = residuals(model)
    assert len(found) == branches
    seen = {}
    for name, module in model.named_modules():
        if name in found:
            module.register_forward_hook(lambda m, args, out, name=name: seen.update({name: (m, args[0], out)}))
    model(inputs)
    assert list(seen) == list(found)  # in the order in which they are called
    for module, x, out in seen.values():
        torch.testing.assert_close(module.shortcut(x) + module.residual(x), out, rtol=0, atol=0)


def test_zeros_in_the_last_module_silence_the_branch(family):
    model, inputs, *_ = family
    awake(model).eval()
    for branch in residuals(model).values():
        for parameter in branch.last.parameters():
            nn.init.zeros_(parameter)
    features = model.embed(inputs)
    for block in model.blocks:
        for branch in residuals(block).values():
            assert not branch.residual(features).any()
            features = branch.shortcut(features)
    if residuals(model):
        torch.testing.assert_close(model.head(features), model(inputs), rtol=0, atol=0)


def test_blocks_of_one_shape_can_be_stacked(family):
    model, inputs, shape, *_ = family
    if any(isinstance(module, nn.Conv1d | nn.Conv2d) for module in model.blocks.modules()):
        pytest.skip("its blocks halve the length or the resolution")
    grown = copy.deepcopy(model)
    grown.blocks.extend(copy.deepcopy(list(model.blocks)))
    assert grown(inputs).shape == shape
    assert not torch.equal(grown(inputs), model(inputs))


def test_what_is_no_residual_is_not_taken_for_one():
    assert not isinstance(nn.Linear(2, 2), Residual)
    assert residuals(nn.Sequential(nn.Linear(2, 2), nn.ReLU())) == {}


def test_attention_can_be_exchanged_for_another_kind():
    class Uniform(nn.Module):
        def forward(self, q, k, v):
            assert q.shape == k.shape == v.shape == (3, 4, 64, 16)
            return v.mean(2, keepdim=True).expand_as(v)

    model = awake(gpt(80))
    before = model(tokens())
    for block in model.blocks:
        block.attention.attend = Uniform()
    assert (model(tokens()) - before).abs().max() > 1e-3


def test_gpt_sees_nothing_of_the_future():
    model = awake(gpt(80))
    ids = tokens()
    changed = ids.clone()
    changed[:, 40] = (ids[:, 40] + 1) % 80
    before, after = model(ids), model(changed)
    assert torch.equal(before[:, :40], after[:, :40])
    assert (before[:, 40:] - after[:, 40:]).abs().amax((0, 2)).gt(1e-6).all()


@pytest.mark.parametrize("make", [bert, lambda vocabulary: text_classifier(vocabulary, 7, length=64)])
def test_bert_sees_the_future_too(make):
    model = awake(make(80))
    ids = tokens()
    changed = ids.clone()
    changed[:, 63] = (ids[:, 63] + 1) % 80
    assert (model(ids) - model(changed)).abs().flatten(1).amax(1).gt(1e-6).all()


@pytest.mark.parametrize("make", [gpt, bert])
def test_a_language_model_knows_nothing_at_first(make):
    torch.manual_seed(0)
    ids = tokens(32)
    loss = nn.functional.cross_entropy(make(80)(ids).flatten(0, 1), ids.flatten().roll(1)).item()
    assert math.log(80) - 0.01 < loss < math.log(80) + 0.2  # logits of standard deviation 0.55 cost 0.15


@pytest.mark.parametrize("make", [gpt, bert, lambda vocabulary: text_classifier(vocabulary, 7, length=64)])
def test_sequences_may_be_shorter_and_not_longer(make):
    model = awake(make(80))
    assert model(tokens(length=17)).shape[0] == 3
    with pytest.raises(ValueError, match="the model has 64 positions, and was given 65 tokens"):
        model(tokens(length=65))


def test_a_short_sequence_is_the_beginning_of_a_long_one():
    model = awake(gpt(80))
    torch.testing.assert_close(model(tokens()[:, :20]), model(tokens())[:, :20], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make", [gpt, bert])
def test_output_layer_and_token_embedding_are_one(make):
    model = make(80)
    assert model.head.output.weight is model.embed.tokens.weight
    assert copy.deepcopy(model).head.output.weight.data_ptr() != model.embed.tokens.weight.data_ptr()
    twin = copy.deepcopy(model)
    assert twin.head.output.weight is twin.embed.tokens.weight


@pytest.mark.parametrize(("width", "std"), [(768, 0.02), (192, 0.04)])
def test_weights_of_a_gpt_start_as_those_of_gpt2_scaled_to_its_width(width, std):
    torch.manual_seed(0)
    model = gpt(80, width=width, depth=8)
    for block in model.blocks:
        assert block.attention.qkv.weight.std().item() == pytest.approx(std, rel=0.02)
        assert block.feed_forward.last.weight.std().item() == pytest.approx(std / 4, rel=0.02)
        assert block.attention.last.weight.std().item() == pytest.approx(std / 4, rel=0.02)
        assert not block.attention.qkv.bias.any()


def test_neighbouring_positions_of_a_bert_are_rotations_of_one_another():
    positions = bert(80).embed.positions.weight.detach()
    assert positions.square().mean().sqrt().item() == pytest.approx(0.02 * math.sqrt(768 / 64), rel=1e-4)
    nearness = positions @ positions.T
    for distance in (1, 5, 30):
        along = nearness.diagonal(distance)
        torch.testing.assert_close(along, along[:1].expand_as(along), rtol=1e-3, atol=1e-5)
    assert nearness[0, 0] > nearness[0, 1] > nearness[0, 2] > nearness[0, 5]


@pytest.mark.parametrize("resolution", [8, 16, 28, 33])
def test_resnet_takes_any_resolution(resolution):
    model = resnet()
    assert model(images(resolution=resolution)).shape == (3, 10)


def test_resnet_of_depth_one_has_eight_layers():
    layers = [m for m in resnet().modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len([m for m in layers if getattr(m, "kernel_size", None) != (1, 1)]) == 8


def test_resnet_of_depth_two_has_blocks_that_can_be_stacked():
    model = resnet(depth=2)
    model.blocks.insert(2, copy.deepcopy(model.blocks[1]))
    assert model(images()).shape == (3, 10)


def test_patches_of_a_vit_are_cut_row_by_row():
    model = vit()
    with torch.no_grad():
        model.embed.positions.zero_()
    one = torch.zeros(1, 1, 16, 16)
    one[0, 0, 4:8, 8:12] = 1.0  # second row, third column
    difference = model.embed(one) - model.embed(torch.zeros_like(one))
    assert difference.abs().amax((0, 2)).nonzero().flatten().tolist() == [4 + 2]
    expected = model.embed.patches.weight.sum((1, 2, 3))
    torch.testing.assert_close(difference[0, 6], expected)


def test_patches_must_tile_the_image():
    with pytest.raises(ValueError, match="patches of 5 pixels do not tile images of 16 x 16"):
        vit(patch=5)
