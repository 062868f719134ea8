"""What the ranks make of a step together, unless a technique says otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from effbench.recipe import Batch, Training

#: A step without a single valid target has weight 0, and gradient 0.
LEAST_WEIGHT = 1e-12


def share(batch: Batch, training: Training) -> Batch:
    """Scale the weights so that those of the whole step, all ranks together, sum to one."""
    if batch.counts_alike and training.group.size == 1:
        return batch.replace(weight=1.0 / len(batch))
    total = training.group.sum(batch.weight.sum()).clamp_min(LEAST_WEIGHT)
    return batch.replace(weight=batch.weight / total)


def nothing(training: Training) -> None:
    """Leave everything as it is at the end."""
