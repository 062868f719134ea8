"""Loader workers: threads that make the next batches while the present one is trained on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import Tensor

from effbench import Batch, Recipe, Training, technique
from effbench.errors import Conflict, InvalidTechnique
from effbench.recipe import Loader


@technique(
    "system_centric/data",
    paper="no paper: torch.utils.data.DataLoader, num_workers and prefetch_factor; as in Murray et al., tf.data: "
    "A Machine Learning Data Processing Framework, arXiv:2101.12127",
    claim="reading and decoding are hidden behind the step, where there is a core to spare",
    neutral={"workers": 0},
    after=["decode_on_load"],  # load ahead whatever loads
    title="Loader workers",
)
def dataloader_workers(recipe: Recipe, *, workers: int = 1, prefetch: int = 2) -> Recipe:
    """Load batches ahead in threads, so that a step finds its batch ready.

    Positions are drawn when they would be drawn without it, so that samplers which learn on the way choose as before;
    what has been drawn already, such as the order of an epoch, is loaded ahead. Batches and their order are the same.
    Workers are threads and not processes: indexing tensors and zlib let the interpreter go meanwhile, and nothing has
    to be sent.

    When it helps: budgets in wall seconds, a core to spare, and loading that takes long, as with `decode_on_load`.
    When it does not: data that lie in memory, where a batch takes a fraction of what handing it over costs; budgets of
        CPU time, which count the workers' as well; cores that the model keeps busy already.

    workers: how many threads load; 0 turns it off.
    prefetch: how many batches each of them is ahead.
    """
    for name, least, found in (("workers", 0, workers), ("prefetch", 1, prefetch)):
        if found < least:
            raise InvalidTechnique(f"dataloader_workers: {name} is {found}; it should be {least} or more")
    if workers == 0:
        return recipe
    if others := sorted({author for _, term, author in recipe.history if term == "processes"}):
        raise Conflict(f"dataloader_workers loads in threads, in which {' and '.join(others)} must not communicate")

    def ahead(training: Training) -> Ahead:
        if "dataloader_workers" not in training.kept:
            training.kept["dataloader_workers"] = Ahead(recipe.loader, workers, workers * prefetch)
        found: Ahead = training.kept["dataloader_workers"]
        return found

    def sampler(training: Training) -> Iterator[Tensor]:
        for chunk in recipe.sampler(training):
            ahead(training).drawn(chunk)
            yield chunk

    def load(positions: Tensor, training: Training) -> Batch:
        return ahead(training).load(positions, training)

    return recipe.wrap(sampler=sampler, loader=load)


class Ahead:
    """Loads the batches that will be asked for next, as far as their positions are known."""

    def __init__(self, loader: Loader, workers: int, depth: int) -> None:
        self._loader, self._depth = loader, depth
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="effbench-loader")
        self._known = torch.empty(0, dtype=torch.long)  # positions that are drawn and not asked for yet
        self._loading: deque[tuple[Tensor, Future[Batch]]] = deque()

    def drawn(self, chunk: Tensor) -> None:
        """Hear which (K,) positions come after those that are known."""
        self._known = torch.cat([self._known, chunk])

    def load(self, positions: Tensor, training: Training) -> Batch:
        """Return the batch at (B,) positions, and begin to load those after it, of the same size."""
        if self._loading and torch.equal(self._loading[0][0], positions):
            batch = self._loading.popleft()[1]
        else:  # the batch size has changed, or the batch reaches into a chunk that has just been drawn
            self._forget()
            batch = self._pool.submit(self._loader, positions, training)
        count = len(positions)
        if torch.equal(self._known[:count], positions):
            self._known = self._known[count:]
            self._look_ahead(count, training)
        return batch.result()

    def _look_ahead(self, count: int, training: Training) -> None:
        while len(self._loading) < self._depth:
            begin = len(self._loading) * count
            following = self._known[begin : begin + count]
            if len(following) < count:
                return
            self._loading.append((following, self._pool.submit(self._loader, following, training)))

    def _forget(self) -> None:
        for _, loading in self._loading:
            loading.cancel()
        self._loading.clear()
