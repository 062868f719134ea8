"""GPipe: a pipeline of stages, through which micro-batches go forward one after the other, and then all back."""

from __future__ import annotations

from torch import Tensor, nn

from effbench import Recipe, technique
from effbench.distributed.pipeline import Finish, as_it_is
from effbench.distributed.pipeline_schedules import fill_drain
from effbench.distributed.pipelined import EXCLUDED, Plan, check_plan, pipelined
from effbench_techniques.system_centric.model.activation_checkpointing import Recomputed


@technique(
    "system_centric/model",
    paper="Huang et al., GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism, "
    "arXiv:1811.06965",
    claim="an AmoebaNet 25 times larger on 8 accelerators; 3.5 times the speed with 4 times the accelerators",
    neutral={"processes": 1},
    conflicts=EXCLUDED,
    title="GPipe",
)
def gpipe(recipe: Recipe, *, processes: int = 2, micro_batches: int = 4, recompute: bool = True) -> Recipe:
    """Give each process some consecutive blocks, and send the micro-batches of each batch through all of them.

    All micro-batches go forward, then all of them back; after that the weights are updated, so they are those of one
    process, but for rounding. A process waits for (S - 1) / (M + S - 1) of the time, with S processes and M
    micro-batches of equal cost. As in the paper, only the inputs of a stage are kept, and what is inside is computed
    again on the way back. BatchNorm sees one micro-batch at a time, as when gradients are accumulated, and its running
    statistics are those of all of them; dropout draws other masks in each process.

    When it helps: a model that does not fit on one device, of many equal blocks.
    When it does not: few micro-batches, for the bubble; and wherever the model fits on one device. Computing twice
        costs about a third.

    processes: number of processes, each with one stage; 1 turns it off.
    micro_batches: into how many parts each batch is cut, if it has two examples for each.
    recompute: false keeps all activations instead of computing them twice.
    """
    check_plan("gpipe", processes, micro_batches)
    if processes == 1:
        return recipe
    return pipelined(recipe, Plan(fill_drain, processes, micro_batches, go=again if recompute else as_it_is))


def again(chunk: nn.Module, inputs: Tensor) -> tuple[Tensor, Finish]:
    """Call a chunk, and keep nothing but its inputs for the way back."""
    return Recomputed(chunk)(inputs), lambda: None
