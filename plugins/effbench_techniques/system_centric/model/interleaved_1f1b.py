"""Interleaved 1F1B: a pipeline that goes around the devices several times."""

from __future__ import annotations

from effbench import Recipe, technique
from effbench.distributed.pipeline_schedules import interleaved
from effbench.distributed.pipelined import EXCLUDED, Plan, check_plan, pipelined
from effbench.errors import InvalidTechnique


@technique(
    "system_centric/model",
    paper="Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, "
    "arXiv:2104.04473",
    claim="more than 10 % more throughput than 1F1B",
    neutral={"processes": 1},
    conflicts=EXCLUDED,
    title="Interleaved 1F1B",
)
def interleaved_1f1b(recipe: Recipe, *, processes: int = 2, micro_batches: int = 4, chunks: int = 2) -> Recipe:
    """Give each process several chunks of blocks, that lie apart in the model, so that it waits less for the others.

    With S processes, M micro-batches and v chunks of equal cost, a process waits for (S - 1) / (v M + S - 1) of the
    time: the bubble of gpipe and one_f_one_b, divided by about v. It sends v times as much. One forward and one
    backward pass alternate as in one_f_one_b, and the weights are those of one process, but for rounding. BatchNorm
    sees one micro-batch at a time, as when gradients are accumulated; dropout draws other masks in each process.

    When it helps: deep models on devices with a fast connection, and few micro-batches.
    When it does not: slow connections; models with fewer blocks than `processes * chunks` are refused.

    processes: number of processes; 1 turns it off.
    micro_batches: into how many parts each batch is cut, a multiple of the number of processes; into fewer where a
        batch has not two examples for each.
    chunks: parts of the model in each process; 1 is one_f_one_b.
    """
    check_plan("interleaved_1f1b", processes, micro_batches)
    if chunks < 1:
        raise InvalidTechnique(f"interleaved_1f1b: chunks is {chunks}; it should be 1 or more")
    if micro_batches % processes:
        raise InvalidTechnique(
            f"interleaved_1f1b: micro_batches is {micro_batches}; it should be a multiple of the {processes} processes"
        )
    if processes == 1:
        return recipe
    return pipelined(recipe, Plan(interleaved(chunks), processes, micro_batches, chunks, groups=processes))
