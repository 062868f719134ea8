"""PowerSGD: send gradients as products of two thin matrices, and make up for the error in the next step."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.futures import Future

from effbench import Recipe, Training, technique
from effbench.distributed.data_parallel import check_processes
from effbench.distributed.replicas import Bucket, done, replicate
from effbench.errors import InvalidTechnique

_TWICE = "it takes two gradients in a step, and what one of them lacks would be made up for in the other"


@technique(
    "system_centric/optimization",
    paper="Vogels et al., PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization, "
    "arXiv:1905.13727",
    claim="24 % less time for a ResNet-18 on CIFAR-10 and 55 % for an LSTM, on 16 workers, at the same quality",
    neutral={"processes": 1},
    conflicts={"sam": _TWICE, "sophia": _TWICE},
    title="PowerSGD",
    unequal="of each gradient an approximation of low rank is sent, and the rest later",
)
def powersgd(recipe: Recipe, *, rank: int = 4, processes: int = 2) -> Recipe:
    """Average the gradients of several replicas as matrices of low rank, with error feedback.

    The gradient M of a matrix, (n, m), is sent as P = M Q, (n, rank), whose mean is made orthonormal, and Q' = M^T P,
    (m, rank): one step of the power method, which goes on from the last step's Q'. What P Q'^T lacks of M, each replica
    adds to its next gradient. Vectors, and matrices that would not get smaller, are sent as they are; convolutions are
    matrices of one row for each channel. Batches are divided as with ddp, and so are the exceptions: BatchNorm and
    dropout.

    When it helps: slow networks: the bytes of a matrix fall to rank (n + m) / (n m).
    When it does not: fast ones: it computes more than it saves there. Thin matrices: little is saved.

    rank: of the approximation: 1 to 4 in the paper.
    processes: number of processes; 1 turns it off.
    """
    check_processes("powersgd", processes)
    if rank < 1:
        raise InvalidTechnique(f"powersgd: rank is {rank}; it should be 1 or more")
    if processes == 1:
        return recipe

    def average(training: Training, bucket: Bucket) -> Future[Tensor]:
        memory: dict[str, Any] = training.kept.setdefault("powersgd", {"errors": {}, "queries": {}})
        slopes = list(zip(bucket.parameters(), bucket.gradients(), strict=True))
        thin = [(p, slope) for p, slope in slopes if shrinks(slope, rank)]
        whole = [slope for _, slope in slopes if not shrinks(slope, rank)]
        for parameter, slope in thin:
            if parameter not in memory["queries"]:
                memory["queries"][parameter] = first_query(training, slope, rank)
                memory["errors"][parameter] = torch.zeros_like(slope)
            slope.add_(memory["errors"][parameter])
        matrices = [slope.flatten(1) for _, slope in thin]
        queries = [memory["queries"][parameter] for parameter, _ in thin]
        products = approximate(matrices, queries, whole)
        for (parameter, slope), product in zip(thin, products, strict=True):
            memory["errors"][parameter] = slope - product.view_as(slope)
            slope.copy_(product.view_as(slope))
        return done(bucket.buffer())

    return replicate(recipe, processes, average)


def shrinks(slope: Tensor, rank: int) -> bool:
    """Tell whether a gradient is a matrix that two thin ones are smaller than."""
    if slope.ndim < 2:
        return False
    n, m = slope.flatten(1).shape
    return (n + m) * rank < n * m


def first_query(training: Training, slope: Tensor, rank: int) -> Tensor:
    """Return the (m, rank) random numbers with which the power method begins, the same on all ranks."""
    generator = torch.Generator().manual_seed(training.order.initial_seed())
    return torch.randn(slope.flatten(1).shape[1], rank, generator=generator).to(slope)


@torch.no_grad()
def approximate(matrices: list[Tensor], queries: list[Tensor], whole: list[Tensor] | None = None) -> list[Tensor]:
    """Return approximations of the ranks' mean of each (n, m) matrix, of the rank of its (m, rank) query.

    Queries are replaced by those of the next step. Tensors of `whole` travel along, and become their mean.
    """
    left = [matrix @ query for matrix, query in zip(matrices, queries, strict=True)]
    average([*left, *(whole or [])])
    left = [torch.linalg.qr(each).Q for each in left]
    for matrix, query, basis in zip(matrices, queries, left, strict=True):
        query.copy_(matrix.T @ basis)
    average(queries)
    return [basis @ query.T for basis, query in zip(left, queries, strict=True)]


def average(tensors: list[Tensor]) -> None:
    """Replace tensors by their means over the ranks, in one message."""
    if not tensors:
        return
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    dist.all_reduce(flat)
    means = torch.split(flat.div_(dist.get_world_size()), [tensor.numel() for tensor in tensors])
    for tensor, mean in zip(tensors, means, strict=True):
        tensor.copy_(mean.view_as(tensor))
