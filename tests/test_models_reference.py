"""With the same weights, the models compute what `transformers`' models compute."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

from effbench.models import bert, gpt, vit

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    transformers = pytest.importorskip("transformers", reason="pip install 'effbench[tests]'")

torch.set_num_threads(1)

pytestmark = pytest.mark.filterwarnings("ignore")  # theirs


def awake(model: nn.Module) -> nn.Module:
    """Move all parameters well away from where they start, so that every one of them shows."""
    torch.manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return model.eval()


def copy_into(theirs: nn.Module, weights: dict[str, torch.Tensor], ignored: tuple[str, ...] = ()) -> None:
    """Copy weights by their names in `theirs`; every weight there must be named."""
    state = theirs.state_dict()
    assert set(weights) == {name for name in state if not name.startswith(ignored)} if ignored else set(state)
    for name, value in weights.items():
        assert state[name].shape == value.shape, name
        state[name].copy_(value)


def linear(theirs: str, ours: nn.Module) -> dict[str, torch.Tensor]:
    return {f"{theirs}.weight": ours.weight, f"{theirs}.bias": ours.bias}


@torch.no_grad()
def test_gpt_is_gpt2():
    ours = awake(gpt(80))
    config = transformers.GPT2Config(
        vocab_size=80, n_positions=64, n_embd=64, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0
    )
    theirs = transformers.GPT2LMHeadModel(config).eval()
    weights = {
        "transformer.wte.weight": ours.embed.tokens.weight,
        "transformer.wpe.weight": ours.embed.positions.weight,
        "lm_head.weight": ours.head.output.weight,
        **linear("transformer.ln_f", ours.head.norm),
    }
    for i, block in enumerate(ours.blocks):
        h = f"transformer.h.{i}"
        weights |= linear(f"{h}.ln_1", block.attention.norm) | linear(f"{h}.ln_2", block.feed_forward.norm)
        for name, layer in {  # GPT-2 stores its matrices transposed
            "attn.c_attn": block.attention.qkv,
            "attn.c_proj": block.attention.last,
            "mlp.c_fc": block.feed_forward.first,
            "mlp.c_proj": block.feed_forward.last,
        }.items():
            weights |= {f"{h}.{name}.weight": layer.weight.T, f"{h}.{name}.bias": layer.bias}
    copy_into(theirs, weights)
    ids = torch.randint(80, (3, 64))
    torch.testing.assert_close(ours(ids), theirs(ids).logits, rtol=1e-5, atol=1e-5)


def attention(theirs: str, names: tuple[str, str, str, str], ours: nn.Module) -> dict[str, torch.Tensor]:
    """Name the weights of an attention whose queries, keys and values are layers of their own."""
    weights = linear(f"{theirs}.{names[3]}", ours.last)
    parts = zip(names, ours.qkv.weight.chunk(3), ours.qkv.bias.chunk(3), strict=False)
    for name, weight, bias in parts:
        weights |= {f"{theirs}.{name}.weight": weight, f"{theirs}.{name}.bias": bias}
    return weights


@torch.no_grad()
def test_bert_is_a_bert_with_the_norms_first():
    ours = awake(bert(80))
    config = transformers.RobertaPreLayerNormConfig(
        vocab_size=80,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=66,  # RoBERTa counts positions from 2
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        pad_token_id=1,
    )
    theirs = transformers.RobertaPreLayerNormForMaskedLM(config).eval()
    theirs.roberta_prelayernorm.embeddings.LayerNorm = nn.Identity()  # each branch has its own
    trunk = "roberta_prelayernorm"
    positions = torch.cat([torch.zeros(2, 64), ours.embed.positions.weight])
    weights = {
        f"{trunk}.embeddings.word_embeddings.weight": ours.embed.tokens.weight,
        f"{trunk}.embeddings.position_embeddings.weight": positions,
        f"{trunk}.embeddings.token_type_embeddings.weight": torch.zeros(1, 64),
        "lm_head.bias": ours.head.output.bias,
        **linear(f"{trunk}.LayerNorm", ours.head.norm),
        **linear("lm_head.dense", ours.head.dense),
        **linear("lm_head.layer_norm", ours.head.dense_norm),
        **linear("lm_head.decoder", ours.head.output),
    }
    for i, block in enumerate(ours.blocks):
        layer = f"{trunk}.encoder.layer.{i}"
        names = ("self.query", "self.key", "self.value", "output.dense")
        weights |= attention(f"{layer}.attention", names, block.attention)
        weights |= linear(f"{layer}.attention.LayerNorm", block.attention.norm)
        weights |= linear(f"{layer}.intermediate.LayerNorm", block.feed_forward.norm)
        weights |= linear(f"{layer}.intermediate.dense", block.feed_forward.first)
        weights |= linear(f"{layer}.output.dense", block.feed_forward.last)
    copy_into(theirs, weights)
    ids = torch.randint(2, 80, (3, 64))  # no padding
    torch.testing.assert_close(ours(ids), theirs(ids).logits, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_vit_is_a_vit_without_a_class_token():
    ours = awake(vit())
    config = transformers.ViTConfig(
        hidden_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=192,
        image_size=16,
        patch_size=4,
        num_channels=1,
        layer_norm_eps=1e-5,
    )
    theirs = transformers.ViTModel(config, add_pooling_layer=False).eval()
    weights = linear("embeddings.patch_embeddings.projection", ours.embed.patches)
    weights |= linear("layernorm", ours.head.norm)
    for i, block in enumerate(ours.blocks):
        layer = f"layers.{i}"
        names = ("q_proj", "k_proj", "v_proj", "o_proj")
        weights |= attention(f"{layer}.attention", names, block.attention)
        weights |= linear(f"{layer}.layernorm_before", block.attention.norm)
        weights |= linear(f"{layer}.layernorm_after", block.feed_forward.norm)
        weights |= linear(f"{layer}.mlp.fc1", block.feed_forward.first)
        weights |= linear(f"{layer}.mlp.fc2", block.feed_forward.last)
    copy_into(theirs, weights, ignored=("embeddings.cls_token", "embeddings.position_embeddings"))
    images = torch.randn(3, 1, 16, 16)
    features = theirs.embeddings.patch_embeddings(images) + ours.embed.positions
    for layer in theirs.layers:
        features = layer(features)
    expected = ours.head.output(theirs.layernorm(features).mean(1))
    torch.testing.assert_close(ours(images), expected, rtol=1e-5, atol=1e-5)
