"""Quality annealing: show everything first, and more of the best while the learning rate falls."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from effbench import Recipe, Training, technique
from effbench.aside import score
from effbench.errors import InvalidTechnique, NotApplicable

QUALITIES = ("loss", "random")
_PIECE = 32  # examples that are looked up together, shortly before they are trained on
_KEPT = "quality_annealing"


@technique(
    "data_centric/curriculum",
    paper="Hu et al., MiniCPM: Unveiling the Potential of Small Language Models with Scalable Training Strategies, "
    "arXiv:2404.06395",
    claim="curated data that are mixed in while the rate decays give a large gain on benchmarks, over the same data "
    "after pre-training",
    neutral={"ratio": 0.0},
)
def quality_annealing(
    recipe: Recipe, *, ratio: float = 0.5, start: float = 0.8, best: float = 0.25, quality: str = "loss"
) -> Recipe:
    """Replace a share of the examples, late in training, by others that are drawn from the best.

    The authors add curated data. Here nobody has judged the examples, so at `start` the model in training looks at each
    of them, which is on the clock, and the best are those of lowest loss: text that is typical, pictures that are
    clear, labels that are right. From then on each example that the baseline's order brings is replaced with the
    probability `ratio` by a random one of them. Until then, and for the rest, the order is the baseline's.

    When it helps: broad, noisy data with a clean part, and a rate that falls at the end, as that of `wsd`.
    When it does not: clean data, of which the best by this measure are what has been learnt already. The "random"
        quality, which repeats as many examples and looks at none, is its control.

    ratio: share of the late examples that come from the best; 0 turns it off.
    start: share of the budget after which they do.
    best: share of all examples that are the best.
    quality: what makes an example one of the best: a low "loss", or a "random" draw.
    """
    check(ratio, start, best, quality)
    if "masked" in recipe.traits and quality != "random":
        raise NotApplicable("quality_annealing scores examples once, and masks make other examples of these each time")
    if ratio == 0.0:
        return recipe

    def choose(training: Training) -> None:
        count = len(recipe.dataset)
        if quality == "random":
            ranked = torch.randperm(count, generator=training.rng)
        else:
            ranked = score(recipe, training, training.model, recipe.loss).argsort(stable=True)
        training.kept[_KEPT] = ranked[: max(1, round(best * count))]

    def sampler(training: Training) -> Iterator[Tensor]:
        for epoch in recipe.sampler(training):
            for piece in torch.split(epoch, _PIECE):
                chosen: Tensor | None = training.kept.get(_KEPT)
                yield piece if chosen is None else annealed(piece, chosen, ratio, training.rng)

    return recipe.wrap(sampler=sampler).at(start, choose)


def annealed(positions: Tensor, chosen: Tensor, ratio: float, random: torch.Generator) -> Tensor:
    """Return (K,) positions, each with probability `ratio` replaced by one of the chosen."""
    others = chosen[torch.randint(len(chosen), positions.shape, generator=random)]
    return torch.where(torch.rand(positions.shape, generator=random) < ratio, others, positions)


def check(ratio: float, start: float, best: float, quality: str) -> None:
    """Raise InvalidTechnique where an option is out of its range."""
    if quality not in QUALITIES:
        known = " or ".join(map(repr, QUALITIES))
        raise InvalidTechnique(f"quality_annealing: quality is {quality!r}; it should be {known}")
    if not 0.0 <= ratio <= 1.0:
        raise InvalidTechnique(f"quality_annealing: ratio is {ratio}; it should be a share, from 0 (off) to 1")
    if not 0.0 <= start < 1.0:
        raise InvalidTechnique(f"quality_annealing: start is {start}; it should be a share from 0, below 1")
    if not 0.0 < best <= 1.0:
        raise InvalidTechnique(f"quality_annealing: best is {best}; it should be a share above 0, up to 1")
