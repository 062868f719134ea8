"""Fixup: residual networks without norms, from weights that keep the size of an update whatever the depth."""

from __future__ import annotations

from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from effbench import Recipe, technique
from effbench.errors import NotApplicable
from effbench.models.replacing import replace
from effbench.models.resnet import ResidualBlock

_SLOW = 0.1**0.5  # its square is what a scalar learns at, as a share of the rate


@technique(
    "model_centric/initialization",
    paper="Zhang et al., Fixup Initialization: Residual Learning Without Normalization, arXiv:1901.09321",
    claim="residual networks of 10,000 layers train without norms; regularised, ResNet-50 comes close to BatchNorm",
    conflicts={
        "kaiming_xavier": "it would draw the weights anew",
        "ghost_batchnorm": "there is no norm left",
    },
)
def fixup(recipe: Recipe) -> Recipe:
    """Take the norms out of a residual network of convolutions, and let its weights start so that it needs none.

    Of L branches with m layers each, the last layer starts at zero, as does the output layer; the others start as large
    as the baseline's times L^(-1 / (2 m - 2)). In the place of the norms there are scalars that learn: one is added
    before each convolution, before the output layer and before each activation, and one multiplies each branch. So one
    step changes the outputs by as much in a deep network as in a shallow one. As in the authors' code, scalars learn at
    a tenth of the rate: under SGD, by being sqrt(0.1) of what is stepped.

    When it helps: norms are slow, or forbidden: a step takes less time and memory, and batches may be small.
    When it does not: quality, and high rates, which BatchNorm bears: at those of our ResNets, which were tuned with
        norms, hardly anything is learnt. `rate_factor` makes them smaller.
    """
    with torch.random.fork_rng(devices=[]):
        if not any(isinstance(module, ResidualBlock) for module in recipe.model().modules()):
            raise NotApplicable("fixup takes the norms out of residual blocks of convolutions, and this model has none")

    def model() -> nn.Module:
        made = recipe.model()
        branches = sum(isinstance(module, ResidualBlock) for module in made.modules())
        replace(made, ResidualBlock, lambda block: FixupBlock(block, branches))
        replace(made, nn.BatchNorm2d, lambda norm: Shift())  # noqa: ARG005 - that of the head
        begin_at_zero(made)
        return made

    return recipe.wrap(model=model)


class Shift(nn.Module):
    """Add a scalar that learns, and starts at zero."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        """Return `x` plus the scalar."""
        return x + _SLOW * self.bias


class Scale(nn.Module):
    """Multiply by a scalar that learns, and starts at one."""

    def __init__(self) -> None:
        super().__init__()
        self.growth = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        """Return `x` times the scalar."""
        return x * (1.0 + _SLOW * self.growth)


class FixupBlock(nn.Module):
    """Two convolutions as a residual branch without norms: `shortcut(x) + scale * last(relu(first(relu(x))))`.

    Before every convolution and every activation there is a shift.

    block: whose convolutions these are; those of the branch change their weights.
    branches: number of branches of the model.
    """

    def __init__(self, block: ResidualBlock, branches: int) -> None:
        super().__init__()
        self.before_activation, self.before_first = Shift(), Shift()
        self.first = block.first
        self.between, self.before_last = Shift(), Shift()
        self.last = block.last
        self.scale = Scale()
        plain = isinstance(block.projection, nn.Identity)
        shifted = OrderedDict[str, nn.Module](shift=Shift(), projection=block.projection)
        self.projection = block.projection if plain else nn.Sequential(shifted)
        layers = [m for part in (self.first, self.last) for m in part.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
        with torch.no_grad():
            for layer in layers[:-1]:
                layer.weight *= branches ** (-1.0 / (2 * len(layers) - 2))
            for weight in layers[-1].parameters():
                weight.zero_()

    def shortcut(self, x: Tensor) -> Tensor:
        """Return `x`, projected where the branch changes its shape."""
        projected: Tensor = self.projection(x)
        return projected

    def residual(self, x: Tensor) -> Tensor:
        """Convolve twice; (B, C, H, W) -> (B, width, H / stride, W / stride)."""
        x = self.first(self.before_first(F.relu(self.before_activation(x))))
        x = self.last(self.before_last(F.relu(self.between(x))))
        scaled: Tensor = self.scale(x)
        return scaled

    def forward(self, x: Tensor) -> Tensor:
        """Add the branch to the shortcut."""
        return self.shortcut(x) + self.residual(x)


def begin_at_zero(model: nn.Module) -> None:
    """Let the output layer, the last linear one, start at zero, with a shift before it."""
    name, output = [(name, layer) for name, layer in model.named_modules() if isinstance(layer, nn.Linear)][-1]
    for weight in output.parameters():
        nn.init.zeros_(weight)
    model.set_submodule(name, nn.Sequential(OrderedDict(shift=Shift(), output=output)))
