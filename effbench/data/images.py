"""From stored bytes to images that a model can train on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor


def normalise(mean: float, std: float) -> Callable[[NDArray[Any]], Tensor]:
    """Return a function from (N, H, W) or (N, C, H, W) uint8 to (N, C, H, W) float32 of about N(0, 1)."""

    def to_tensor(images: NDArray[Any]) -> Tensor:
        stored = torch.from_numpy(images)
        if stored.ndim == 3:
            stored = stored.unsqueeze(1)
        return stored.float().mul_(1.0 / (255.0 * std)).sub_(mean / std)

    return to_tensor
