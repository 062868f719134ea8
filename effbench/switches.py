"""torch's global switches, which a technique may throw: kept apart where several runs share one process."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Switches:
    """The positions of the switches that change what a step does or costs."""

    threads: int
    dtype: torch.dtype
    is_deterministic: bool
    precision: str  # of float32 matrix products
    has_grad: bool

    @classmethod
    def now(cls) -> Switches:
        """Return how they stand."""
        return cls(
            torch.get_num_threads(),
            torch.get_default_dtype(),
            torch.are_deterministic_algorithms_enabled(),
            torch.get_float32_matmul_precision(),
            torch.is_grad_enabled(),
        )

    def throw(self) -> None:
        """Put them as they are here."""
        if (found := Switches.now()) == self:
            return
        if found.threads != self.threads:  # costs more than the others
            torch.set_num_threads(self.threads)
        torch.set_default_dtype(self.dtype)
        torch.use_deterministic_algorithms(self.is_deterministic)
        torch.set_float32_matmul_precision(self.precision)
        torch.set_grad_enabled(self.has_grad)
