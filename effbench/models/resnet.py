"""A small residual network, at home at any resolution.

He et al., Identity Mappings in Deep Residual Networks, arXiv:1603.05027: norm and activation go before each
convolution, so that a block adds its branch to its input and does nothing to the sum.
"""

from __future__ import annotations

from collections import OrderedDict

import torch.nn.functional as F
from torch import Tensor, nn

from effbench.models.network import Mean, Network


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions as a residual branch: `shortcut(x) + last(relu(norm(first(relu(norm(x))))))`.

    stride: 2 halves the resolution. The shortcut is a 1x1 convolution where the shape changes.
    """

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.first_norm = nn.BatchNorm2d(width_in)
        self.first = nn.Conv2d(width_in, width, 3, stride, padding=1, bias=False)
        self.last_norm = nn.BatchNorm2d(width)
        self.last = nn.Conv2d(width, width, 3, padding=1, bias=False)
        same = stride == 1 and width_in == width
        self.projection = nn.Identity() if same else nn.Conv2d(width_in, width, 1, stride, bias=False)

    def shortcut(self, x: Tensor) -> Tensor:
        """Return `x`, projected where the branch changes its shape."""
        projected: Tensor = self.projection(x)
        return projected

    def residual(self, x: Tensor) -> Tensor:
        """Convolve twice; (B, C, H, W) -> (B, width, H / stride, W / stride)."""
        x = self.first(F.relu(self.first_norm(x)))
        convolved: Tensor = self.last(F.relu(self.last_norm(x)))
        return convolved

    def forward(self, x: Tensor) -> Tensor:
        """Add the branch to the shortcut; (B, C, H, W) -> (B, width, H / stride, W / stride)."""
        return self.shortcut(x) + self.residual(x)


def resnet(*, channels: int = 1, classes: int = 10, width: int = 8, depth: int = 1) -> Network:
    """Make a ResNet of three stages; (B, C, H, W) -> (B, classes) logits.

    width: channels of the first stage; each further stage has twice as many, at half the resolution.
    depth: blocks in each stage; 1 makes a ResNet-8.
    """
    blocks: list[nn.Module] = []
    before = width
    for stage in range(3):
        for position in range(depth):
            stride = 2 if stage and position == 0 else 1
            blocks.append(ResidualBlock(before, width * 2**stage, stride))
            before = width * 2**stage
    embed = nn.Conv2d(channels, width, 3, padding=1, bias=False)
    head = OrderedDict(
        norm=nn.BatchNorm2d(before),
        activation=nn.ReLU(),
        pool=Mean(2, 3),
        output=nn.Linear(before, classes),
    )
    model = Network(embed, blocks, nn.Sequential(head))
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return model
