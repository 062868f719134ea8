"""Channels last: let the channels of a pixel lie side by side in memory."""

from __future__ import annotations

import torch
from torch import nn

from effbench import Recipe, technique
from effbench.errors import NotApplicable


@technique(
    "system_centric/optimization",
    paper="no paper: PyTorch's memory format NHWC; in the line of Li et al., Optimizing Memory Efficiency for Deep "
    "Convolutional Neural Networks on GPUs, arXiv:1610.03618",
    claim="8 to 35 % more throughput for mixed-precision CNNs on Volta and later GPUs (PyTorch's tutorial)",
)
def channels_last(recipe: Recipe) -> Recipe:
    """Store the weights of convolutions with their channels innermost, so that features take that order as well.

    Shapes stay (B, C, H, W), only strides change: a convolution with such a weight returns features in the same order,
    and everything between hands it on. Results are the same but for rounding.

    When it helps: GPUs with tensor cores, and CPUs with bfloat16 units beside `bf16_autocast`.
    When it does not: convolutions in float32 on a CPU, whose library lays them out anew by itself; models of other
        layers than 2-D convolutions.
    """
    with torch.random.fork_rng(devices=[]):
        if not any(isinstance(module, nn.Conv2d) for module in recipe.model().modules()):
            raise NotApplicable("channels_last lays out images for 2-D convolutions, and this model has none")

    def place(model: nn.Module) -> nn.Module:
        return recipe.placement(model.to(memory_format=torch.channels_last))  # type: ignore[call-overload]  # torch's stub lacks it

    return recipe.wrap(placement=place)
