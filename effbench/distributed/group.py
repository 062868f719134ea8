"""The processes of one trial, as a technique sees them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Group:
    """The `size` processes that train one model together; this one is number `rank`.

    A group of one communicates nothing: every method is the identity.
    """

    rank: int = 0
    size: int = 1

    def sum(self, value: Tensor) -> Tensor:
        """Return the sum of `value` over all ranks, the same on each; shape as `value`."""
        if self.size == 1:
            return value
        total = value.detach().clone()
        torch.distributed.all_reduce(total)
        return total

    def sum_float(self, value: float) -> float:
        """Return the sum of `value` over all ranks."""
        return value if self.size == 1 else float(self.sum(torch.tensor(value, dtype=torch.float64)))

    def agree(self, value: float) -> float:
        """Return rank 0's `value` on every rank, so that all stop at the same step."""
        if self.size == 1:
            return value
        shared = torch.tensor(value, dtype=torch.float64)
        torch.distributed.broadcast(shared, src=0)
        return float(shared)

    def first(self, value: Tensor) -> Tensor:
        """Return rank 0's `value` on every rank; it has the same shape and type everywhere."""
        if self.size == 1:
            return value
        shared = value.detach().clone()
        torch.distributed.broadcast(shared, src=0)
        return shared
