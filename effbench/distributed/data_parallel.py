"""What all data-parallel techniques share: every process takes its part of each batch."""

from __future__ import annotations

from torch import Tensor

from effbench.distributed.sharing import LEAST_WEIGHT
from effbench.errors import Conflict, InvalidTechnique, NotApplicable
from effbench.recipe import Batch, Recipe, Training

#: The trait that a technique adds when some steps leave parameters without a gradient.
UNUSED_PARAMETERS = "unused_parameters"


def share_batches(recipe: Recipe, processes: int, *, alike: bool = True) -> Recipe:
    """Return a recipe that trains in `processes` processes, each on its share of every batch: see `deal_batches`.

    Gradients are to be averaged over the processes afterwards: weights, which are shares of the whole step, are
    multiplied by the number of processes, so that the average is the gradient of the whole step.

    alike: see `deal_batches`.

    Raises:
        NotApplicable: there are batches with fewer examples than processes.
    """
    dealt = deal_batches(recipe, processes, processes, alike=alike)

    def gradient(training: Training, batch: Batch) -> Tensor:
        return recipe.gradient(training, batch.replace(weight=batch.weight * training.group.size))

    return dealt.wrap(gradient=gradient)


def deal_batches(recipe: Recipe, processes: int, shares: int, *, alike: bool = True) -> Recipe:
    """Return a recipe that trains in `processes` processes and cuts each batch into `shares`, for as many of them each.

    All processes draw the same positions, load and transform the same whole batch with the same random numbers, and
    then one whose share is number s takes the examples s, s + shares, ...: so whatever is drawn, mixed or chosen is
    what one process would have drawn, mixed or chosen, and nobody need be asked what the whole weighs. Shares are dealt
    to neighbours: the first processes get share 0. Where another technique changed the sampler, which may then depend
    on what a process has seen, rank 0 says which positions are drawn.

    The weights of the shares sum to one. Where several processes have the same share, those of each sum to its part.

    shares: a divisor of `processes`; 1 gives all of them the whole batch.
    alike: whether rank 0 must be asked at all; where replicas differ anyway, each may draw for itself.

    Raises:
        NotApplicable: there are batches with fewer examples than shares.
    """
    if (smallest := min(recipe.batch_size(0.0), recipe.batch_size(1.0))) < shares:
        raise NotApplicable(f"{recipe.author} has {shares} processes share batches of {smallest} examples")

    def load(positions: Tensor, training: Training) -> Batch:
        return recipe.loader(training.group.first(positions), training)

    def deal(whole: Batch, training: Training) -> Batch:
        if len(whole) < shares:
            raise NotApplicable(f"a batch of {len(whole)} examples cannot be shared by {shares} processes")
        total = whole.weight.sum().clamp_min(LEAST_WEIGHT)
        own = whole[training.group.rank * shares // processes :: shares]
        return own.replace(weight=own.weight / total)

    dealt = recipe.swap(processes=processes, share=deal)
    may_disagree = alike and any(term == "sampler" for _, term, _ in recipe.history)
    return dealt.wrap(loader=load) if may_disagree else dealt


def check_processes(technique: str, processes: int) -> None:
    """Raise InvalidTechnique where `processes` is no number of processes."""
    if processes < 1:
        raise InvalidTechnique(f"{technique}: processes is {processes}; it should be 1 (off) or more")


def refuse(recipe: Recipe, term: str, why: str) -> None:
    """Raise Conflict where another technique has changed `term`, for a reason that names the `{others}`."""
    if others := sorted({author for _, changed, author in recipe.history if changed == term and author}):
        raise Conflict(why.format(others=" and ".join(others)))
