"""The pre-norm transformer block that the GPT, the BERT and the ViT share.

Vaswani et al., Attention Is All You Need, arXiv:1706.03762; the norms stand before the branches, as in GPT-2;
Xiong et al., On Layer Normalization in the Transformer Architecture, arXiv:2002.04745, say why.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Gelu = Literal["none", "tanh"]  # exact, as in BERT and ViT; approximate, as in GPT-2


class DotProduct(nn.Module):
    """Scaled dot-product attention: softmax(q k' / sqrt(d)) v.

    causal: each token sees itself and those before it.
    """

    def __init__(self, *, causal: bool) -> None:
        super().__init__()
        self.causal = causal

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Mix the values of each head; all shapes (B, heads, T, C / heads)."""
        return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)

    def extra_repr(self) -> str:
        """Show which tokens are seen."""
        return f"causal={self.causal}"


class Attention(nn.Module):
    """Multi-head self-attention as a residual branch: `x + last(attend(q, k, v))`.

    attend: (q, k, v) -> mixed values, all (B, heads, T, C / heads); other kinds of attention replace it.
    """

    def __init__(self, width: int, heads: int, *, causal: bool) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.attend: nn.Module = DotProduct(causal=causal)
        self.last = nn.Linear(width, width)

    def shortcut(self, x: Tensor) -> Tensor:
        """Return `x` as it is, (B, T, C)."""
        return x

    def residual(self, x: Tensor) -> Tensor:
        """Let the tokens look at one another; (B, T, C) -> (B, T, C)."""
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed: Tensor = self.last(self.attend(q, k, v).transpose(1, 2).flatten(2))
        return mixed

    def forward(self, x: Tensor) -> Tensor:
        """Add the branch to `x`, (B, T, C)."""
        return x + self.residual(x)


class FeedForward(nn.Module):
    """Two linear layers, token by token, as a residual branch: `x + last(activation(first(norm(x))))`."""

    def __init__(self, width: int, hidden: int, activation: nn.Module) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.first = nn.Linear(width, hidden)
        self.activation = activation
        self.last = nn.Linear(hidden, width)

    def shortcut(self, x: Tensor) -> Tensor:
        """Return `x` as it is, (B, T, C)."""
        return x

    def residual(self, x: Tensor) -> Tensor:
        """Transform each token by itself; (B, T, C) -> (B, T, C)."""
        transformed: Tensor = self.last(self.activation(self.first(self.norm(x))))
        return transformed

    def forward(self, x: Tensor) -> Tensor:
        """Add the branch to `x`, (B, T, C)."""
        return x + self.residual(x)


class Block(nn.Module):
    """Attention, then the feed-forward layer, four times as wide inside."""

    def __init__(self, width: int, heads: int, *, causal: bool, gelu: Gelu = "none") -> None:
        super().__init__()
        self.attention = Attention(width, heads, causal=causal)
        self.feed_forward = FeedForward(width, 4 * width, nn.GELU(approximate=gelu))

    def forward(self, x: Tensor) -> Tensor:
        """Transform tokens (B, T, C)."""
        transformed: Tensor = self.feed_forward(self.attention(x))
        return transformed


class TokenEmbedding(nn.Module):
    """Token ids (B, T) -> features (B, T, C): learned vectors of the tokens and of their positions, added.

    length: the longest T; shorter sequences use the first positions.
    norm: whether the sum is normalised, as in BERT.
    """

    def __init__(self, vocabulary: int, length: int, width: int, *, norm: bool = False) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width) if norm else nn.Identity()

    def forward(self, ids: Tensor) -> Tensor:
        """Embed token ids; (B, T) -> (B, T, C).

        Raises:
            ValueError: there are more tokens than positions.
        """
        length, longest = ids.shape[1], self.positions.num_embeddings
        if length > longest:
            raise ValueError(f"the model has {longest} positions, and was given {length} tokens")
        positions = self.positions(torch.arange(length, device=ids.device))
        embedded: Tensor = self.norm(self.tokens(ids) + positions)
        return embedded


def usual_std(width: int) -> float:
    """Return the standard deviation of initial weights: 0.02 at width 768, as in GPT-2, BERT and ViT.

    Narrower models start from larger weights, so that sums over the features are as large as there.
    """
    return 0.02 * math.sqrt(768 / width)


def initialise(model: nn.Module, std: float) -> None:
    """Draw linear layers and embeddings from N(0, std), and set their biases to zero."""
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
