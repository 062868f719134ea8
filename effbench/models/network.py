"""The one shape of all standard models, and the one shape of all residual branches in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from torch import Tensor, nn


class Network(nn.Module):
    """A model in three parts that are called one after the other: `head(blocks(embed(inputs)))`.

    embed: turns inputs into features.
    blocks: turn features into features, in order; techniques stack, freeze, drop, wrap and replace them.
    head: turns features into outputs: (B, C) logits of classes, or (B, T, V) logits of tokens.
    """

    def __init__(self, embed: nn.Module, blocks: Iterable[nn.Module], head: nn.Module) -> None:
        super().__init__()
        self.embed = embed
        self.blocks = nn.ModuleList(blocks)
        self.head = head

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits of `inputs`, (B, C) or (B, T, V)."""
        features: Tensor = self.embed(inputs)
        for block in self.blocks:
            features = block(features)
        outputs: Tensor = self.head(features)
        return outputs


@runtime_checkable
class Residual(Protocol):
    """A module that adds something to what it is given: `forward(x) == shortcut(x) + residual(x)`.

    last: the module that ends the branch; with all its parameters zero, `residual(x)` is zero.
    """

    last: nn.Module

    def shortcut(self, x: Tensor) -> Tensor:
        """Return `x`, brought to the shape of the branch where that differs."""

    def residual(self, x: Tensor) -> Tensor:
        """Return what the branch adds, in the shape of `shortcut(x)`."""


def residuals(model: nn.Module) -> dict[str, Residual]:
    """Return every residual branch of `model` by its name, in the order in which they are called."""
    return {name: module for name, module in model.named_modules() if isinstance(module, Residual)}


class Mean(nn.Module):
    """The mean over some dimensions: of tokens (B, T, C) -> (B, C), of pixels (B, C, H, W) -> (B, C)."""

    def __init__(self, *dimensions: int) -> None:
        super().__init__()
        self.dimensions = dimensions

    def forward(self, x: Tensor) -> Tensor:
        """Return the mean of `x`, (B, C)."""
        return x.mean(self.dimensions)

    def extra_repr(self) -> str:
        """Show the dimensions."""
        return ", ".join(map(str, self.dimensions))
