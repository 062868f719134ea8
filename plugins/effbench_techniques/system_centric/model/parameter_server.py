"""Parameter server: one process keeps the weights, to which workers push gradients and from which they pull weights."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from effbench import Recipe, Training, technique
from effbench.averages import parameters_of
from effbench.distributed.averaging import joined, spread
from effbench.distributed.data_parallel import check_processes
from effbench.distributed.serving import PUSH, SERVER, deal_to_workers, line_of, part, say_done, workers_of
from effbench.errors import Conflict
from effbench.train import set_rate

_HEAD = 2  # numbers before the flags of a message: its kind, and the factor of the learning rate


@technique(
    "system_centric/model",
    paper="Li et al., Scaling Distributed Machine Learning with the Parameter Server, OSDI 2014 (no arXiv number); "
    "asynchronous as in Dean et al., Large Scale Distributed Deep Networks, 2012. Surveyed in arXiv:2304.03589",
    claim="sparse logistic regression on 636 TB with 1000 machines; asynchrony hides slow links and slow machines",
    neutral={"processes": 1},
    title="Parameter server",
)
def parameter_server(recipe: Recipe, *, processes: int = 3, asynchronous: bool = False) -> Recipe:
    """Let workers push the gradients of their shares of every batch to a server, which steps, and pull its weights.

    Process 0 is the server, the others are workers: two processes have one worker. The whole update, clipping and
    averaging included, is the server's; it has the mean of the workers' BatchNorm statistics, too. Synchronous, the
    server waits for the gradients of all workers and takes one step with their mean: the weights are those of one
    process, but for rounding. Asynchronous, it takes a step as soon as a gradient arrives, at the learning rate divided
    by the number of workers, so that a round of pushes goes as far as one step; nobody waits, and a gradient is stale
    by the steps that the server has taken since its worker pulled the weights. Staleness is on record, its mean and its
    largest. A worker's budget is its own: where steps are counted, each takes all of them; the number of steps on
    record is that of the slowest. Per step each worker sends 4 bytes for every parameter, element of a buffer, and
    tensor, and is sent 4 for every parameter.

    When it helps: workers that differ in speed, if asynchronous.
    When it does not: one server's link carries what all workers send; stale gradients cost quality at high rates, with
        momentum above all.

    processes: number of processes, the server among them; 1 turns it off.
    asynchronous: whether the server waits for no worker.
    """
    check_processes("parameter_server", processes)
    if processes == 1:
        return recipe
    _refuse_two_sided(recipe)

    def update(training: Training) -> None:
        if training.group.rank != SERVER:
            with training.extra():
                push_and_pull(training)
        elif asynchronous:
            serve_each(recipe, training)
        else:
            serve_all(recipe, training)

    def finish(training: Training) -> None:
        if training.group.rank == SERVER:
            serve_each(recipe, training, to_the_end=True)
            training.measured |= staleness_of(training)
        else:
            say_done(training, length_of(training.model))
        part(training)
        recipe.finish(training)

    dealt = deal_to_workers(recipe, processes).wrap(update=update)
    return dealt.swap(in_step=False).wrap(finish=finish) if asynchronous else dealt


def _refuse_two_sided(recipe: Recipe) -> None:
    """Raise Conflict where a technique takes gradients and spends them, for here other processes do the one."""
    terms: dict[str, set[str]] = {}
    for _, term, author in recipe.history:
        terms.setdefault(author, set()).add(term)
    both = [author for author, theirs in terms.items() if "gradient" in theirs and theirs & {"update", "optimizer"}]
    if others := " and ".join(sorted(filter(None, both))):
        raise Conflict(
            f"parameter_server takes gradients in other processes than it spends them in, and {others} would do both"
        )


def push_and_pull(training: Training) -> None:
    """Send the server what a step has found, and go on from the weights that it answers with."""
    line, weights = line_of(training), list(parameters_of(training.model).values())
    dist.send(push_of(training), SERVER, line)
    pulled = torch.empty(sum(weight.numel() for weight in weights), dtype=weights[0].dtype)
    dist.recv(pulled, SERVER, line)
    spread(pulled.to(weights[0].device), weights)
    training.optimizer.zero_grad(set_to_none=True)


def serve_all(recipe: Recipe, training: Training) -> None:
    """Wait for the gradients of all workers, take one step with their mean, and send all the new weights."""
    workers = workers_of(training, length_of(training.model))
    pushed = dict(workers.messages(in_step=True))
    in_order = [message for rank in sorted(pushed) if (message := pushed[rank]) is not None]  # so that sums repeat
    take(training, torch.stack(in_order).mean(0), 1.0)
    recipe.update(training)
    for rank in pushed:
        workers.answer(rank, weights_of(training))


def serve_each(recipe: Recipe, training: Training, *, to_the_end: bool = False) -> None:
    """Take a step with each gradient that arrives, and send its worker the new weights."""
    workers, memory = workers_of(training, length_of(training.model)), memory_of(training)
    for rank, message in workers.messages(to_the_end=to_the_end):
        if message is None:
            continue
        memory["staleness"][memory["version"] - memory["pulled"].get(rank, 0)] += 1
        count = len(workers.clocks)
        take(training, message, 1.0 / count)
        set_rate(training, float(message[1]) / count)
        recipe.update(training)
        memory["version"] += 1
        memory["pulled"][rank] = memory["version"]
        workers.answer(rank, weights_of(training))
    if workers.are_done:
        training.progress = 1.0  # whatever the server's own clock says


def memory_of(training: Training) -> dict[str, Any]:
    """Return what the server remembers: its version, which one each worker has, how often it saw which staleness."""
    fresh = {"version": 0, "pulled": dict[int, int](), "staleness": Counter[int]()}
    memory: dict[str, Any] = training.kept.setdefault("parameter_server", fresh)
    return memory


def staleness_of(training: Training) -> dict[str, float]:
    """Return the mean and the largest staleness of all gradients, in steps of the server."""
    seen: Counter[int] = memory_of(training)["staleness"]
    mean = sum(steps * times for steps, times in seen.items()) / max(1, seen.total())
    return {"mean_staleness_steps": mean, "largest_staleness_steps": max(seen, default=0)}


def length_of(model: nn.Module) -> int:
    """Return how many numbers a worker sends."""
    return _HEAD + sum(1 + p.numel() for p in model.parameters()) + sum(b.numel() for b in averaged_buffers(model))


def averaged_buffers(model: nn.Module) -> list[Tensor]:
    """Return the buffers that have a mean, such as BatchNorm's statistics."""
    return [buffer for buffer in model.buffers() if buffer.is_floating_point()]


def push_of(training: Training) -> Tensor:
    """Return a message: its kind, the rate's factor, which parameters have a gradient, the gradients, the buffers."""
    parameters, group = list(training.model.parameters()), training.optimizer.param_groups[0]
    factor = group["lr"] / group["initial_lr"] if group["initial_lr"] else 1.0
    head = torch.tensor([PUSH, factor, *(float(p.grad is not None) for p in parameters)], device=parameters[0].device)
    slopes = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    return joined([head, *slopes, *averaged_buffers(training.model)]).to(parameters[0].dtype).cpu()


def take(training: Training, message: Tensor, share: float) -> None:
    """Let the model have the gradients of a message, and buffers that come nearer to the message's by a share."""
    parameters, buffers = list(training.model.parameters()), averaged_buffers(training.model)
    sizes = [_HEAD, len(parameters), sum(p.numel() for p in parameters), sum(b.numel() for b in buffers)]
    _, have, slopes, statistics = torch.split(message.to(parameters[0].device), sizes)
    for parameter, has in zip(parameters, have.tolist(), strict=True):
        parameter.grad = torch.empty_like(parameter) if has else None
    spread(slopes, [torch.empty_like(p) if p.grad is None else p.grad for p in parameters])
    if buffers:
        spread(joined(buffers).lerp(statistics.to(buffers[0].dtype), share), buffers)


def weights_of(training: Training) -> Tensor:
    """Return the weights as a worker pulls them."""
    return joined(list(parameters_of(training.model).values())).cpu()
