"""Naive attention: write all T x T logits and weights out; the control for the fused kernel of the baselines."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from effbench import Recipe, technique
from effbench.models.replacing import replacing
from effbench.models.transformer import DotProduct


@technique(
    "system_centric/optimization",
    paper="Vaswani et al., Attention Is All You Need, arXiv:1706.03762; the control for Dao et al., FlashAttention: "
    "Fast and Memory-Efficient Exact Attention with IO-Awareness, arXiv:2205.14135",
    claim="FlashAttention over this: 15 % end to end on BERT-large, 3 times as fast on GPT-2 with 1,024 tokens",
)
def naive_attention(recipe: Recipe) -> Recipe:
    """Compute attention in three operations: logits, softmax, mixture, and keep what they made for the backward pass.

    The baselines attend by torch's scaled_dot_product_attention, which on a CPU and on a GPU is a fused kernel in the
    manner of FlashAttention: it never writes T x T numbers, and keeps one number for each query instead. What that is
    worth is the difference between the baseline and this control: the results are the same but for rounding.

    When it helps: nowhere but as a control, or where the fused kernel lacks something.
    When it does not: texts of any length; the longer, the worse. Memory for the weights grows with the square of the
        length, and all of it is written and read.
    """
    otherwise = "naive_attention writes dot-product attention out, and this model has none"
    return replacing(recipe, DotProduct, lambda attend: WrittenOut(causal=attend.causal), otherwise)


class WrittenOut(nn.Module):
    """Scaled dot-product attention, softmax(q k' / sqrt(d)) v, as it is written.

    causal: each token sees itself and those before it.
    """

    def __init__(self, *, causal: bool) -> None:
        super().__init__()
        self.causal = causal

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Mix the values of each head; all shapes (B, heads, T, C / heads)."""
        logits = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if self.causal:
            unseen = torch.ones(logits.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
            logits = logits.masked_fill(unseen, -math.inf)
        return logits.softmax(-1) @ v

    def extra_repr(self) -> str:
        """Show which tokens are seen."""
        return f"causal={self.causal}"
