"""A BERT: a transformer that sees the whole text, for masked language modelling and for classification.

Devlin et al., BERT, arXiv:1810.04805. As in Geiping and Goldstein, Cramming: Training a Language Model on a Single
GPU in One Day, arXiv:2212.14034, the norms stand before the branches and positions start as sinusoids.
"""

from __future__ import annotations

import math
from collections import OrderedDict

import torch
from torch import Tensor, nn

from effbench.models.network import Mean, Network
from effbench.models.transformer import Block, TokenEmbedding, initialise, usual_std


def bert(vocabulary: int, *, length: int = 64, width: int = 64, depth: int = 2, heads: int = 4) -> Network:
    """Make a BERT for masked language modelling; (B, T) token ids -> (B, T, V) logits.

    As in BERT, the head transforms each token once more before its output layer, and that layer shares its
    weights with the token embedding. Unlike there, embeddings are not normalised: beside features of size one, the
    branches of a narrow model weigh so little at first that it long predicts frequencies and nothing else.

    vocabulary: number of tokens, the mask included.
    length: the longest T.
    """
    embed = TokenEmbedding(vocabulary, length, width)
    output = nn.Linear(width, vocabulary)
    output.weight = embed.tokens.weight
    head = OrderedDict(
        norm=nn.LayerNorm(width),
        dense=nn.Linear(width, width),
        activation=nn.GELU(),
        dense_norm=nn.LayerNorm(width),
        output=output,
    )
    return _on_trunk(embed, head, width, depth, heads)


def text_classifier(
    vocabulary: int, classes: int, *, length: int, width: int = 64, depth: int = 2, heads: int = 4
) -> Network:
    """Make a text classifier on BERT's trunk; (B, T) token ids -> (B, C) logits.

    The mean over all tokens is classified; padding is a token like any other.

    length: the longest T.
    """
    embed = TokenEmbedding(vocabulary, length, width, norm=True)
    head = OrderedDict(norm=nn.LayerNorm(width), pool=Mean(1), output=nn.Linear(width, classes))
    return _on_trunk(embed, head, width, depth, heads)


def sinusoids(length: int, width: int) -> Tensor:
    """Return sines and cosines of `length` positions, (length, width): neighbours are rotations of one another.

    Vaswani et al., Attention Is All You Need, arXiv:1706.03762, section 3.5.
    """
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000) / width))
    angles = torch.arange(length)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], 2).flatten(1)


def _on_trunk(embed: TokenEmbedding, head: OrderedDict[str, nn.Module], width: int, depth: int, heads: int) -> Network:
    blocks = [Block(width, heads, causal=False) for _ in range(depth)]
    model = Network(embed, blocks, nn.Sequential(head))
    std = usual_std(width)
    initialise(model, std)
    with torch.no_grad():  # as large as the tokens; from random positions, neighbours take far longer to find
        embed.positions.weight.copy_(math.sqrt(2) * std * sinusoids(*embed.positions.weight.shape))
    return model
