"""Batch size schedule: let the batch grow instead of letting the learning rate fall."""

from __future__ import annotations

import math
from collections.abc import Callable

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique
from effbench.recipe import Schedule

_GRID = 1000  # points at which the peak of a schedule is looked for


@technique(
    "optimization_centric/large_batch",
    paper="Smith et al., Don't Decay the Learning Rate, Increase the Batch Size, arXiv:1711.00489",
    claim="ImageNet, ResNet-50: 76.1 % in less than 30 minutes",
    neutral={"max_growth": 1},
)
def batch_size_schedule(recipe: Recipe, *, max_growth: int = 8) -> Recipe:
    """Double the batch whenever the learning rate would have halved, and give the rate back what the batch took over.

    The noise of training goes with rate over batch size, and can fall by either. After the peak of the baseline's
    schedule the batch grows in powers of two, and the rate is the baseline's times that growth: it stays between half
    its peak and its peak, and rate over batch size follows the baseline's curve, until the batch has grown
    `max_growth` times; from then on the rate decays. So it replaces the schedule, and excludes others that do.

    When it helps: hardware that a small batch does not fill, and fewer updates for the same examples. modded-nanogpt
        (2.248 -> 2.203 minutes) and Cramming (arXiv:2212.14034) let their batches grow too.
    When it does not: machines that the baseline's batch already fills, where fewer updates are all that remains. The
        rule is that of SGD; for Adam, the rate goes with the square root of the batch (Malladi et al., On the SDEs and
        Scaling Rules for Adaptive Gradient Algorithms, arXiv:2205.10287). nanochat gave such a ramp up as too complex.

    max_growth: how many times the batch may grow, a power of two; 1 turns it off.
    """
    if max_growth < 1 or max_growth & (max_growth - 1):
        raise InvalidTechnique(
            f"batch_size_schedule: max_growth is {max_growth}; it should be a power of two, 1 is off"
        )
    if max_growth == 1:
        return recipe
    baseline = recipe.lr_schedule
    growth = growing(baseline, max_growth)
    # the batch is that of the progress at the beginning of a step, the rate that at its end: where they lie on both
    # sides of a doubling, one step has the old batch with the new rate
    return recipe.wrap(batch_size=lambda progress: recipe.batch_size(progress) * growth(progress)).swap(
        lr_schedule=lambda progress: baseline(progress) * growth(progress)
    )


def growing(schedule: Schedule, most: int) -> Callable[[float], int]:
    """Return the function progress -> growth of the batch: the power of two by which the rate has decayed by then."""
    peak = max((point / _GRID for point in range(_GRID + 1)), key=schedule)
    highest = schedule(peak)

    def growth(progress: float) -> int:
        if progress <= peak:
            return 1
        decayed = highest / max(schedule(progress), highest / most)
        return 1 << int(math.log2(max(1.0, decayed)))

    return growth
