"""Processes in a grid: those that differ in one coordinate alone form an axis, and talk among themselves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch.distributed as dist
from torch import Tensor


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
