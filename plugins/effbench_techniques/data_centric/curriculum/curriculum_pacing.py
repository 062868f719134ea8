"""Curriculum: easy examples first, and more and more of the others."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from effbench import Recipe, Training, technique
from effbench.aside import score, train_aside
from effbench.errors import InvalidTechnique, NotApplicable

ORDERS = ("easy", "hard", "random")
_PIECE = 32  # examples that are looked up together, shortly before they are trained on


@technique(
    "data_centric/curriculum",
    paper="Bengio et al., Curriculum Learning, ICML 2009; with the orders and pacing compared in Wu et al., When Do "
    "Curricula Work?, arXiv:2012.03107",
    claim="no order gains in the standard setting; easy first does under a short budget, or with noisy labels",
    neutral={"initial": 1.0},
    title="Curriculum with pacing",
)
def curriculum_pacing(
    recipe: Recipe, *, order: str = "easy", initial: float = 0.25, full: float = 0.5, scoring_steps: int = 50
) -> Recipe:
    """Show the easiest share of the examples first, and let it grow linearly until all are shown.

    Easy is what has a low loss by a scout: a model of the same kind that is trained on all examples for some steps
    before the first one. That, and its pass over the data set, are on the clock. Among the examples that are shown,
    the order is the baseline's; the epochs are shorter, and what is easy is seen more often.

    When it helps: short budgets and noisy labels (Wu et al.). The "random" order, which shows as many examples and
        scores none, is the control: what it gains as well is not due to the curriculum.
    When it does not: the standard setting, where a gain over the random order was not found; data sets so large that
        scoring takes a good part of the budget.

    order: which examples come first: "easy", "hard" (an anti-curriculum), or "random".
    initial: share of the examples that is shown at the beginning; 1 turns it off.
    full: share of the budget after which all examples are shown.
    scoring_steps: steps of training of the scout.
    """
    check(order, initial, full, scoring_steps)
    if "masked" in recipe.traits and order != "random":
        raise NotApplicable("curriculum_pacing scores examples once, and masks make other examples of these each time")
    if initial == 1.0:
        return recipe

    def rank(training: Training) -> None:
        count = len(recipe.dataset)
        if order == "random":
            training.kept["curriculum_pacing"] = torch.randperm(count, generator=training.rng)
            return
        scout = train_aside(recipe, training, torch.arange(count), scoring_steps)
        losses = score(recipe, training, scout, recipe.loss)
        training.kept["curriculum_pacing"] = losses.argsort(descending=order == "hard", stable=True).argsort()

    def sampler(training: Training) -> Iterator[Tensor]:
        for epoch in recipe.sampler(training):
            for piece in torch.split(epoch, _PIECE):
                ranks = training.kept.get("curriculum_pacing")
                shown = piece if ranks is None else piece[ranks[piece] < visible(training.progress, len(ranks))]
                if len(shown):
                    yield shown

    def visible(progress: float, count: int) -> int:
        share = initial + (1.0 - initial) * min(1.0, progress / full)
        return max(1, round(share * count))

    return recipe.wrap(sampler=sampler).at(0.0, rank)


def check(order: str, initial: float, full: float, scoring_steps: int) -> None:
    """Raise InvalidTechnique where an option is out of its range."""
    if order not in ORDERS:
        raise InvalidTechnique(
            f"curriculum_pacing: order is {order!r}; it should be one of {', '.join(map(repr, ORDERS))}"
        )
    if not 0.0 < initial <= 1.0:
        raise InvalidTechnique(f"curriculum_pacing: initial is {initial}; it should be a share above 0, up to 1 (off)")
    if not 0.0 < full <= 1.0:
        raise InvalidTechnique(f"curriculum_pacing: full is {full}; it should be a share of the budget above 0")
    if scoring_steps < 1:
        raise InvalidTechnique(f"curriculum_pacing: scoring_steps is {scoring_steps}; it should be 1 or more")
