"""Query-key norm: attention by the angle between queries and keys, not by their length."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique
from effbench.models.replacing import replacing
from effbench.models.transformer import Attention


@technique(
    "model_centric/architecture",
    paper="Henry et al., Query-Key Normalization for Transformers, arXiv:2010.04245",
    claim="0.9 BLEU more on average in five low-resource translations",
    title="Query-key norm",
)
def qk_norm(recipe: Recipe, *, scale: float = 10.0) -> Recipe:
    """Divide queries and keys by their length, so that no attention logit is larger than a learned scale.

    The logit of a pair is `g * cos(q, k)` instead of `q k' / sqrt(d)`; each layer has a g of its own, which is learned.
    The paper starts it at log2(T^2 - T) for T tokens: 12 for 64 tokens, 8 for 16.

    When it helps: high rates, at which logits would else grow without bound; it came into modded-nanogpt with the fifth
        of its records, together with squared ReLUs and zero-initialised branches.
    When it does not: small models at modest rates, which have no such trouble, pay for the norms.

    scale: what g starts from, and so the largest logit at the beginning.
    """
    if not 0.0 < scale < math.inf:
        raise InvalidTechnique(f"qk_norm: scale is {scale}; it should be a positive, finite number")

    def normalised(attention: Attention) -> Attention:
        attention.attend = ByAngle(attention.attend, scale)
        return attention

    return replacing(recipe, Attention, normalised, "qk_norm needs queries and keys, and this model has no attention")


class ByAngle(nn.Module):
    """Attention whose logits are a learned scale times the cosine of query and key.

    attend: scaled dot-product attention, (q, k, v) -> mixed values, which divides by sqrt(d).
    """

    def __init__(self, attend: nn.Module, scale: float) -> None:
        super().__init__()
        self.attend = attend
        self.scale = nn.Parameter(torch.tensor(scale))

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Mix the values of each head; all shapes (B, heads, T, C / heads)."""
        q = F.normalize(q, dim=-1) * (self.scale * math.sqrt(q.shape[-1]))
        mixed: Tensor = self.attend(q.to(v.dtype), F.normalize(k, dim=-1).to(v.dtype), v)
        return mixed
