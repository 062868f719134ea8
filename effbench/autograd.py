"""Autograd functions of our own, called with types."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd import Function


def applied(function: type[Function], *arguments: Any) -> Tensor:
    """Return what a function makes of its arguments, with its own backward pass in the graph."""
    result: Tensor = function.apply(*arguments)  # type: ignore[no-untyped-call]  # torch has no types there
    return result
