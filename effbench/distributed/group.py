"""The processes of one trial, as a technique sees them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from effbench.distributed.wire import Wire

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Group:
    """The `size` processes that train one model together; this one is number `rank`.

    A group of one communicates nothing: every method is the identity. So it is where ranks go `apart`.
    """

    rank: int = 0
    size: int = 1
    wire: Wire = field(default_factory=Wire, compare=False, repr=False)  # through which this rank sends everything
    is_apart: bool = False  # whether each rank goes by itself, so that none may wait for another

    def apart(self) -> Group:
        """Return the same ranks, none of which asks the others for anything."""
        return replace(self, is_apart=True)

    def together(self) -> Group:
        """Return the same ranks, who are known to be at the same place."""
        return replace(self, is_apart=False)

    @property
    def is_silent(self) -> bool:
        """Whether there is nobody to talk to."""
        return self.size == 1 or self.is_apart

    def sum(self, value: Tensor) -> Tensor:
        """Return the sum of `value` over all ranks, the same on each; shape as `value`."""
        if self.is_silent:
            return value
        total = value.detach().clone()
        torch.distributed.all_reduce(total)
        return total

    def sum_float(self, value: float) -> float:
        """Return the sum of `value` over all ranks."""
        return value if self.is_silent else float(self.sum(torch.tensor(value, dtype=torch.float64)))

    def agree(self, value: float) -> float:
        """Return rank 0's `value` on every rank, so that all stop at the same step."""
        if self.is_silent:
            return value
        shared = torch.tensor(value, dtype=torch.float64)
        torch.distributed.broadcast(shared, src=0)
        return float(shared)

    def gather(self, value: T) -> list[T]:
        """Return the plain values of all ranks, in their order, on every rank."""
        if self.is_silent:
            return [value]
        values: list[Any] = [None] * self.size
        torch.distributed.all_gather_object(values, value)
        return values

    def first(self, value: Tensor) -> Tensor:
        """Return rank 0's `value` on every rank; it has the same shape and type everywhere."""
        if self.is_silent:
            return value
        shared = value.detach().clone()
        torch.distributed.broadcast(shared, src=0)
        return shared
