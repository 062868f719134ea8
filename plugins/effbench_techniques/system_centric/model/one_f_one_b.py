"""1F1B: a pipeline in which each device does one forward pass and one backward pass in turns."""

from __future__ import annotations

from effbench import Recipe, technique
from effbench.distributed.pipeline_schedules import one_forward_one_backward
from effbench.distributed.pipelined import EXCLUDED, Plan, check_plan, pipelined


@technique(
    "system_centric/model",
    paper="Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, arXiv:2006.09503: PipeDream-Flush",
    claim="the bubble of GPipe, with activations of as many micro-batches as there are devices, and not of all",
    neutral={"processes": 1},
    conflicts=EXCLUDED,
    title="1F1B",
)
def one_f_one_b(recipe: Recipe, *, processes: int = 2, micro_batches: int = 4) -> Recipe:
    """Send each micro-batch back through a pipeline of blocks as early as it can, before the next one goes forward.

    The weights are updated when all are back, so they are those of one process, but for rounding. A process waits as
    long as with gpipe, (S - 1) / (M + S - 1) of the time, with S processes and M micro-batches of equal cost; but the
    process of stage s, counted from 0, keeps activations of S - s micro-batches at the most, however many there are.
    BatchNorm sees one micro-batch at a time, as when gradients are accumulated; dropout draws other masks in each
    process.

    When it helps: a model that does not fit on one device, cut into many micro-batches to keep the bubble small.
    When it does not: wherever the model fits on one device.

    processes: number of processes, each with one stage; 1 turns it off.
    micro_batches: into how many parts each batch is cut, if it has two examples for each.
    """
    check_plan("one_f_one_b", processes, micro_batches)
    if processes == 1:
        return recipe
    return pipelined(recipe, Plan(one_forward_one_backward, processes, micro_batches))
