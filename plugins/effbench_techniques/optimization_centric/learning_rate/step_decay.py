"""Step decay: divide the learning rate by ten at fixed shares of the budget."""

from __future__ import annotations

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique
from effbench.schedules import warmed_up

_ROUNDING = 1e-9  # a progress is a quotient; the step that ends at a drop is the last before it


@technique(
    "optimization_centric/learning_rate",
    paper="He et al., Deep Residual Learning for Image Recognition, arXiv:1512.03385",
    claim="the schedule of ImageNet's classic results, and what Budgeted Training (arXiv:1905.04753) compares against",
)
def step_decay(
    recipe: Recipe,
    *,
    drops: tuple[float, ...] = (1 / 3, 2 / 3),
    factor: float = 0.1,
    warmup: float = 0.05,
) -> Recipe:
    """Keep the learning rate constant, and multiply it by `factor` at fixed shares of the budget.

    The defaults are ImageNet's 30, 60 and 90 epochs, as shares of the 90. It is the control of all schedules that
    decay smoothly: it ends at `factor ** len(drops)` of the peak, not at zero.

    When it helps: budgets of many epochs, where every plateau has the time to converge.
    When it does not: small budgets, at which linear decay is better on ImageNet, COCO, Cityscapes and Kinetics (Li et
        al., Budgeted Training, arXiv:1905.04753).

    drops: shares of the budget after which the rate falls, rising; an empty list turns the decay off.
    factor: what the rate is multiplied by at each drop; 1 turns the decay off.
    warmup: share of the budget in which the rate rises, before the first drop; 0 turns the warm-up off.
    """
    if not all(isinstance(drop, int | float) and 0.0 < drop < 1.0 for drop in drops) or sorted(drops) != list(drops):
        raise InvalidTechnique(f"step_decay: drops is {drops!r}; it should be rising shares of the budget, in (0, 1)")
    if not 0.0 < factor <= 1.0:
        raise InvalidTechnique(f"step_decay: factor is {factor}; it should be above 0, up to 1 (no decay)")
    if not 0.0 <= warmup < (drops[0] if drops else 1.0):
        raise InvalidTechnique(
            f"step_decay: warmup is {warmup}; it should be a share from 0 (none), and end before the first drop"
        )

    def fall(progress: float) -> float:
        return factor ** sum(progress > drop + _ROUNDING for drop in drops)

    return recipe.swap(lr_schedule=warmed_up(warmup, fall))
