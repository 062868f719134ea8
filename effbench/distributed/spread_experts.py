"""Experts that lie in different processes: tokens travel to those that they are sent to, and what these say comes back.

Lepikhin et al., GShard: Scaling Giant Models with Conditional Computation and Automatic Sharding, arXiv:2006.16668.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn

from effbench.autograd import applied
from effbench.distributed.axes import Axis
from effbench.distributed.cut_layers import shared_out
from effbench.distributed.stages import Elsewhere
from effbench.errors import NotApplicable
from effbench.models.experts import Added, Experts, Routing, imbalance


class Told(NamedTuple):
    """What each process has told all others.

    sizes: how many examples it has.
    balance: what the balance of the experts counts in its gradient.
    chance: a number that tells apart where its random numbers stand.
    """

    sizes: list[int]
    balance: list[float]
    chance: list[float]


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
        chances, told = self.of_all(layer.router(tokens).float().softmax(1).unflatten(0, x.shape[:2]))
        before = torch.get_rng_state()
        routing = layer.route(chances, layer.capacity if layer.training else None)
        if len(set(told.chance)) > 1 and not torch.equal(before, torch.get_rng_state()):
            raise NotApplicable("tokens are sent to experts by chance, and the processes have drawn unlike numbers")
        mixed, balance = self.ask(tokens, routing, told.sizes), sum(told.balance)
        if balance and torch.is_grad_enabled():
            mixed = applied(Added, mixed, imbalance(chances, routing.favourite), balance)
        return mixed.view_as(x)

    def of_all(self, own: Tensor) -> tuple[Tensor, Told]:
        """Return the chances of the tokens of all, (all B * T, E), with a graph for its own, and more of each process.

        own: (B, T, E) probabilities of the experts.

        Raises:
            NotApplicable: the processes have texts of other lengths.
        """
        places, place = self.axis.size, self.axis.place
        told = self.told(own)
        sizes = told.sizes
        padded = own.new_zeros(max(sizes), *own.shape[1:])
        padded[: len(own)] = own.detach()
        gathered = [torch.empty_like(padded) for _ in range(places)]
        dist.all_gather(gathered, padded, group=self.axis.group)
        chances = own.new_empty(sum(sizes), *own.shape[1:])
        for other, size in enumerate(sizes):
            chances[other::places] = own if other == place else gathered[other][:size]
        return chances.flatten(0, 1), told

    def told(self, own: Tensor) -> Told:
        """Tell all processes how much this one has, and hear how much they have.

        Raises:
            NotApplicable: the processes have texts of other lengths.
        """
        facts = torch.zeros(self.axis.size, 4, dtype=torch.float64)
        chance = float(zlib.crc32(torch.get_rng_state().numpy().tobytes()))
        facts[self.axis.place] = torch.tensor([own.shape[0], own.shape[1], self.layer.balance, chance])
        sizes, lengths, balance, chances = self.axis.sum(facts).T.tolist()
        if len(set(lengths)) > 1:
            raise NotApplicable("experts in several processes queue tokens by their places, and texts differ in length")
        return Told([int(size) for size in sizes], balance, chances)

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
        """Return what the experts here say of the tokens that came, (arriving, C), in the same order.

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
        """Return the rows that arrive, (arriving, C), those of each process after those of the one before."""
        ctx.axis, ctx.leaving, ctx.arriving = axis, leaving, arriving
        return all_to_all(x, axis, leaving, arriving)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None, None, None]:
        """Return the slopes of the rows that left, (leaving, C)."""
        return all_to_all(slope, ctx.axis, ctx.arriving, ctx.leaving), None, None, None


def exchanged(x: Tensor, axis: Axis, leaving: Sequence[int], arriving: Sequence[int]) -> Tensor:
    """Send (leaving, C) rows and return (arriving, C), with a graph; the numbers are those for each process."""
    return applied(Exchanged, x, axis, leaving, arriving)


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
        layer.residual = Spread(layer, axis, owners)  # type: ignore[method-assign]  # of this one layer, not of all
