"""Switch transformer: many experts in the place of a feed-forward layer, and one of them for each token."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn

from effbench import Batch, Recipe, Training, technique
from effbench.errors import InvalidTechnique
from effbench.models.replacing import replacing
from effbench.models.transformer import FeedForward


@technique(
    "model_centric/architecture",
    paper="Fedus et al., Switch Transformers: Scaling to Trillion Parameter Models with Simple and Efficient Sparsity, "
    "arXiv:2101.03961",
    claim="7 times faster to the quality of T5-Base at equal FLOPs per token",
    after=["glu_ffn", "relu_squared"],  # experts are copies of what the layer has become
    conflicts={"torch_compile": "which experts compute depends on the data, and the graph would break there"},
    title="Switch transformer",
)
def moe_switch(recipe: Recipe, *, experts: int = 4, capacity: float = 1.25, balance: float = 0.01) -> Recipe:
    """Replace each feed-forward layer of a transformer by several experts, of which every token is sent to one.

    A router gives each token probabilities of the experts; the most probable one computes, and what it says is
    multiplied by its probability, through which the router learns. In training, an expert takes `capacity * tokens /
    experts` tokens of a batch; those beyond go around the layer. A loss of `balance * experts * sum(f * p)` is added,
    where f is the share of the tokens that are sent to an expert and p its mean probability: `balance`, if all are
    used alike. In evaluation no token goes around.

    When it helps: more parameters at the same arithmetic: better per step, on hardware that keeps its experts busy.
    When it does not: on the wall clock at the scale of GPT-2, where it lowered the use of a GPU from 46 to 35 % of its
        peak (nanochat); small layers in small batches, which are cut into smaller ones yet.

    experts: number of feed-forward layers in the place of one; 1 is the dense layer.
    capacity: how many times its even share of the tokens an expert takes in training.
    balance: factor of the loss that balances the experts.
    """
    if experts < 1:
        raise InvalidTechnique(f"moe_switch: experts is {experts}; it should be 1 or more")
    if capacity <= 0.0:
        raise InvalidTechnique(f"moe_switch: capacity is {capacity}; it should be above 0")
    if not 0.0 <= balance < math.inf:
        raise InvalidTechnique(f"moe_switch: balance is {balance}; it should be a finite factor, 0 or more")

    def gradient(training: Training, batch: Batch) -> Tensor:
        """Let the loss of balance count as much as this part of the step does."""
        layers = [module for module in training.model.modules() if isinstance(module, Switch)]
        share = balance * float(batch.weight.sum())
        for layer in layers:
            layer.balance = share
        try:
            return recipe.gradient(training, batch)
        finally:
            for layer in layers:
                layer.balance = 0.0

    otherwise = "moe_switch replaces a transformer's feed-forward layers, and this model has none"
    return replacing(recipe, FeedForward, lambda layer: Switch(layer, experts, capacity), otherwise).wrap(
        gradient=gradient
    )


class Switch(nn.Module):
    """Experts as a residual branch: each token is transformed by one of them, or by none.

    balance: what the balance of the experts counts in the gradient, as long as one is computed.
    """

    def __init__(self, layer: FeedForward, experts: int, capacity: float) -> None:
        super().__init__()
        width = layer.first.in_features if isinstance(layer.first, nn.Linear) else layer.norm.weight.numel()
        self.capacity, self.balance = capacity, 0.0
        self.norm = layer.norm
        self.router = nn.Linear(width, experts, bias=False)
        nn.init.normal_(self.router.weight, std=0.1 / math.sqrt(width))  # the paper starts a tenth as large as usual
        self.first = nn.ModuleList([layer.first, *(redrawn(layer.first) for _ in range(experts - 1))])
        self.activation = layer.activation
        self.last = nn.ModuleList([layer.last, *(redrawn(layer.last) for _ in range(experts - 1))])

    def shortcut(self, x: Tensor) -> Tensor:
        """Return `x` as it is."""
        return x

    def residual(self, x: Tensor) -> Tensor:
        """Send each token to its expert; (B, T, C) -> (B, T, C)."""
        tokens = self.norm(x).flatten(0, 1)
        chances = self.router(tokens).float().softmax(1)  # (N, E) of N tokens
        best, chosen = chances.max(1)
        experts = chances.shape[1]
        room = math.ceil(self.capacity * len(tokens) / experts) if self.training else len(tokens)
        mixed = torch.zeros_like(x.flatten(0, 1))
        for number, (first, last) in enumerate(zip(self.first, self.last, strict=True)):
            sent = (chosen == number).nonzero()[:, 0][:room]
            said = last(self.activation(first(tokens[sent])))  # of no token as well: every expert has a gradient
            mixed = mixed.index_copy(0, sent, (said * best[sent, None]).to(mixed.dtype))
        if self.balance and torch.is_grad_enabled():
            used = torch.bincount(chosen, minlength=experts) / len(tokens)
            loss = experts * (used * chances.mean(0)).sum()
            mixed = Added.apply(mixed, loss, self.balance)  # type: ignore[no-untyped-call]
        return mixed.view_as(x)

    def forward(self, x: Tensor) -> Tensor:
        """Add the branch to `x`."""
        return x + self.residual(x)


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
