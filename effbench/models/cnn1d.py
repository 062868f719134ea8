"""A convolutional network for short series.

The CNN of Greydanus and Kobak, Scaling Down Deep Learning (MNIST-1D), arXiv:2011.14439: three strided
convolutions of 25 channels, 5,210 parameters at 40 samples and 10 classes.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import nn

from effbench.models.network import Network


def cnn1d(*, channels: int = 1, samples: int = 40, classes: int = 10, width: int = 25) -> Network:
    """Make a CNN of three convolutions, each halving the length; (B, C, L) series -> (B, classes) logits.

    samples: L, the length of the series.
    """
    embed = _layer(channels, width, kernel=5)
    blocks = [_layer(width, width, kernel=3) for _ in range(2)]
    with torch.no_grad():
        features = blocks[1](blocks[0](embed(torch.zeros(1, channels, samples)))).numel()
    head = OrderedDict(flatten=nn.Flatten(), output=nn.Linear(features, classes))
    return Network(embed, blocks, nn.Sequential(head))


def _layer(width_in: int, width: int, kernel: int) -> nn.Sequential:
    convolution = nn.Conv1d(width_in, width, kernel, stride=2, padding=1)
    return nn.Sequential(OrderedDict(convolution=convolution, activation=nn.ReLU()))
