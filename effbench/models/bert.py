"""A BERT: a transformer that sees the whole text, for masked language modelling and for classification.

Devlin et al., BERT, arXiv:1810.04805; the norms stand before the branches, as in Geiping and Goldstein,
Cramming: Training a Language Model on a Single GPU in One Day, arXiv:2212.14034.
"""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from effbench.models.network import Mean, Network
from effbench.models.transformer import Block, TokenEmbedding, initialise


def bert(vocabulary: int, *, length: int = 64, width: int = 64, depth: int = 2, heads: int = 4) -> Network:
    """Make a BERT for masked language modelling; (B, T) token ids -> (B, T, V) logits.

    As in BERT, the head transforms each token once more before its output layer, and that layer shares its
    weights with the token embedding.

    vocabulary: number of tokens, the mask included.
    length: the longest T.
    """
    embed = TokenEmbedding(vocabulary, length, width, norm=True)
    blocks = [Block(width, heads, causal=False) for _ in range(depth)]
    output = nn.Linear(width, vocabulary)
    output.weight = embed.tokens.weight
    head = OrderedDict(
        norm=nn.LayerNorm(width),
        dense=nn.Linear(width, width),
        activation=nn.GELU(),
        dense_norm=nn.LayerNorm(width),
        output=output,
    )
    model = Network(embed, blocks, nn.Sequential(head))
    initialise(model)
    return model


def text_classifier(
    vocabulary: int, classes: int, *, length: int, width: int = 64, depth: int = 2, heads: int = 4
) -> Network:
    """Make a text classifier on BERT's trunk; (B, T) token ids -> (B, C) logits.

    The mean over all tokens is classified.

    length: the longest T.
    """
    embed = TokenEmbedding(vocabulary, length, width, norm=True)
    blocks = [Block(width, heads, causal=False) for _ in range(depth)]
    head = OrderedDict(norm=nn.LayerNorm(width), pool=Mean(1), output=nn.Linear(width, classes))
    model = Network(embed, blocks, nn.Sequential(head))
    initialise(model)
    return model
