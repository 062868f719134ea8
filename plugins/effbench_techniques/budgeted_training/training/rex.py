"""REX: reflect an exponential, so that the learning rate falls late and fast."""

from __future__ import annotations

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique
from effbench.schedules import warmed_up


@technique(
    "budgeted_training/training",
    paper="Chen et al., REX: Revisiting Budgeted Training with an Improved Schedule, arXiv:2107.04197",
    claim="the best or near the best schedule at low and at high budgets, for seven vision and language tasks",
    title="REX",
)
def rex(recipe: Recipe, *, warmup: float = 0.05) -> Recipe:
    """Let the learning rate fall slowly at first and fast at the end, to zero exactly where the budget ends.

    The factor is `(1 - t) / (1/2 + (1 - t) / 2)`, where t runs from 0 to 1 over what the warm-up leaves of the budget:
    between a linear decay and one that begins late. It updates at every step, as the paper finds best.

    When it helps: small and large budgets alike, without a choice of when to decay (the paper).
    When it does not: where linear decay is the baseline, as here, most of it is won already.

    warmup: share of the budget in which the rate rises; 0 turns the warm-up off.
    """
    if not 0.0 <= warmup < 1.0:
        raise InvalidTechnique(f"rex: warmup is {warmup}; it should be a share from 0 (none), below 1")

    def fall(progress: float) -> float:
        left = max(0.0, (1.0 - progress) / (1.0 - warmup))
        return left / (0.5 + 0.5 * left)

    return recipe.swap(lr_schedule=warmed_up(warmup, fall))
