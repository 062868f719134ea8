"""Budget-adaptive scheduler: shorten steps where they become slow, so that the planned number of updates still fits."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import median_low

from effbench import Batch, Recipe, Training, technique
from effbench.errors import InvalidTechnique
from effbench.optimizers import rate_for_batch

_HELPED = 0.9  # a halved batch should take less than this share of the time of the whole one
_FEWEST = 2  # examples that BatchNorm needs


@technique(
    "budgeted_training/training",
    paper="Shen et al., On Efficient Training of Large-Scale Deep Learning Models: A Literature Review, "
    "arXiv:2304.03589, outlook",
    claim="an open direction of the survey: training that adapts itself to the budget that remains",
    neutral={"smallest": 1.0},
    scope="element",
)
def budget_adaptive_scheduler(
    recipe: Recipe, *, smallest: float = 0.25, slowdown: float = 1.5, patience: int = 8
) -> Recipe:
    """Watch which share of the budget a step costs, and train on a part of each batch while steps cost too much.

    What the first steps cost says how many updates the budget would buy. When steps come to cost `slowdown` times as
    much (a neighbour on the machine, a processor that grows hot), the batch is halved, and the rate goes down with it:
    linearly for SGD, by the root for others. When steps are fast again, it is doubled. If half a batch is hardly
    cheaper, it is made whole again, and stays so. Rates, milestones and curricula follow the budget in any case.

    When it helps: budgets in seconds, on machines that do not keep their speed, and learning that needs its updates
        more than large batches.
    When it does not: budgets of steps, or of reference-seconds, in which every step costs the same: there it is the
        baseline. What is cut from a batch has been drawn, and is not trained on in this epoch.

    smallest: share of the batch that is always trained on, a power of a half; 1 turns it off.
    slowdown: how many times as much a step must cost, or more, before the batch is halved.
    patience: number of steps, the median of which is compared.
    """
    if not 0.0 < smallest <= 1.0:
        raise InvalidTechnique(
            f"budget_adaptive_scheduler: smallest is {smallest}; it should be a share above 0, up to 1 (off)"
        )
    if not slowdown > 1.0:
        raise InvalidTechnique(f"budget_adaptive_scheduler: slowdown is {slowdown}; it should be above 1")
    if patience < 3:
        raise InvalidTechnique(f"budget_adaptive_scheduler: patience is {patience}; it should be 3 steps or more")
    if smallest == 1.0:
        return recipe

    def cut(batch: Batch, training: Training) -> Batch:
        watch = training.kept.setdefault("budget_adaptive_scheduler", Watch(smallest, slowdown, patience))
        watch.look(training.progress)
        if watch.share < 1.0:
            batch = batch[: max(_FEWEST, round(watch.share * len(batch)))]
        return recipe.transform(batch, training)

    def update(training: Training) -> None:
        share = training.kept["budget_adaptive_scheduler"].share
        if share < 1.0:
            factor = rate_for_batch(training.optimizer, share)
            for group in training.optimizer.param_groups:  # the loop sets them anew before every step
                group["lr"] *= factor
        recipe.update(training)

    return recipe.wrap(transform=cut, update=update)


@dataclass(slots=True)
class Watch:
    """What steps cost, in shares of the budget, and which share of a batch is trained on."""

    smallest: float
    slowdown: float
    patience: int
    share: float = 1.0
    usual: float | None = None  # cost of a step in the beginning
    before: float | None = None  # cost of a step before the batch was halved, until it is known whether that helped
    is_futile: bool = False  # whether smaller batches turned out to be no cheaper
    progress: float | None = None  # at the beginning of the last step but the present one
    costs: deque[float] = field(default_factory=deque)

    def look(self, progress: float) -> None:
        """Hear the progress at which a step begins, and decide which share of its batch is trained on."""
        if self.progress is not None:
            self.costs.append(progress - self.progress)
        self.progress = progress
        if len(self.costs) < self.patience:
            return
        now = median_low(self.costs)  # one that was seen: the mean of a slow and a fast step is neither
        self.costs.popleft()
        if (share := self._decide(now)) != self.share:
            self.share = share
            self.costs.clear()

    def _decide(self, now: float) -> float:
        if self.usual is None:
            self.usual = now
            return self.share
        before, self.before = self.before, None
        if before is not None and now > _HELPED * before:
            self.is_futile = True
            return min(1.0, 2 * self.share)
        if now > self.slowdown * self.usual and self.share / 2 >= self.smallest and not self.is_futile:
            self.before = now
            return self.share / 2
        if self.share < 1.0 and 2 * now < (1.0 + self.slowdown) / 2 * self.usual:
            return 2 * self.share
        return self.share
