"""WSD: warm up, keep the learning rate stable, decay at the end."""

from __future__ import annotations

import math

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique
from effbench.schedules import warmed_up


@technique(
    "optimization_centric/learning_rate",
    paper="Hu et al., MiniCPM, arXiv:2404.06395; Haegele et al., Scaling Laws and Compute-Optimal Training Beyond "
    "Fixed Training Durations, arXiv:2405.18392",
    claim="a cooldown over a fifth of the steps matches a cosine, and one plateau serves runs of any length",
    title="Warm-up, stable, decay",
)
def wsd(recipe: Recipe, *, warmup: float = 0.05, decay: float = 0.4, shape: str = "linear") -> Recipe:
    """Keep the learning rate at its peak until the last part of the budget, and decay it to zero there.

    On the plateau nothing depends on where the end is: without a warm-up, runs of two budgets are the same, bit by
    bit, until the shorter one begins to decay; so any checkpoint of the plateau can be cooled down to a finished model.

    When it helps: when one run is to give models for several budgets. Every record of modded-nanogpt has a trapezoid,
        whose decay takes 0.4 to 0.45 of the steps.
    When it does not: for a single budget that is known it matches cosine and linear decay, and does not beat them by
        much (arXiv:2405.18392); a short decay leaves much of the gain behind.

    warmup: share of the budget in which the rate rises; 0 turns the warm-up off.
    decay: share of the budget in which the rate falls to zero, at its end; above 0.
    shape: how it falls: "linear", or "sqrt", which is 1 - sqrt(share of the decay that is over).
    """
    if not 0.0 <= warmup < 1.0:
        raise InvalidTechnique(f"wsd: warmup is {warmup}; it should be a share from 0 (none), below 1")
    if not 0.0 < decay <= 1.0 - warmup:
        raise InvalidTechnique(
            f"wsd: decay is {decay} and warmup {warmup}; decay should be a share above 0, and both 1 at most"
        )
    if shape not in {"linear", "sqrt"}:
        raise InvalidTechnique(f"wsd: shape is {shape!r}; it should be 'linear' or 'sqrt'")

    def trapezoid(progress: float) -> float:
        falling = min(1.0, max(0.0, (progress - (1.0 - decay)) / decay))
        return 1.0 - (math.sqrt(falling) if shape == "sqrt" else falling)

    return recipe.swap(lr_schedule=warmed_up(warmup, trapezoid))
