"""Rotary positions: turn queries and keys by angles that grow with their position."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique
from effbench.models.replacing import replace, replacing
from effbench.models.transformer import Attention, TokenEmbedding


@technique(
    "model_centric/architecture",
    paper="Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding, arXiv:2104.09864",
    claim="faster convergence than with sinusoidal or learned positions",
    title="Rotary positions",
)
def rope(recipe: Recipe, *, base: float = 10_000.0) -> Recipe:
    """Tell attention the distance of two tokens by rotating queries and keys, instead of adding learned positions.

    Feature i of a head and feature i + d / 2 are a point in the plane, which is turned by position * base^(-2 i / d).
    The product of a query and a key then depends on how far apart they are, and not on where. The learned vectors of
    the positions go.

    When it helps: language models; part of modded-nanogpt's second record (45 -> 31.4 minutes, with a tuned rate).
    When it does not: the rotations cost time in every layer, and Geiping and Goldstein (Cramming, arXiv:2212.14034)
        found the gain too small for it.

    base: how slow the slowest rotation is: it turns once in about 2 pi * base tokens.
    """
    if not 1.0 < base < float("inf"):
        raise InvalidTechnique(f"rope: base is {base}; it should be a number above 1, and finite")

    def turning(embed: TokenEmbedding) -> TokenEmbedding:
        embed.positions = NoPositions(embed.positions.num_embeddings)  # type: ignore[assignment]  # no table, but called alike
        return embed

    otherwise = "rope turns queries and keys by the position of their token, and this model embeds no tokens"
    without_positions = replacing(recipe, TokenEmbedding, turning, otherwise)

    def model() -> nn.Module:
        made = without_positions.model()
        length = max(m.positions.num_embeddings for m in made.modules() if isinstance(m, TokenEmbedding))

        def rotary(attention: Attention) -> Attention:
            features = attention.qkv.out_features // 3 // attention.heads
            attention.attend = Rotary(attention.attend, length, features, base)
            return attention

        replace(made, Attention, rotary)
        return made

    return recipe.wrap(model=model)


class NoPositions(nn.Module):
    """Stands for the vectors of the positions, and adds nothing."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.num_embeddings = count

    def forward(self, positions: Tensor) -> Tensor:
        """Return zero for each of the (T,) positions, (T, 1)."""
        return torch.zeros(len(positions), 1, device=positions.device)


class Rotary(nn.Module):
    """Attention whose queries and keys are turned by their positions first.

    length: the largest number of tokens.
    features: of a head, an even number.
    """

    def __init__(self, attend: nn.Module, length: int, features: int, base: float) -> None:
        super().__init__()
        self.attend = attend
        rates = base ** (-torch.arange(0, features, 2) / features)
        angles = torch.arange(length)[:, None] * rates
        self.register_buffer("cos", angles.cos().repeat(1, 2), persistent=False)
        self.register_buffer("sin", angles.sin().repeat(1, 2), persistent=False)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Mix the values of each head; all shapes (B, heads, T, C / heads)."""
        mixed: Tensor = self.attend(self.turned(q).to(v.dtype), self.turned(k).to(v.dtype), v)
        return mixed

    def turned(self, x: Tensor) -> Tensor:
        """Turn each token of `x`, (B, heads, T, d), by its position."""
        cos, sin = self.get_buffer("cos")[: x.shape[-2]], self.get_buffer("sin")[: x.shape[-2]]
        one, other = x.chunk(2, dim=-1)
        return x * cos + torch.cat([-other, one], dim=-1) * sin
