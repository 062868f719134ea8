"""Ring all-reduce: sum gradients by sending parts of them around a ring, so that no rank sends more for more ranks."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor
from torch.futures import Future

from effbench import Recipe, Training, technique
from effbench.distributed.data_parallel import check_processes
from effbench.distributed.replicas import Bucket, done, replicate


@technique(
    "system_centric/optimization",
    paper="Patarasuk and Yuan, Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations, Journal of "
    "Parallel and Distributed Computing 69(2), 2009; brought to deep learning by Sergeev and Del Balso, Horovod, "
    "arXiv:1802.05799",
    claim="each of N ranks sends 2 (N - 1) / N times the gradient, which no algorithm can undercut",
    neutral={"processes": 1},
    title="Ring all-reduce",
)
def ring_allreduce(recipe: Recipe, *, processes: int = 2) -> Recipe:
    """Average the gradients of several replicas around a ring, written out in sends and receives.

    The gradient is cut into as many parts as there are ranks. Each part goes around the ring once and gathers the sum,
    and once more to bring it to all. Batches are divided as with ddp, and so are the exceptions: BatchNorm and dropout.
    The sum is that of torch's own all-reduce, for two ranks bit by bit.

    When it helps: it is what libraries do where bandwidth is what limits; written out, its bytes can be counted.
    When it does not: 2 (N - 1) messages one after the other: where latency is what limits, trees are faster. It waits
        for each part, where ddp computes on meanwhile.

    processes: number of processes; 1 turns it off.
    """
    check_processes("ring_allreduce", processes)
    return recipe if processes == 1 else replicate(recipe, processes, average)


def average(training: Training, bucket: Bucket) -> Future[Tensor]:
    """Replace a bucket of gradients by its mean over the ranks."""
    flat = bucket.buffer()
    ring(flat)
    return done(flat.div_(training.group.size))


@torch.no_grad()
def ring(flat: Tensor) -> None:
    """Replace `flat`, (n,), by its sum over all ranks; every rank ends with the same bits."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    parts = flat.tensor_split(ranks)
    for turn in range(ranks - 1):  # after which rank r has the sum of part r + 1
        arrived = torch.empty_like(parts[(rank - turn - 1) % ranks])
        pass_on(parts[(rank - turn) % ranks], arrived)
        parts[(rank - turn - 1) % ranks].add_(arrived)
    for turn in range(ranks - 1):
        pass_on(parts[(rank + 1 - turn) % ranks], parts[(rank - turn) % ranks])


def pass_on(part: Tensor, arriving: Tensor) -> None:
    """Send `part` to the next rank while `arriving` is filled by the one before."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    sending = dist.isend(part, (rank + 1) % ranks) if part.numel() else None
    if arriving.numel():
        dist.recv(arriving, (rank - 1) % ranks)
    if sending is not None:
        sending.wait()
