"""Experts that lie in different processes: tokens travel to those that they are sent to, and what these say comes back.

Lepikhin et al., GShard: Scaling Giant Models with Conditional Computation and Automatic Sharding, arXiv:2006.16668.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from effbench.distributed.axes import Axis
from effbench.distributed.cut_layers import shared_out
from effbench.distributed.stages import Elsewhere
from effbench.errors import NotApplicable
from effbench.models.experts import Added, Experts, Routing, imbalance


@dataclass(frozen=True, slots=True)
class Spread:
    """What a layer of experts does to its own share of a batch, (B, T, C), instead of `Experts.residual`.

    Of a batch of several processes, that of number r has the examples r, r + processes, ...: in this order tokens queue
    for experts, so that those who find room are those who find it where all are in one process.

    owners: the number of the process that has an expert, for each.
    """

    layer: Experts
    axis: Axis
    owners: tuple[int, ...]

    def __call__(self, x: Tensor) -> Tensor:
        """Send each token to its experts, wherever they are; (B, T, C) -> (B, T, C)."""
        layer = self.layer
        tokens = layer.norm(x).flatten(0, 1)
        chances, sizes, balance = self.of_all(layer.router(tokens).float().softmax(1).unflatten(0, x.shape[:2]))
        routing = layer.route(chances, layer.capacity if layer.training else None)
        mixed = self.ask(tokens, routing, sizes)
        if balance and torch.is_grad_enabled():
            mixed = Added.apply(mixed, imbalance(chances, routing.favourite), balance)  # type: ignore[no-untyped-call]
        return mixed.view_as(x)

    def of_all(self, own: Tensor) -> tuple[Tensor, list[int], float]:
        """Return the chances of the tokens of all, how many examples each process has, and the whole factor of balance.

        own: (B, T, E) probabilities of the experts. What comes back, (all B * T, E), has a graph for these alone.
        """
        places, place = self.axis.size, self.axis.place
        told = torch.zeros(places, 2, dtype=torch.float64)
        told[place] = torch.tensor([float(len(own)), self.layer.balance])
        self.axis.sum(told)
        sizes = [int(size) for size in told[:, 0]]
        padded = own.new_zeros(max(sizes), *own.shape[1:])
        padded[: len(own)] = own.detach()
        gathered = [torch.empty_like(padded) for _ in range(places)]
        dist.all_gather(gathered, padded, group=self.axis.group)
        chances = own.new_empty(sum(sizes), *own.shape[1:])
        for other, size in enumerate(sizes):
            chances[other::places] = own if other == place else gathered[other][:size]
        return chances.flatten(0, 1), sizes, float(told[:, 1].sum())

    def ask(self, tokens: Tensor, routing: Routing, sizes: Sequence[int]) -> Tensor:
        """Return what the experts say of this process's tokens, (N, C), and tell others what the experts here say."""
        places, place, experts = self.axis.size, self.axis.place, range(len(self.owners))
        queue = routing.sent.view(sum(sizes), -1, len(experts))  # (all B, T, E)
        wanted = [queue[place::places, :, e].flatten().nonzero()[:, 0] for e in experts]  # own tokens, for each expert
        here = [e for e in experts if self.owners[e] == place]
        counts = [[int(queue[other::places, :, e].sum()) for e in here] for other in range(places)]
        leaving = [sum(len(wanted[e]) for e in experts if self.owners[e] == other) for other in range(places)]
        arriving = [sum(row) for row in counts]
        order = torch.cat(wanted)
        came = exchanged(tokens[order], self.axis, leaving, arriving)
        answers = exchanged(self.answer(came, here, counts), self.axis, arriving, leaving)
        gates = routing.gates.view_as(queue)[place::places].flatten(0, 1)
        weights = torch.cat([gates[wanted[e], e] for e in experts])
        return torch.zeros_like(tokens).index_add(0, order, (answers * weights[:, None]).to(tokens.dtype))

    def answer(self, came: Tensor, here: Sequence[int], counts: Sequence[Sequence[int]]) -> Tensor:
        """Return what the experts here say of the tokens that came, in the same order.

        counts: how many came from each process for each expert; they are in this order.
        """
        sizes = [count for row in counts for count in row]
        pieces = torch.split(came, sizes)
        said: list[Tensor | None] = [None] * len(pieces)
        for number, expert in enumerate(here):
            mine = range(number, len(pieces), len(here))
            whole = self.layer.expert(torch.cat([pieces[i] for i in mine]), expert)
            for i, part in zip(mine, torch.split(whole, [sizes[i] for i in mine]), strict=True):
                said[i] = part
        return torch.cat([part for part in said if part is not None])


class Exchanged(torch.autograd.Function):
    """Sends each process some rows; slopes go the same way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, axis: Axis, leaving: Sequence[int], arriving: Sequence[int]) -> Tensor:
        """Return the rows that arrive, those of each process after those of the one before."""
        ctx.axis, ctx.leaving, ctx.arriving = axis, leaving, arriving
        return all_to_all(x, axis, leaving, arriving)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None, None, None]:
        """Return the slopes of the rows that left."""
        return all_to_all(slope, ctx.axis, ctx.arriving, ctx.leaving), None, None, None


def exchanged(x: Tensor, axis: Axis, leaving: Sequence[int], arriving: Sequence[int]) -> Tensor:
    """Send (leaving, C) rows and return (arriving, C), with a graph; the numbers are those for each process."""
    arrived: Tensor = Exchanged.apply(x, axis, leaving, arriving)  # type: ignore[no-untyped-call]
    return arrived


def all_to_all(x: Tensor, axis: Axis, leaving: Sequence[int], arriving: Sequence[int]) -> Tensor:
    """Send (leaving, C) rows, return (arriving, C)."""
    arrived = x.new_empty(sum(arriving), *x.shape[1:])
    dist.all_to_all_single(arrived, x.contiguous(), list(arriving), list(leaving), group=axis.group)
    return arrived


def layers_of(model: nn.Module) -> dict[str, Experts]:
    """Return the layers of experts by name."""
    return {name: module for name, module in model.named_modules() if isinstance(module, Experts)}


def owners_of(layer: Experts, processes: int, technique: str) -> tuple[int, ...]:
    """Return the process of each expert: as many for each, or one more.

    Raises:
        NotApplicable: there are fewer experts than processes.
    """
    if (experts := len(layer.first)) < processes:
        raise NotApplicable(f"{technique} has {processes} processes share {experts} experts")
    shares = shared_out(experts, processes)
    return tuple(place for place, share in enumerate(shares) for _ in share)


def spread(model: nn.Module, axis: Axis, technique: str) -> None:
    """Leave this process its experts of every layer, and let tokens travel."""
    for layer in layers_of(model).values():
        owners = owners_of(layer, axis.size, technique)
        for expert, owner in enumerate(owners):
            if owner != axis.place:
                layer.first[expert] = layer.last[expert] = Elsewhere(f"expert {expert}")
        layer.residual = Spread(layer, axis, owners)  # type: ignore[method-assign]
