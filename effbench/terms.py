"""The plain terms that every workload's recipe starts from."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from effbench.recipe import Batch, Schedule, Training

IGNORED = -100  # a target that does not count


def shuffled(training: Training) -> Iterator[Tensor]:
    """Yield every position once, (N,) of N examples, in a new random order in every epoch, without end.

    Each epoch has a generator of its own, so that it is the same whatever else was drawn from `training.order`: masks
    for batches of another size, say.
    """
    for epoch in itertools.count():
        order = torch.Generator().manual_seed(training.order.initial_seed() + epoch)
        yield torch.randperm(len(training.recipe.dataset), generator=order)


def by_position(positions: Tensor, training: Training) -> Batch:
    """Pick (B,) positions from the recipe's data set; weight is the number of valid targets of each."""
    dataset = training.recipe.dataset
    targets = dataset.targets[positions]
    weight = valid_targets(targets) if targets.ndim == 2 else 1.0
    return Batch(dataset.inputs[positions], targets, positions, weight)


def valid_targets(targets: Tensor) -> Tensor:
    """Count the targets of each example that count, (B,) float: 1 for classes, tokens not ignored for text."""
    if targets.ndim == 2 and not targets.is_floating_point():
        return (targets != IGNORED).sum(1, dtype=torch.float32)
    return torch.ones(len(targets), device=targets.device)


def unchanged(batch: Batch, training: Training) -> Batch:  # noqa: ARG001 - the signature of a transform
    """Train on the batch as it is."""
    return batch


def as_it_is(model: nn.Module) -> nn.Module:
    """Leave the model where it is."""
    return model


def cross_entropy(outputs: Tensor, batch: Batch) -> Tensor:
    """Cross-entropy of each example, (B,) nats; for tokens, the mean over the example's valid targets.

    outputs: (B, C) logits for classes or class probabilities, (B, T, V) logits for tokens.
    """
    targets = batch.targets
    if outputs.ndim == 2:
        return F.cross_entropy(outputs, targets, reduction="none")
    losses = F.cross_entropy(outputs.flatten(0, 1), targets.flatten(), reduction="none", ignore_index=IGNORED)
    return losses.view(targets.shape).sum(1) / (targets != IGNORED).sum(1).clamp_min(1)


def backward(training: Training, batch: Batch) -> Tensor:
    """Add the gradient of sum(loss * weight) to p.grad; the loop has made the weights of a step sum to one."""
    losses = training.loss(training.forward(batch.inputs), batch)
    weight = batch.weight
    torch.autograd.backward(losses, weight if weight.dtype is losses.dtype else weight.to(losses.dtype))
    return losses.detach()


def cut(batch: Batch, count: int) -> list[Batch]:
    """Cut a batch into `count` parts of nearly equal size, or into as many as have two examples each."""
    count = max(1, min(count, len(batch) // 2))
    edges = [len(batch) * i // count for i in range(count + 1)]
    return [batch[start:end] for start, end in pairwise(edges)]


def step(training: Training) -> None:
    """Take one optimizer step and clear the gradients."""
    training.optimizer.step()
    training.optimizer.zero_grad(set_to_none=True)


def trained_model(training: Training) -> nn.Module:
    """Evaluate the model that is trained."""
    return training.model


def warmup_then_linear(warmup: float) -> Schedule:
    """Rise linearly to 1 over the share `warmup` of the budget, then fall linearly to 0 at its end."""

    def factor(progress: float) -> float:
        if progress < warmup:
            return (progress + 0.02 * warmup) / (1.02 * warmup)  # never exactly 0: the first step should count
        return max(0.0, (1.0 - progress) / (1.0 - warmup))

    return factor
