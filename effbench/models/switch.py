"""A GPT with experts: a Switch transformer.

Fedus et al., Switch Transformers: Scaling to Trillion Parameter Models with Simple and Efficient Sparsity,
arXiv:2101.03961.
"""

from __future__ import annotations

from effbench.models.experts import Experts, most_probable
from effbench.models.gpt import gpt
from effbench.models.network import Network
from effbench.models.replacing import replace
from effbench.models.transformer import FeedForward


def switch_gpt(
    vocabulary: int,
    *,
    experts: int = 4,
    capacity: float = 1.25,
    length: int = 64,
    width: int = 64,
    depth: int = 2,
    heads: int = 4,
) -> Network:
    """Make a GPT with a mixture of experts in every other block, beginning with the second.

    (B, T) token ids -> (B, T, V) logits of the tokens that follow. The loss that keeps the experts in balance is
    `effbench.models.experts.balanced`'s.

    experts: feed-forward layers in the place of one, of which each token is sent to one.
    capacity: how many times its even share of the tokens an expert takes in training.
    length: the longest T.
    """
    model = gpt(vocabulary, length=length, width=width, depth=depth, heads=heads)
    for block in model.blocks[1::2]:
        replace(block, FeedForward, lambda layer: Experts(layer, experts, most_probable, capacity))
    return model
