"""Cyclical learning rates: let the rate rise and fall in triangles."""

from __future__ import annotations

import math

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique


@technique(
    "optimization_centric/learning_rate",
    paper="Smith, Cyclical Learning Rates for Training Neural Networks, arXiv:1506.01186",
    claim="CIFAR-10: 81.4 % after 25,000 instead of 70,000 steps",
    title="Cyclical learning rates",
)
def cyclical_lr(recipe: Recipe, *, cycles: int = 3, low: float = 0.01, shrink: float = 1.0) -> Recipe:
    """Let the learning rate go up and down between two bounds, in triangles, and end with the budget at the lower one.

    The rate rises linearly from `low` to the peak in the first half of each cycle and falls back in the second. With
    `shrink` 0.5 the height of each triangle is half that of the one before: the paper's "triangular2".

    When it helps: rates that are not tuned: somewhere between the bounds is a good one. With NAdamW, it scored 0.630
        in AlgoPerf where the baseline had 0.571 (Kasimbeg et al., arXiv:2502.15015).
    When it does not: a fixed budget, in which only the end counts: every cycle but the last throws its decay away.

    cycles: number of triangles in the budget, 1 or more.
    low: lower bound, as a share of the peak; the paper's rule is a quarter to a third, 0.01 decays almost fully.
    shrink: height of each triangle as a share of the one before it, above 0; 1 turns the shrinking off.
    """
    if cycles < 1:
        raise InvalidTechnique(f"cyclical_lr: cycles is {cycles}; it should be 1 or more")
    if not 0.0 < low < 1.0:
        raise InvalidTechnique(f"cyclical_lr: low is {low}; it should be a share of the peak between 0 and 1")
    if not 0.0 < shrink <= 1.0:
        raise InvalidTechnique(f"cyclical_lr: shrink is {shrink}; it should be a share above 0, up to 1 (off)")

    def triangles(progress: float) -> float:
        cycle = min(cycles - 1, math.floor(cycles * progress))
        height = 1.0 - abs(2.0 * (cycles * progress - cycle) - 1.0)
        return low + (1.0 - low) * height * shrink**cycle

    return recipe.swap(lr_schedule=triangles)
