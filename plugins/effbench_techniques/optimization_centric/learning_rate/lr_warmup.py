"""Learning-rate warm-up: let the rate rise along a straight line before it follows its schedule."""

from __future__ import annotations

from effbench import Recipe, technique
from effbench.errors import InvalidTechnique

_OFFSET = 0.02  # of the warm-up: the first step should count


@technique(
    "optimization_centric/learning_rate",
    paper="Goyal et al., Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour, arXiv:1706.02677",
    claim="ImageNet, ResNet-50: batches of 8192 match batches of 256, which without it they miss",
    neutral={"share": 0.0},
    after=[  # hold down whichever schedule there is
        "batch_size_schedule",
        "budget_linear_decay",
        "cosine_decay",
        "cyclical_lr",
        "one_cycle",
        "rex",
        "schedule_free",
        "step_decay",
        "wsd",
    ],
    title="Learning-rate warm-up",
)
def lr_warmup(recipe: Recipe, *, share: float = 0.2) -> Recipe:
    """Hold the rate below a line that rises from almost zero to the schedule's own rate, where the warm-up ends.

    Early gradients are large and point here and there, and Adam's second moments rest on few of them; small steps wait
    until both have settled. The schedule is kept, whichever it is: from the end of the warm-up on it is followed, and
    before that the lower of schedule and line counts.

    When it helps: large batches, high rates, Adam and transformers; schedules that begin at their peak, such as
        `step_decay` with `warmup = 0`.
    When it does not: against our baselines, which warm up over 5 or 10 % of the budget themselves, a longer warm-up
        only takes time from the high rates.

    share: share of the budget in which the rate rises; 0 turns it off.
    """
    if not 0.0 <= share < 1.0:
        raise InvalidTechnique(f"lr_warmup: share is {share}; it should be a share of the budget from 0 (off), below 1")
    if share == 0.0:
        return recipe

    def held_down(progress: float) -> float:
        factor = recipe.lr_schedule(progress)
        if progress >= share:
            return factor
        line = (progress + _OFFSET * share) / (share + _OFFSET * share)
        return min(factor, line * recipe.lr_schedule(share))

    return recipe.wrap(lr_schedule=held_down)
