"""A Vision Transformer: an image as a sequence of patches.

Dosovitskiy et al., An Image is Worth 16x16 Words, arXiv:2010.11929; the mean over the patches is classified,
without a class token, as in Beyer et al., Better Plain ViT Baselines for ImageNet-1k, arXiv:2205.01580.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn

from effbench.models.network import Mean, Network
from effbench.models.transformer import Block, initialise, usual_std


class PatchEmbedding(nn.Module):
    """Images (B, C, H, W) -> features (B, T, width) of T square patches, row by row, plus their positions."""

    def __init__(self, channels: int, resolution: int, patch: int, width: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(channels, width, patch, stride=patch)
        self.positions = nn.Parameter(torch.empty((resolution // patch) ** 2, width))

    def forward(self, images: Tensor) -> Tensor:
        """Cut images of the model's own resolution into patches and embed them; (B, C, H, W) -> (B, T, width)."""
        embedded: Tensor = self.patches(images).flatten(2).transpose(1, 2) + self.positions
        return embedded


def vit(
    *,
    channels: int = 1,
    resolution: int = 16,
    patch: int = 4,
    classes: int = 10,
    width: int = 48,
    depth: int = 3,
    heads: int = 4,
) -> Network:
    """Make a pre-norm ViT without dropout; (B, C, H, W) images -> (B, classes) logits.

    resolution: height and width of the images, a multiple of `patch`.

    Raises:
        ValueError: the patches do not tile the image.
    """
    if resolution % patch:
        raise ValueError(f"patches of {patch} pixels do not tile images of {resolution} x {resolution}")
    embed = PatchEmbedding(channels, resolution, patch, width)
    blocks = [Block(width, heads, causal=False) for _ in range(depth)]
    head = OrderedDict(norm=nn.LayerNorm(width), pool=Mean(1), output=nn.Linear(width, classes))
    model = Network(embed, blocks, nn.Sequential(head))
    initialise(model, usual_std(width))
    nn.init.normal_(embed.positions, std=usual_std(width))
    return model
