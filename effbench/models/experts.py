"""Mixtures of experts: several feed-forward layers in the place of one, and a router that says which are asked.

Shazeer et al., Outrageously Large Neural Networks: The Sparsely-Gated Mixture-of-Experts Layer, arXiv:1701.06538.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from effbench.autograd import applied
from effbench.models.transformer import FeedForward
from effbench.recipe import Batch, Gradient, Training


class Routing(NamedTuple):
    """Which experts are asked about N tokens, and how much what they say counts.

    sent: (N, E) whether a token is sent to an expert.
    gates: (N, E) what the expert's answer is multiplied by.
    favourite: (N,) each token's most probable expert, whether there is room for it or not.
    """

    sent: Tensor
    gates: Tensor
    favourite: Tensor


#: (N, E) probabilities of the experts for each token, capacity or None where there is room for all -> routing
Route = Callable[[Tensor, float | None], Routing]


class Experts(nn.Module):
    """Experts as a residual branch: each token is transformed by those that it is sent to, or by none.

    layer: the layer in whose place they are; it becomes the first of them, the others are drawn anew.
    capacity: how many times its even share of the tokens an expert takes in training. In evaluation there is room for
        all.
    balance: what the balance of the experts counts in the gradient, as long as one is computed: see `balanced`.
    """

    def __init__(self, layer: FeedForward, experts: int, route: Route, capacity: float) -> None:
        super().__init__()
        width = layer.norm.weight.numel()
        self.route, self.capacity, self.balance = route, capacity, 0.0
        self.norm = layer.norm
        self.router = nn.Linear(width, experts, bias=False)
        nn.init.normal_(self.router.weight, std=math.sqrt(0.1 / width))  # a tenth of the usual variance, as in Switch
        self.first = nn.ModuleList([layer.first, *(redrawn(layer.first) for _ in range(experts - 1))])
        self.activation = layer.activation
        self.last = nn.ModuleList([layer.last, *(redrawn(layer.last) for _ in range(experts - 1))])

    def shortcut(self, x: Tensor) -> Tensor:
        """Return `x` as it is, (B, T, C)."""
        return x

    def residual(self, x: Tensor) -> Tensor:
        """Send each token to its experts; (B, T, C) -> (B, T, C)."""
        tokens = self.norm(x).flatten(0, 1)
        chances = self.router(tokens).float().softmax(1)  # (N, E) of N tokens
        routing = self.route(chances, self.capacity if self.training else None)
        mixed = torch.zeros_like(x.flatten(0, 1))
        for number in range(chances.shape[1]):
            sent = routing.sent[:, number].nonzero()[:, 0]
            said = self.expert(tokens[sent], number)  # of no token as well: every expert has a gradient
            mixed = mixed.index_add(0, sent, (said * routing.gates[sent, number, None]).to(mixed.dtype))
        if self.balance and torch.is_grad_enabled():
            mixed = applied(Added, mixed, imbalance(chances, routing.favourite), self.balance)
        return mixed.view_as(x)

    def expert(self, tokens: Tensor, number: int) -> Tensor:
        """Return what one expert says of tokens; (N, C) -> (N, C)."""
        said: Tensor = self.last[number](self.activation(self.first[number](tokens)))
        return said

    def forward(self, x: Tensor) -> Tensor:
        """Add the branch to `x`, (B, T, C)."""
        return x + self.residual(x)


def most_probable(chances: Tensor, capacity: float | None) -> Routing:
    """Send each token to its most probable expert alone, which counts as much as it is probable.

    An expert takes the first `capacity * N / E` of its tokens; those beyond go around the layer.

    Fedus et al., Switch Transformers, arXiv:2101.03961.
    """
    best, favourite = chances.max(1)
    chosen = nn.functional.one_hot(favourite, chances.shape[1])
    sent = chosen.bool()
    if capacity is not None:
        sent &= chosen.cumsum(0) <= room(capacity, chances)
    return Routing(sent, best[:, None] * sent, favourite)


def room(capacity: float, chances: Tensor) -> int:
    """Return how many of the N tokens an expert takes: `capacity` times the even share, rounded up."""
    return math.ceil(capacity * chances.shape[0] / chances.shape[1])


def imbalance(chances: Tensor, favourite: Tensor) -> Tensor:
    """Return `E * sum(f * p)`: f the share of the tokens whose favourite an expert is, p its mean probability.

    It is 1 where all experts are used alike, and up to E where one is used alone.
    """
    experts = chances.shape[1]
    used = torch.bincount(favourite, minlength=experts) / len(chances)
    return experts * (used * chances.mean(0)).sum()


def balanced(gradient: Gradient, balance: float) -> Gradient:
    """Return `gradient` of a loss to which `balance` times the imbalance of each layer of experts is added.

    Where it is taken of a part of the step, it counts as much as that part does.
    """

    def with_balance(training: Training, batch: Batch) -> Tensor:
        layers = [module for module in training.model.modules() if isinstance(module, Experts)]
        share = balance * float(batch.weight.sum())
        for layer in layers:
            layer.balance = share
        try:
            return gradient(training, batch)
        finally:
            for layer in layers:
                layer.balance = 0.0

    return with_balance


class Added(torch.autograd.Function):
    """Hands `x` on, and lets `loss` have the gradient `factor`, as if `factor * loss` were added to the loss."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, loss: Tensor, factor: float) -> Tensor:
        """Return `x`."""
        ctx.factor, ctx.shape, ctx.dtype = factor, loss.shape, loss.dtype
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, Tensor, None]:
        """Return the slopes of `x`, of the loss, and of the factor, which has none."""
        return slope, torch.full(ctx.shape, ctx.factor, dtype=ctx.dtype, device=slope.device), None


def redrawn(layer: nn.Module) -> nn.Module:
    """Return a copy with weights of its own that are as large."""
    made = copy.deepcopy(layer)
    for weight in made.parameters():
        if weight.ndim > 1:
            nn.init.normal_(weight, std=float(weight.detach().std()))
    return made
