"""Budget-linear decay: let the learning rate fall linearly, and reach zero exactly where the budget ends."""

from __future__ import annotations

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique
from effbench.schedules import warmed_up


@technique(
    "budgeted_training/training",
    paper="Li et al., Budgeted Training: Rethinking Deep Neural Network Training Under Resource Constraints, "
    "arXiv:1905.04753",
    claim="linear decay is robust, and the best schedule across budgets on ImageNet, COCO, Cityscapes and Kinetics",
    title="Budget-aware linear decay",
)
def budget_linear_decay(recipe: Recipe, *, warmup: float = 0.0) -> Recipe:
    """Let the learning rate fall linearly from its peak to zero over exactly the given budget.

    The factor is `1 - progress`, whatever the budget is counted in; the last step is at zero. As the rate vanishes the
    noise of the steps does, and the norm of the full gradient falls to the end: the paper's budgeted convergence.

    When it helps: every budget that is known beforehand; it is the strongest single rule, above all for small budgets
        (the paper). Without it as their baseline, several methods look better than they are (Kaddour et al., No Train
        No Gain, arXiv:2307.06440).
    When it does not: against our baselines, which decay linearly already, and have a short warm-up besides, which
        optimizers of Adam's kind and large batches need.

    warmup: share of the budget in which the rate rises; 0 is the paper's, without a warm-up.
    """
    if not 0.0 <= warmup < 1.0:
        raise InvalidTechnique(f"budget_linear_decay: warmup is {warmup}; it should be a share from 0 (none), below 1")

    def fall(progress: float) -> float:
        return (1.0 - progress) / (1.0 - warmup)

    return recipe.swap(lr_schedule=warmed_up(warmup, fall))
