"""Sliding window attention: each token sees its neighbours alone."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.models.replacing import replacing
from effbench.models.transformer import DotProduct


@technique(
    "model_centric/architecture",
    paper="Beltagy et al., Longformer: The Long-Document Transformer, arXiv:2004.05150",
    claim="cost linear in the length, and the best bits per character of its time on text8 and enwik8",
    neutral={"window": 0},
)
def sliding_window_attention(recipe: Recipe, *, window: int = 16) -> Recipe:
    """Let each token see those that are less than `window` tokens away; before it alone, where attention is causal.

    From layer to layer the view grows by a window, so that the last layer still sees far. All layers have the same one.
    Masked logits are computed and thrown away: with the kernels at hand this costs what full attention does, or more,
    and shows what the window does to quality.

    When it helps: long texts, with kernels that skip what is masked: modded-nanogpt 7.2 -> 5.03 minutes with
        FlexAttention and longer texts.
    When it does not: texts of not many times the window; kernels that skip nothing, such as these.

    window: tokens that a causal token sees, itself included; to either side where it is not; 0 turns it off.
    """
    if window < 0:
        raise InvalidTechnique(f"sliding_window_attention: window is {window}; it should be 0 (off) or more tokens")
    if "text" not in recipe.traits:
        raise NotApplicable("sliding_window_attention needs tokens in a row, and this workload is no text")
    if window == 0:
        return recipe
    otherwise = "sliding_window_attention replaces dot-product attention, and this model has none"
    return replacing(recipe, DotProduct, lambda attend: Windowed(window, causal=attend.causal), otherwise)


class Windowed(nn.Module):
    """Scaled dot-product attention among tokens that are less than `window` apart."""

    def __init__(self, window: int, *, causal: bool) -> None:
        super().__init__()
        self.window, self.causal = window, causal

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Mix the values of each head; all shapes (B, heads, T, C / heads)."""
        positions = torch.arange(q.shape[-2], device=q.device)
        distance = positions[:, None] - positions
        seen = distance.abs() < self.window
        if self.causal:
            seen &= distance >= 0
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)

    def extra_repr(self) -> str:
        """Show which tokens are seen."""
        return f"window={self.window}, causal={self.causal}"
