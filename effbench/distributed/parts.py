"""Parameters that are spread over ranks: how long the whole gradient is, and how many there are in all."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from effbench.recipe import Training

#: What `training.forward` has as its `copies` where each rank holds some of the parameters only: parameter -> the
#: number of ranks that hold the same. Where there is none, each rank holds all, or torch knows what it holds. Where it
#: is not `is_synchronous`, the ranks have gradients of different batches, and each clips its own.
Copies = Callable[[nn.Parameter], int]


def copies_of(training: Training) -> Copies | None:
    """Return how many ranks hold a parameter of this one; None where each holds all."""
    copies: Copies | None = getattr(training.forward, "copies", None)
    return copies


def clip(training: Training, limit: float) -> None:
    """Scale the gradient, that of all ranks together, down to the norm `limit` where it is longer."""
    copies = copies_of(training)
    if copies is None or not getattr(training.forward, "is_synchronous", True):
        nn.utils.clip_grad_norm_(training.model.parameters(), limit, foreach=True)
    else:
        parameters = list(training.model.parameters())
        norm = gradient_norm(training, copies).to(parameters[0]) if parameters else torch.zeros(())
        nn.utils.clip_grads_with_norm_(parameters, limit, norm, foreach=True)


def gradient_norm(training: Training, copies: Copies) -> Tensor:
    """Return the Euclidean norm of the gradient on all ranks together, (), float64 on the CPU, the same on each."""
    slopes = [(p.grad, copies(p)) for p in training.model.parameters() if p.grad is not None]
    squares = [slope.double().square().sum().cpu() / held for slope, held in slopes]
    return training.group.sum(torch.stack(squares).sum() if squares else torch.zeros((), dtype=torch.float64)).sqrt()


def parameter_count(training: Training) -> int:
    """Return the number of parameters of the model, on whatever ranks they are; each must take part."""
    copies = copies_of(training)
    if copies is None:
        return sum(p.numel() for p in training.model.parameters())
    return round(training.group.sum_float(sum(p.numel() / copies(p) for p in training.model.parameters())))
