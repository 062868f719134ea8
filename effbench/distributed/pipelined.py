"""What all pipelines that wait for each other at the end of a step have in common: recipe in, recipe out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from effbench.distributed.data_parallel import deal_batches, refuse
from effbench.distributed.pipeline import Pass, Pipeline, as_it_is
from effbench.distributed.pipeline_schedules import Schedule
from effbench.distributed.scopes import refuse_beyond
from effbench.distributed.stages import check_stages, stages_of
from effbench.errors import Conflict, InvalidTechnique, NotApplicable
from effbench.recipe import Batch, Recipe, Training
from effbench.terms import cut

#: What no term shows: why a pipeline excludes another technique.
EXCLUDED = {
    "agc": "it spares the output layer, and looks for it in the blocks of each process",
    "mup": "it looks for the output layer, which one process has",
    "rigl": "it draws random numbers for each layer, and each process has other layers",
    "torch_compile": "it compiles the whole model, and each process has some of its blocks",
}
#: Why they refuse updates that look at more than a tensor.
STAGES = "leaves each process a stage of the model, and {others} may look at others"


@dataclass(frozen=True, slots=True)
class Plan:
    """How a pipeline works.

    chunks: stages on each device.
    micro_batches: into how many a batch is cut, if it has two examples for each.
    groups: of how many micro-batches their number is a multiple.
    go: how a chunk is called.
    """

    schedule: Schedule
    processes: int
    micro_batches: int
    chunks: int = 1
    groups: int = 1
    go: Pass = as_it_is


def pipelined(recipe: Recipe, plan: Plan) -> Recipe:
    """Return a recipe that trains in a pipeline; rank 0 has the last stage, where the losses are.

    Every process draws, loads and transforms the same whole batch, so that inputs and targets need not be sent: only
    features go forward and slopes back, and the losses to all in the end. Parameters that several stages use, such as a
    token embedding that is the output layer as well, lie in each of them; their gradients are added up. The model to be
    evaluated is put together on rank 0; others give their part.

    Raises:
        Conflict: another technique says how the gradient is taken or the model placed, or replaces parameters on the
            way.
        NotApplicable: the model cannot be cut into so many stages.
    """
    name = recipe.author
    refuse(recipe, "milestones", f"{name} deals the model out to processes for good, and {{others}} may replace parts")
    refuse_beyond(recipe, "tensor", f"{name} {STAGES}")
    check_stages(recipe, plan.processes * plan.chunks)

    def place(model: nn.Module) -> nn.Module:
        recipe.placement(model)
        stages = stages_of(model, plan.processes * plan.chunks, name)
        return Pipeline(model, stages, range(plan.processes)[::-1], go=plan.go)

    def gradient(training: Training, batch: Batch) -> Tensor:
        return flush(pipeline_of(training, name), plan, training, batch)

    def collected(training: Training) -> nn.Module:
        part = recipe.eval_model(training)
        return collect(pipeline_of(training, name), training, part, part.state_dict())

    dealt = deal_batches(recipe, plan.processes, 1)
    return dealt.swap(placement=place, gradient=gradient).wrap(eval_model=collected)


def pipeline_of(training: Training, technique: str) -> Pipeline:
    """Return this process's part of the pipeline.

    Raises:
        Conflict: another technique has put something around it.
    """
    if not isinstance(training.forward, Pipeline):
        raise Conflict(f"{technique} says how the model is called, and another technique placed it after that")
    return training.forward


def flush(pipeline: Pipeline, plan: Plan, training: Training, batch: Batch) -> Tensor:
    """Send a batch through the pipeline and back, by its schedule; add its gradient, and return the losses, (B,).

    Raises:
        NotApplicable: the batch is too small for one group of micro-batches.
    """
    parts = micro_batches(batch, plan)
    devices = len(pipeline.ranks)
    plans = [plan.schedule(device, devices, len(parts)) for device in range(devices)]
    losses = pipeline.carry_out(plans, dict(enumerate(parts)), training.loss)
    losses_of_all = pipeline.told(losses, batch)
    pipeline.sum_shared()
    pipeline.mailbox.settle()
    return losses_of_all


def micro_batches(batch: Batch, plan: Plan) -> list[Batch]:
    """Cut a batch into micro-batches that differ by one example at most.

    Raises:
        NotApplicable: the batch is too small for one group of them with two examples each.
    """
    most = min(plan.micro_batches, len(batch) // 2)
    count = max(1, most) if plan.groups == 1 else most // plan.groups * plan.groups
    if not count:
        raise NotApplicable(
            f"{plan.groups} micro-batches need two examples each, and the batch has {len(batch)} in all"
        )
    return cut(batch, count)


def collect(pipeline: Pipeline, training: Training, part: nn.Module, state: dict[str, Tensor]) -> nn.Module:
    """Return the whole model on the rank of the last device, plain and new; elsewhere `part`, whose `state` it is."""
    if pipeline.device < len(pipeline.ranks) - 1:
        pipeline.collect(state, {})
        return part
    with torch.random.fork_rng(devices=[]):
        whole = training.recipe.model().to(next(iter(state.values())).device)
    whole.load_state_dict(pipeline.collect(state, whole.state_dict()))
    whole.train(part.training)
    return whole


def check_plan(technique: str, processes: int, micro_batches: int) -> None:
    """Raise InvalidTechnique where there is no number of processes or of micro-batches."""
    for option, value in (("processes", processes), ("micro_batches", micro_batches)):
        if value < 1:
            raise InvalidTechnique(f"{technique}: {option} is {value}; it should be 1 or more")
