"""SSP: workers read common weights that may be stale, but never by more than some steps."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from effbench import Batch, Recipe, Training, technique
from effbench.averages import tensors_of
from effbench.distributed.averaging import joined, spread
from effbench.distributed.data_parallel import check_processes, refuse
from effbench.distributed.serving import PUSH, SERVER, deal_to_workers, line_of, part, say_done, workers_of
from effbench.errors import InvalidTechnique

_HEAD = 2  # numbers before the changes of a message: its kind, and the clock that a read wants; or the slowest clock
_NOTHING = -1.0  # the clock of a message that wants no answer


@technique(
    "system_centric/model",
    paper="Ho et al., More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server, NeurIPS 2013 "
    "(no arXiv number). Surveyed in arXiv:2304.03589",
    claim="topic models and matrix factorisation on 32 to 64 CPU machines: faster to the same objective than bulk "
    "synchronous and than asynchronous updates",
    neutral={"processes": 1},
    conflicts=dict.fromkeys(
        ("gradual_magnitude_pruning", "rigl"), "workers keep other weights, and their sum keeps all"
    ),
    title="Stale synchronous parallel",
    unequal="each worker steps by itself from weights that lack what others did lately",
    races=True,
)
def ssp(recipe: Recipe, *, processes: int = 3, staleness: int = 3) -> Recipe:
    """Let workers add their changes to common weights, and wait only for those that are too many steps behind.

    Process 0 keeps the common weights and the clock of each of the others, the workers: the steps that it has taken. A
    worker takes its step with an optimizer of its own, on its share of the batch, and sends the change of its weights
    and floating-point buffers, divided by the number of workers; it sees its own changes at once. To begin step k it
    needs weights in which all steps before k - staleness of all workers are. Those that it has will do as long as they
    are so fresh; else it reads anew, and waits until there are such. So no two workers are more than `staleness` steps
    apart. With 0 and plain SGD, momentum or not, it is data parallelism. The largest distance is on record. A worker's
    budget is its own: where steps are counted, each takes all of them; the number of steps on record is that of the
    slowest. A worker sends 4 bytes for every element in each step, and is sent as many when it reads.

    When it helps: workers that are slow now and then, as on a shared machine, and slow links, for reads are rare.
    When it does not: a worker that is always slow, which holds up the others after `staleness` steps; links on which
        nothing waits, where fresh weights are worth more.

    processes: number of processes, the server among them; 1 turns it off.
    staleness: steps that a worker may be ahead of the slowest.
    """
    check_processes("ssp", processes)
    if staleness < 0:
        raise InvalidTechnique(f"ssp: staleness is {staleness}; it should be 0 or more steps")
    if processes == 1:
        return recipe
    refuse(recipe, "eval_model", "ssp evaluates the server's weights, and {others} would look at those of a worker")

    def gradient(training: Training, batch: Batch) -> Tensor:
        if training.group.rank != SERVER:
            memory_of(training)  # before the batch can change a buffer
        return dealt.gradient(training, batch)

    def update(training: Training) -> None:
        if training.group.rank == SERVER:
            serve(training, staleness)
            return
        recipe.update(training)
        with training.extra():
            push(training, staleness)

    def finish(training: Training) -> None:
        if training.group.rank == SERVER:
            serve(training, staleness, to_the_end=True)
            training.measured["largest_clock_gap_steps"] = max(training.kept["ssp"]["gaps"], default=0)
        else:
            say_done(training, length_of(training.model))
            training.kept.pop("ssp", None)  # whoever takes another step begins anew, as the server does
        part(training)
        recipe.finish(training)

    dealt = deal_to_workers(recipe, processes)
    return dealt.swap(in_step=False).wrap(gradient=gradient, update=update, finish=finish)


def table_of(model: nn.Module) -> list[Tensor]:
    """Return what is common: parameters, and buffers that can be added up."""
    return [tensor for tensor in tensors_of(model).values() if tensor.is_floating_point()]


def length_of(model: nn.Module) -> int:
    """Return how many numbers a message has."""
    return _HEAD + sum(tensor.numel() for tensor in table_of(model))


# --- the worker ---------------------------------------------------------------------------------------------------


def memory_of(training: Training) -> dict[str, Any]:
    """Return what a worker remembers: its view of the table, and up to which clock all changes are in it."""
    if "ssp" not in training.kept:
        training.kept["ssp"] = {"view": joined(table_of(training.model)), "fresh": 0, "clock": 0}
    memory: dict[str, Any] = training.kept["ssp"]
    return memory


def push(training: Training, staleness: int) -> None:
    """Send the change of a step; read the table where what this worker has is too old for the next one."""
    line, memory, table = line_of(training), memory_of(training), table_of(training.model)
    change = (joined(table) - memory["view"]) / (training.group.size - 1)
    memory["view"] += change
    memory["clock"] += 1
    is_stale = memory["fresh"] < memory["clock"] - staleness
    head = change.new_tensor([PUSH, memory["clock"] if is_stale else _NOTHING])
    dist.send(torch.cat([head, change]).cpu(), SERVER, line)
    if is_stale:
        answer = torch.empty(length_of(training.model), dtype=change.dtype)
        dist.recv(answer, SERVER, line)
        memory["fresh"], memory["view"] = int(answer[1]), answer[_HEAD:].to(change.device)
    spread(memory["view"], table)


# --- the server ---------------------------------------------------------------------------------------------------


def serve(training: Training, staleness: int, *, to_the_end: bool = False) -> None:
    """Add changes as they arrive, and answer each read as soon as no worker is too far behind."""
    workers, table = workers_of(training, length_of(training.model)), table_of(training.model)
    memory: dict[str, Any] = training.kept.setdefault("ssp", {"gaps": Counter[int](), "reads": dict[int, int]()})
    reads: dict[int, int] = memory["reads"]
    for rank, message in workers.messages(to_the_end=to_the_end):
        if message is not None:
            spread(joined(table) + message[_HEAD:].to(table[0].device), table)
            memory["gaps"][max(0, workers.clocks[rank] - 1 - workers.slowest)] += 1  # as it was during the step
            if message[1] != _NOTHING:
                reads[rank] = int(message[1])
        fresh = workers.slowest
        for reader in [reader for reader, clock in reads.items() if fresh >= clock - staleness]:
            del reads[reader]
            workers.answer(reader, torch.cat([table[0].new_tensor([PUSH, fresh]), joined(table)]).cpu())
    if workers.are_done:
        training.progress = 1.0  # whatever the server's own clock says
