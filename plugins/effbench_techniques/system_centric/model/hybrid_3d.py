"""Hybrid parallelism: data, pipeline and tensor parallelism in one grid of processes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from effbench import Batch, Recipe, Training, technique
from effbench.distributed.axes import Axis, grid, sum_gradients
from effbench.distributed.cut_layers import cut_model, cut_parameters, whole_state
from effbench.distributed.data_parallel import deal_batches, refuse
from effbench.distributed.pipeline import Pipeline
from effbench.distributed.pipeline_schedules import one_forward_one_backward
from effbench.distributed.pipelined import EXCLUDED, STAGES, Plan, collect, flush
from effbench.distributed.scopes import refuse_beyond
from effbench.distributed.stages import check_stages, stages_of
from effbench.errors import Conflict, InvalidTechnique
from effbench.techniques import MOST_PROCESSES
from effbench_techniques.system_centric.model.tensor_parallel import CUT, check_alike, draw_alike
from effbench_techniques.system_centric.model.tensor_parallel import EXCLUDED as EXCLUDED_OF_PARTS


@technique(
    "system_centric/model",
    paper="Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, "
    "arXiv:2104.04473",
    claim="a model of a trillion parameters on 3,072 A100, at 52 % of their peak",
    neutral={"data": 1, "pipeline": 1, "tensor": 1},
    conflicts={**EXCLUDED_OF_PARTS, **EXCLUDED},
    title="Hybrid 3-D parallelism",
)
def hybrid_3d(recipe: Recipe, *, data: int = 2, pipeline: int = 2, tensor: int = 1, micro_batches: int = 4) -> Recipe:
    """Arrange processes in a grid of `data * pipeline * tensor`, and let each axis share another thing.

    Along the first axis, processes share the examples of each batch, and add up their gradients when all are known;
    along the second, the blocks of the model, in a pipeline with the schedule of one_f_one_b; along the third, heads
    and hidden units, as with tensor_parallel. Neighbours in rank are those that talk most: the tensor axis first, then
    the pipeline, then data. The weights are those of one process, but for rounding. BatchNorm sees one micro-batch of
    one share at a time, and the running statistics of rank 0's pipeline are evaluated; dropout draws other masks in
    each process, but for those that have parts of the same layer. What is evaluated is put together on rank 0.

    When it helps: models that no single kind of parallelism can fit or feed, on very many devices: tensor parallelism
        within a machine, pipelines between machines, data parallelism for what is left.
    When it does not: models that fit on one device, for which ddp is simpler and faster. Gradients are sent when all
        are there, and not while others are still computed.

    data: shares of each batch.
    pipeline: stages of the model; 1 is no pipeline.
    tensor: parts of each layer; 1 cuts no layer.
    micro_batches: into how many parts a share of the batch is cut in a pipeline, if it has two examples for each.
    """
    sizes = {"data": data, "pipeline": pipeline, "tensor": tensor}
    for option, value in {**sizes, "micro_batches": micro_batches}.items():
        if value < 1:
            raise InvalidTechnique(f"hybrid_3d: {option} is {value}; it should be 1 or more")
        if option in sizes and value > MOST_PROCESSES:
            raise InvalidTechnique(f"hybrid_3d: {option} is {value}; it should be at most {MOST_PROCESSES}")
    if (processes := data * pipeline * tensor) == 1:
        return recipe
    check(recipe, pipeline, tensor)
    plan = Plan(one_forward_one_backward, pipeline, micro_batches if pipeline > 1 else 1)

    def place(model: nn.Module) -> nn.Module:
        recipe.placement(model)
        return InGrid(model, grid(sizes))

    def gradient(training: Training, batch: Batch) -> Tensor:
        placed = in_grid(training)
        losses = flush(placed.pipeline, plan, training, batch)
        sum_gradients(training.model.parameters(), placed.axes["data"])
        return losses

    def collected(training: Training) -> nn.Module:
        return put_together(in_grid(training), training, recipe.eval_model(training))

    return deal_batches(recipe, processes, data).swap(placement=place, gradient=gradient).wrap(eval_model=collected)


def check(recipe: Recipe, pipeline: int, tensor: int) -> None:
    """Raise Refusal where the model cannot be dealt out so, or another technique would not stand it."""
    refuse(recipe, "milestones", "hybrid_3d deals the model out to processes for good, and {others} may replace parts")
    check_stages(recipe, pipeline)
    if pipeline > 1:
        refuse_beyond(recipe, "tensor", f"hybrid_3d {STAGES}")
    if tensor > 1:
        refuse_beyond(recipe, "element", f"hybrid_3d {CUT}")
        with torch.random.fork_rng(devices=[]):
            cut_model(recipe.model(), Axis(tuple(range(tensor)), 0), "hybrid_3d")


class InGrid(nn.Module):
    """What a process in the grid has: a stage of the model, or a part of every layer of one."""

    is_synchronous = True

    def __init__(self, model: nn.Module, axes: dict[str, Axis]) -> None:
        super().__init__()
        self.axes = axes
        if axes["tensor"].size > 1:
            cut_model(model, axes["tensor"], "hybrid_3d")
            draw_alike(axes["tensor"])
        self.cut = cut_parameters(model)
        ranks = axes["pipeline"].ranks
        stages = stages_of(model, len(ranks), "hybrid_3d")
        self.pipeline = Pipeline(model, stages, ranks[::-1], pipelines=self.pipelines)

    def pipelines(self, parameter: nn.Parameter) -> int:
        """Return how many pipelines have the same part of a parameter."""
        return self.axes["data"].size * (1 if parameter in self.cut else self.axes["tensor"].size)

    def copies(self, parameter: nn.Parameter) -> int:
        """Return on how many ranks the same part of a parameter lies."""
        return self.pipeline.copies(parameter)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return what the whole model says of (B, ...) inputs, without gradients, the same on all ranks."""
        outputs: Tensor = self.pipeline(inputs)
        return outputs


def in_grid(training: Training) -> InGrid:
    """Return what this process has.

    Raises:
        Conflict: another technique has put something around it.
    """
    if not isinstance(training.forward, InGrid):
        raise Conflict("hybrid_3d says how the model is called, and another technique placed it after that")
    return training.forward


def put_together(placed: InGrid, training: Training, part: nn.Module) -> nn.Module:
    """Return the whole model on rank 0, plain and new; elsewhere `part`."""
    check_alike(part, placed.axes["tensor"])
    if placed.axes["data"].place:
        return part
    state = whole_state(part)
    if placed.axes["tensor"].place:
        return part
    return collect(placed.pipeline, training, part, state)
