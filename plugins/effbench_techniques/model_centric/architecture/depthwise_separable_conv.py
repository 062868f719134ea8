"""Depthwise separable convolutions: look around in each channel by itself, then mix the channels."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from effbench import Recipe, technique
from effbench.errors import NotApplicable


@technique(
    "model_centric/architecture",
    paper="Howard et al., MobileNets: Efficient Convolutional Neural Networks for Mobile Vision Applications, "
    "arXiv:1704.04861",
    claim="ImageNet: 8 to 9 times fewer multiply-adds for one point of accuracy",
)
def depthwise_separable_conv(recipe: Recipe) -> Recipe:
    """Replace the convolutions in the blocks by one in each channel, and a 1x1 convolution after it.

    With k x k pixels and N channels going out, that takes 1 / N + 1 / k^2 of the multiplications. The first of the two
    starts as large as keeps the variance, the second so that the outputs are as large as those of the one replaced.
    The stem stays, and so does what looks at one pixel only. The paper has a norm and an activation between the two;
    here the network keeps its norms and activations.

    When it helps: hardware on which arithmetic is the bottleneck, and wide layers.
    When it does not: CPUs and GPUs, where a depthwise convolution is bound by memory: less time is saved than FLOPs;
        narrow layers, in which it costs capacity.
    """
    with torch.random.fork_rng(devices=[]):
        if not separable(recipe.model()):
            raise NotApplicable("depthwise_separable_conv finds no convolution in the model's `blocks`")

    def model() -> nn.Module:
        made = recipe.model()
        for name, layer in separable(made).items():
            made.set_submodule(name, separated(layer))
        return made

    return recipe.wrap(model=model)


def separable(model: nn.Module) -> dict[str, nn.Conv2d]:
    """Return the two-dimensional convolutions in the blocks, by name, that look at more than one pixel."""
    return {
        name: layer
        for name, layer in model.named_modules()
        if name.startswith("blocks.") and type(layer) is nn.Conv2d and layer.groups == 1 and layer.kernel_size != (1, 1)
    }


def separated(layer: nn.Conv2d) -> nn.Sequential:
    """Return a depthwise and a pointwise convolution in the place of `layer`."""
    channels, pixels = layer.in_channels, math.prod(layer.kernel_size)
    shape: dict[str, Any] = {
        name: getattr(layer, name) for name in ("kernel_size", "stride", "padding", "dilation", "padding_mode")
    }
    depthwise = nn.Conv2d(channels, channels, groups=channels, bias=False, **shape)
    pointwise = nn.Conv2d(channels, layer.out_channels, 1, bias=layer.bias is not None)
    nn.init.normal_(depthwise.weight, std=1.0 / math.sqrt(pixels))
    nn.init.normal_(pointwise.weight, std=math.sqrt(pixels) * float(layer.weight.detach().std()))
    if pointwise.bias is not None:
        nn.init.zeros_(pointwise.bias)
    return nn.Sequential(depthwise, pointwise)
