"""16-bit gradient compression: send gradients in half the bytes."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor
from torch.futures import Future

from effbench import Recipe, Training, technique
from effbench.distributed.data_parallel import check_processes
from effbench.distributed.replicas import Bucket, replicate
from effbench.errors import UnknownName

_TYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}


@technique(
    "system_centric/optimization",
    paper="Li et al., PyTorch Distributed: Experiences on Accelerating Data Parallel Training, arXiv:2006.15704, "
    "section 6.2.3",
    claim="half the bytes on the wire",
    neutral={"processes": 1},
    title="16-bit gradient compression",
    tolerance=2e-2,
)
def grad_compress_16bit(recipe: Recipe, *, dtype: str = "float16", processes: int = 2) -> Recipe:
    """Average the gradients of several replicas in numbers of 16 bits, and everything else in those of 32.

    Each rank divides its gradient by the number of ranks, rounds it, and the sum is taken in 16 bits too. Batches are
    divided as with ddp, and so are the exceptions: BatchNorm and dropout.

    When it helps: where the network limits, as it takes half the time.
    When it does not: where it does not; rounding costs a little time, and float16 loses gradients below 6e-8.

    dtype: "float16", which keeps 11 bits of a number, or "bfloat16", which keeps 8 and loses none for being small.
    processes: number of processes; 1 turns it off.
    """
    check_processes("grad_compress_16bit", processes)
    if dtype not in _TYPES:
        raise UnknownName("16-bit type of numbers", dtype, _TYPES)
    if processes == 1:
        return recipe

    def average(training: Training, bucket: Bucket) -> Future[Tensor]:
        flat = bucket.buffer()
        rounded = flat.div(training.group.size).to(_TYPES[dtype])
        work = dist.all_reduce(rounded, async_op=True)
        assert work is not None  # as it is for a rank outside of the group
        mean: Future[Tensor] = work.get_future().then(lambda arrived: flat.copy_(arrived.value()[0]))
        return mean

    return replicate(recipe, processes, average)
