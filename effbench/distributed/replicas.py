"""Replicas of a model in several processes, which average gradients while they compute them: DDP and its hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from torch import Tensor, nn
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel

from effbench.distributed.data_parallel import UNUSED_PARAMETERS, share_batches
from effbench.errors import InvalidTechnique
from effbench.recipe import Batch, Recipe, Training


class Bucket(Protocol):
    """Gradients that DDP exchanges together."""

    def buffer(self) -> Tensor:
        """Return all of them in one, (n,)."""

    def gradients(self) -> list[Tensor]:
        """Return them one by one, as views of the buffer."""

    def parameters(self) -> list[nn.Parameter]:
        """Return whose they are."""


#: How ranks make one gradient of theirs: (training, bucket) -> a future of the bucket's mean over the ranks, (n,).
Exchange = Callable[[Training, Bucket], "Future[Tensor]"]


def replicate(recipe: Recipe, processes: int, exchange: Exchange | None = None) -> Recipe:
    """Return a recipe that trains a replica of the model in each of several processes, on its share of every batch.

    Whatever takes a gradient gets the mean over the processes: each bucket of gradients is exchanged as soon as the
    backward pass has filled it.

    exchange: how; None for DDP's own all-reduce. What it remembers belongs in `training.kept`.

    Raises:
        NotApplicable: there are batches with fewer examples than processes.
    """
    unused, hooked = UNUSED_PARAMETERS in recipe.traits, f"{recipe.author} hooked"

    def place(model: nn.Module) -> nn.Module:
        return DistributedDataParallel(recipe.placement(model), find_unused_parameters=unused)

    shared = _explained(share_batches(recipe, processes)).wrap(placement=place)
    if exchange is None:
        return shared

    def gradient(training: Training, batch: Batch) -> Tensor:
        if training.kept.get(hooked) != training.generation:  # the model is placed anew with every generation
            assert isinstance(training.forward, DistributedDataParallel)
            training.forward.register_comm_hook(training, _without_annotations(exchange))
            training.kept[hooked] = training.generation
        return shared.gradient(training, batch)

    return shared.wrap(gradient=gradient)


def _explained(shared: Recipe) -> Recipe:
    """Return a recipe that says what to do where DDP waits for gradients that never come."""

    def gradient(training: Training, batch: Batch) -> Tensor:
        try:
            return shared.gradient(training, batch)
        except RuntimeError as fault:
            if "Expected to have finished reduction" not in str(fault):
                raise
            raise InvalidTechnique(
                f"{shared.author} waits for the gradients of all parameters, and a step left some without; a technique "
                f"that leaves some out adds the trait {UNUSED_PARAMETERS!r} to the recipe"
            ) from fault

    return shared.wrap(gradient=gradient)


def _without_annotations(exchange: Exchange) -> Callable[[Any, Any], Any]:
    """Return the same function; torch refuses one whose annotations are text."""
    return lambda training, bucket: exchange(training, bucket)  # noqa: PLW0108 - for its want of annotations


def done(tensor: Tensor) -> Future[Tensor]:
    """Return a future that is here."""
    future = Future[Tensor]()
    future.set_result(tensor)
    return future
