"""RMSNorm: divide by the root of the mean square, and neither centre nor shift."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from effbench import Recipe, technique
from effbench.models.replacing import replacing


@technique(
    "model_centric/architecture",
    paper="Zhang and Sennrich, Root Mean Square Layer Normalization, arXiv:1910.07467",
    claim="quality as with LayerNorm, 7 to 64 % less time",
    title="RMSNorm",
)
def rmsnorm(recipe: Recipe) -> Recipe:
    """Replace every LayerNorm by x / sqrt(mean(x^2)), times a learned gain, without a bias.

    The gain starts as that of the LayerNorm, and the small constant under the root is the same.

    When it helps: large transformers, in most of which it is the norm today; the gain is in time, not in quality.
    When it does not: where LayerNorm is one fused operation and RMSNorm is several, it is not even faster.
    """
    return replacing(recipe, nn.LayerNorm, without_mean, "rmsnorm replaces LayerNorms, and this model has none")


class RootMeanSquare(nn.RMSNorm):
    """torch's RMSNorm, which takes its gain in the precision of its input, as LayerNorm does under autocast."""

    def forward(self, x: Tensor) -> Tensor:
        """Return `x` normalised over its last dimensions, shape and precision as they were."""
        gain = None if self.weight is None else self.weight.to(x.dtype)
        return F.rms_norm(x, self.normalized_shape, gain, self.eps)


def without_mean(norm: nn.LayerNorm) -> RootMeanSquare:
    """Return an RMSNorm of the same shape and gain."""
    made = RootMeanSquare(norm.normalized_shape, norm.eps, norm.elementwise_affine)
    if norm.elementwise_affine:
        with torch.no_grad():
            made.weight.copy_(norm.weight)
    return made
