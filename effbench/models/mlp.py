"""A multilayer perceptron."""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from effbench.models.network import Network


def mlp(inputs: int, classes: int, *, width: int = 256, depth: int = 3) -> Network:
    """Make a perceptron of `depth` hidden layers with ReLU; (B, ...) -> (B, classes) logits.

    The blocks are the hidden layers after the first, all of one shape.

    inputs: numbers in one example.
    """
    embed = nn.Sequential(OrderedDict(flatten=nn.Flatten(), **_layer(inputs, width)))
    blocks = [nn.Sequential(_layer(width, width)) for _ in range(depth - 1)]
    return Network(embed, blocks, nn.Linear(width, classes))


def _layer(width_in: int, width: int) -> OrderedDict[str, nn.Module]:
    return OrderedDict(linear=nn.Linear(width_in, width), activation=nn.ReLU())
