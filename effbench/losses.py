"""Losses that need more than outputs and targets, such as a teacher or another pass, and what they have in common."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

from effbench.recipe import Loss, Training
from effbench.terms import IGNORED


@contextmanager
def minimising(training: Training, loss: Loss) -> Iterator[None]:
    """Let `loss` be the finished one of this training while the context is open.

    It is called with all or a part of the batch, as gradients are taken: what it needs of the examples, it computes
    from the batch that it is given.
    """
    finished = training.recipe
    training.recipe = dataclasses.replace(finished, loss=loss)
    try:
        yield
    finally:
        training.recipe = finished


def mean_of_valid(values: Tensor, targets: Tensor) -> Tensor:
    """Return the mean over each example's tokens that have a target, (B,); values of examples, (B,), as they are.

    values: (B,) or (B, T).
    targets: (B, T) tokens where the values are those of tokens; 0 is the mean over none.
    """
    if values.ndim == 1:
        return values
    valid = targets != IGNORED
    return (values * valid).sum(1) / valid.sum(1).clamp_min(1)
