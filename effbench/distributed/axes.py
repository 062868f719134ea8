"""Processes in a grid: those that differ in one coordinate alone form an axis, and talk among themselves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """The `size` processes of a line through the grid; this one is number `place`."""

    ranks: tuple[int, ...]
    place: int
    group: dist.ProcessGroup | None = None  # None for all processes, or one

    @property
    def size(self) -> int:
        """Return the number of processes."""
        return len(self.ranks)

    def sum(self, tensor: Tensor) -> Tensor:
        """Add up a tensor in place, over all processes of the axis; return it."""
        if self.size > 1:
            dist.all_reduce(tensor, group=self.group)
        return tensor

    def first(self, tensor: Tensor) -> Tensor:
        """Return what the first process of the axis has, on all of them; it has the same form everywhere."""
        shared = tensor.detach().clone()
        if self.size > 1:
            dist.broadcast(shared, self.ranks[0], group=self.group)
        return shared

    def __deepcopy__(self, memo: object) -> Axis:
        """Return the axis itself: a copy of a model talks to the same processes."""
        return self


def grid(sizes: Mapping[str, int]) -> dict[str, Axis]:
    """Return the axes on which this rank lies, by name; all ranks must take part.

    sizes: name -> processes along the axis, the last of which changes fastest from rank to rank. Their product is the
        number of processes.
    """
    names, world = list(sizes), math.prod(sizes.values())
    coordinates = list(itertools.product(*(range(size) for size in sizes.values())))  # of each rank
    axes: dict[str, Axis] = {}
    for number, name in enumerate(names):
        lines: dict[tuple[int, ...], list[int]] = {}
        for rank, place in enumerate(coordinates):
            lines.setdefault((*place[:number], *place[number + 1 :]), []).append(rank)
        for ranks in lines.values():
            group = dist.new_group(ranks) if 1 < len(ranks) < world else None
            if dist.get_rank() in ranks:
                axes[name] = Axis(tuple(ranks), ranks.index(dist.get_rank()), group)
    return axes


def sum_gradients(parameters: Iterable[nn.Parameter], axis: Axis) -> None:
    """Give all processes of an axis the sum of their gradients, sent in one piece; one that none has stays None."""
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    if axis.size == 1 or not trained:
        return
    slopes = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
    exist = slopes[0].new_tensor([float(p.grad is not None) for p in trained])
    summed, counts = axis.sum(torch.cat([*(slope.flatten() for slope in slopes), exist])).tensor_split([-len(trained)])
    for parameter, slope, count in zip(
        trained, torch.split(summed, [p.numel() for p in trained]), counts.tolist(), strict=True
    ):
        parameter.grad = slope.view_as(parameter) if count else None
