"""DDP: replicas of the model in several processes, which average their gradients while they compute them."""

from __future__ import annotations

from effbench import Recipe, technique
from effbench.distributed.data_parallel import check_processes
from effbench.distributed.replicas import replicate


@technique(
    "system_centric/model",
    paper="Li et al., PyTorch Distributed: Experiences on Accelerating Data Parallel Training, arXiv:2006.15704",
    claim="near-linear scaling to 256 GPUs",
    neutral={"processes": 1},
    title="Distributed data parallel",
)
def ddp(recipe: Recipe, *, processes: int = 2) -> Recipe:
    """Train a replica of the model in each of several processes, on its share of every batch.

    Gradients are averaged bucket by bucket while backward still runs. The batch stays what it was and is divided among
    the processes, so the weights are those of one process, but for rounding. Examples are drawn, transformed and
    chosen by every process alike, and then divided: what is random or looks at the whole batch stays as it is, at the
    price that each process does all of it. BatchNorm is the exception: each process normalises by the statistics of
    its own share, and those of rank 0 are evaluated. Dropout draws other masks in each process.

    When it helps: a core or a GPU for each process, and steps that take long compared with sending all gradients.
    When it does not: small models on few cores, where exchanging gradients takes as long as computing them. It trains
        no faster per step, so that only examples per second can gain.

    processes: number of processes; 1 turns it off.
    """
    check_processes("ddp", processes)
    return recipe if processes == 1 else replicate(recipe, processes)
