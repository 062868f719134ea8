"""A GPT: a causal transformer that predicts the next token.

Radford et al., Language Models are Unsupervised Multitask Learners (GPT-2), 2019.
"""

from __future__ import annotations

import math
from collections import OrderedDict

from torch import nn

from effbench.models.network import Network, residuals
from effbench.models.transformer import Block, TokenEmbedding, initialise, usual_std


def gpt(vocabulary: int, *, length: int = 64, width: int = 64, depth: int = 2, heads: int = 4) -> Network:
    """Make a GPT-2 without dropout; (B, T) token ids -> (B, T, V) logits of the tokens that follow.

    As in GPT-2, the output layer shares its weights with the token embedding, and the last layer of each
    residual branch starts smaller by sqrt(2 * depth), so that their sum does not grow with depth.

    length: the longest T.
    """
    embed = TokenEmbedding(vocabulary, length, width)
    blocks = [Block(width, heads, causal=True, gelu="tanh") for _ in range(depth)]
    output = nn.Linear(width, vocabulary, bias=False)
    output.weight = embed.tokens.weight
    model = Network(embed, blocks, nn.Sequential(OrderedDict(norm=nn.LayerNorm(width), output=output)))
    initialise(model, usual_std(width))
    for branch in residuals(model).values():
        if isinstance(branch.last, nn.Linear):
            nn.init.normal_(branch.last.weight, std=usual_std(width) / math.sqrt(2 * depth))
    return model
