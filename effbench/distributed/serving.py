"""One rank that serves the others, which are workers: how batches are dealt, and how it hears whoever speaks first."""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from effbench.distributed.sharing import LEAST_WEIGHT
from effbench.errors import Conflict, NotApplicable
from effbench.recipe import Batch, Recipe, Training

SERVER = 0  # the rank that serves: it holds the weights that are evaluated
PUSH, DONE = 0.0, 1.0  # kinds of messages of a worker: the first number of each


def deal_to_workers(recipe: Recipe, processes: int) -> Recipe:
    """Return a recipe in which rank 0 serves, and each other rank takes its part of every batch.

    All ranks draw, load and transform whole batches, each at its own time; of n - 1 workers rank r takes the examples
    r - 1, r - 1 + (n - 1), ... The weights of a part are those of the whole step, times the number of workers, so that
    the mean over workers is the gradient of the step. Each worker draws for itself.

    Raises:
        NotApplicable: there are batches with fewer examples than workers.
        Conflict: another technique would change the model on the way, which server and workers reach at their own time.
    """
    workers = processes - 1
    if (smallest := min(recipe.batch_size(0.0), recipe.batch_size(1.0))) < workers:
        raise NotApplicable(f"{recipe.author} has {workers} workers share batches of {smallest} examples")
    if others := sorted({author for _, term, author in recipe.history if term == "milestones" and author}):
        raise Conflict(
            f"{recipe.author} has every worker at a step of its own, and {' and '.join(others)} would do something to "
            "all of them at once"
        )

    def deal(whole: Batch, training: Training) -> Batch:
        if len(whole) < workers:
            raise NotApplicable(f"a batch of {len(whole)} examples cannot be shared by {workers} workers")
        if training.group.rank == SERVER:
            return whole
        part = whole[training.group.rank - 1 :: workers]
        return part.replace(weight=part.weight * workers / whole.weight.sum().clamp_min(LEAST_WEIGHT))

    def gradient(training: Training, batch: Batch) -> Tensor:
        return torch.zeros(1) if training.group.rank == SERVER else recipe.gradient(training, batch)

    return recipe.swap(processes=processes, share=deal).wrap(gradient=gradient)


class Inbox:
    """Messages from several ranks, in the order in which they arrive.

    A thread waits for each sender: who waits for anybody is not told by gloo that somebody has died.

    receive: waits for a message of a rank.
    """

    def __init__(self, senders: Sequence[int], receive: Callable[[int], Tensor]) -> None:
        self._asked: dict[int, queue.SimpleQueue[bool]] = {rank: queue.SimpleQueue() for rank in senders}
        self._arrived: queue.SimpleQueue[tuple[int, Tensor | Exception]] = queue.SimpleQueue()
        for rank, asked in self._asked.items():
            threading.Thread(target=_listen, args=(rank, receive, asked, self._arrived), daemon=True).start()
        weakref.finalize(self, _let_go, list(self._asked.values()))

    def expect(self, rank: int) -> None:
        """Be ready for one more message of a rank."""
        self._asked[rank].put(True)

    def next(self) -> tuple[int, Tensor]:
        """Wait for the next message; return the rank of its sender with it.

        Raises whatever ended a connection.
        """
        rank, message = self._arrived.get()
        if isinstance(message, Exception):
            raise message
        return rank, message


def _listen(
    rank: int,
    receive: Callable[[int], Tensor],
    asked: queue.SimpleQueue[bool],
    arrived: queue.SimpleQueue[tuple[int, Tensor | Exception]],
) -> None:
    while asked.get():
        try:
            arrived.put((rank, receive(rank)))
        except Exception as fault:  # noqa: BLE001 - whoever waits for it shall hear of it
            arrived.put((rank, fault))
            return


def _let_go(asked: Sequence[queue.SimpleQueue[bool]]) -> None:
    for each in asked:
        each.put(False)


class Workers:
    """What the server knows of its workers, and its connection with them.

    clocks: rank -> steps whose outcome has arrived.
    """

    def __init__(self, training: Training, length: int, dtype: torch.dtype) -> None:
        line = connect()
        self.clocks = dict.fromkeys(range(1, training.group.size), 0)
        self._line, self._done, self._rounds = line, set[int](), 0
        self._expected, self._sent = set[int](), dict[int, tuple[dist.Work, Tensor]]()

        def receive(rank: int) -> Tensor:
            blank = torch.empty(length, dtype=dtype)
            dist.recv(blank, rank, line)
            return blank

        self._inbox = Inbox(list(self.clocks), receive)

    @property
    def slowest(self) -> int:
        """The clock of the slowest worker that is still at work; of all, where none is."""
        return min(clock for rank, clock in self.clocks.items() if rank not in self._done or self.are_done)

    @property
    def are_done(self) -> bool:
        """Whether all have spent their budget."""
        return len(self._done) == len(self.clocks)

    def messages(self, *, in_step: bool = False, to_the_end: bool = False) -> Iterator[tuple[int, Tensor | None]]:
        """Yield (rank, message) of workers until the slowest has taken one more step, or all have spent their budget.

        The clock of a worker has counted the step already. Instead of a message, None comes from one that has spent its
        budget.

        in_step: whether a worker waits for all others before it says anything again.
        to_the_end: go on until all have spent their budget.
        """
        self._rounds += 1
        for rank in self.clocks:
            self._expect(rank)
        while not self.are_done and (to_the_end or self.slowest < self._rounds):
            rank, message = self._inbox.next()
            self._expected.discard(rank)
            if message[0] == DONE:
                self._done.add(rank)
                yield rank, None
                continue
            self.clocks[rank] += 1
            if not in_step:
                self._expect(rank)
            yield rank, message

    def answer(self, rank: int, message: Tensor) -> None:
        """Send a worker a message, and go on meanwhile; it has had the one before, for it has answered."""
        if rank in self._sent:
            self._sent[rank][0].wait()
        work = dist.isend(message, rank, self._line)
        assert work is not None
        self._sent[rank] = work, message

    def _expect(self, rank: int) -> None:
        if rank not in self._expected | self._done:
            self._expected.add(rank)
            self._inbox.expect(rank)


def workers_of(training: Training, length: int) -> Workers:
    """Return the server's connection with its workers, who speak in vectors of `length` numbers."""
    if "serving" not in training.kept:
        training.kept["serving"] = Workers(training, length, next(training.model.parameters()).dtype)
    workers: Workers = training.kept["serving"]
    return workers


def line_of(training: Training) -> dist.ProcessGroup:
    """Return a worker's connection with the server."""
    if "serving" not in training.kept:
        training.kept["serving"] = connect()
    line: dist.ProcessGroup = training.kept["serving"]
    return line


def connect() -> dist.ProcessGroup:
    """Connect all ranks by lines that no other run uses; all of them must ask for it."""
    line: dist.ProcessGroup = dist.new_group()
    return line


def say_done(training: Training, length: int) -> None:
    """Tell the server that this worker has spent its budget, in a vector of `length` numbers."""
    message = torch.full((length,), DONE, dtype=next(training.model.parameters()).dtype)
    dist.send(message, SERVER, line_of(training))


def part(training: Training) -> None:
    """Wait for all ranks, of which each has spent its budget, and count what the workers together have done.

    Steps are those of the slowest; examples and tokens those that all have drawn.
    """
    group, serving = training.group.together(), training.kept["serving"]
    if isinstance(serving, Workers):
        training.step = serving.slowest
    workers, is_worker = group.size - 1, group.rank != SERVER
    examples, tokens = (group.sum_float(is_worker * own) for own in (training.examples, training.tokens))
    training.examples, training.tokens = round(examples / workers), round(tokens / workers)
    del training.kept["serving"]
