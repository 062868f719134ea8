"""PipeDream: a pipeline that is never emptied; a batch goes back through the weights that it went forward through."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.func import functional_call

from effbench import Batch, Recipe, Training, technique
from effbench.distributed.data_parallel import check_processes, deal_batches, refuse
from effbench.distributed.pipeline import Finish, Pipeline, as_it_is
from effbench.distributed.pipeline_schedules import emptying, without_flush
from effbench.distributed.pipelined import EXCLUDED, STAGES, collect, pipeline_of
from effbench.distributed.scopes import refuse_beyond
from effbench.distributed.stages import shared_parameters, stages_of
from effbench.errors import NotApplicable

_ASIDE = "it asks what the model says while batches are under way, and a pipeline that is never empty has no time"


@technique(
    "system_centric/model",
    paper="Harlap et al., PipeDream: Fast and Efficient Pipeline Parallel DNN Training, arXiv:1806.03377",
    claim="up to 5.3 times faster to the same accuracy than data parallel training",
    neutral={"processes": 1},
    conflicts={**EXCLUDED, "selective_backprop": _ASIDE, "rho_loss": _ASIDE, "importance_sampling": _ASIDE},
    title="PipeDream",
    unequal="gradients belong to weights of some updates ago",
)
def pipedream(recipe: Recipe, *, processes: int = 2) -> Recipe:
    """Send batch after batch through a pipeline of blocks, and update a stage whenever one has come back to it.

    No process waits for the pipeline to empty. Its price is that gradients are late: with S stages, numbered from 0,
    the gradient of batch t belongs to the weights that stage s had S - 1 - s updates ago. A batch goes back through the
    very weights that it went forward through (weight stashing), of which stage s keeps up to S - s versions. When the
    budget is spent, the batches that are under way go back at the last rate, so that none is lost.

    Clipping looks at the gradient of each stage by itself. BatchNorm normalises whole batches, as in one process;
    dropout draws other masks in each process. What is evaluated on the way is the newest weights of each stage.

    When it helps: models that do not fit on one device, where the bubble of a pipeline that is emptied would be large.
    When it does not: deep pipelines at high rates, which late gradients disturb; models whose stages share parameters,
        such as language models that have their embedding as output layer, are refused.

    processes: number of processes, each with one stage; 1 turns it off.
    """
    check_processes("pipedream", processes)
    if processes == 1:
        return recipe
    refuse(recipe, "milestones", "pipedream deals the model out to processes for good, and {others} may replace parts")
    refuse_beyond(recipe, "tensor", f"pipedream {STAGES}")
    with torch.random.fork_rng(devices=[]):
        model = recipe.model()
        if shared := shared_parameters(model, stages_of(model, processes, "pipedream")):
            names = [name for name, parameter in model.named_parameters() if parameter is shared[0][0]]
            raise NotApplicable(f"pipedream updates each stage at its own time, and several of them use {names[0]}")

    def place(model: nn.Module) -> nn.Module:
        recipe.placement(model)
        stages, is_last = stages_of(model, processes, "pipedream"), dist.get_rank() == 0
        go = as_it_is if is_last else through_a_copy  # between its two passes, the last stage is never updated
        own = dist.new_group(list(range(processes)))  # messages that are under way meet those of no other pipeline
        return Pipeline(model, stages, range(processes)[::-1], go=go, is_synchronous=False, group=own)

    def gradient(training: Training, batch: Batch) -> Tensor:
        return go_on(pipeline_of(training, "pipedream"), training, batch)

    def finish(training: Training) -> None:
        empty(pipeline_of(training, "pipedream"), training)
        recipe.finish(training)

    def collected(training: Training) -> nn.Module:
        part = recipe.eval_model(training)
        return collect(pipeline_of(training, "pipedream"), training, part, part.state_dict())

    dealt = deal_batches(recipe, processes, 1)
    return dealt.swap(placement=place, gradient=gradient).wrap(eval_model=collected, finish=finish)


def through_a_copy(chunk: nn.Module, inputs: Tensor) -> tuple[Tensor, Finish]:
    """Call a chunk with a copy of its weights, which is there for the way back whatever becomes of them."""
    stash = {name: p.detach().clone().requires_grad_(p.requires_grad) for name, p in chunk.named_parameters()}

    def finish() -> None:
        for name, parameter in chunk.named_parameters():
            slope = stash[name].grad
            if slope is not None:
                parameter.grad = slope if parameter.grad is None else parameter.grad + slope

    return functional_call(chunk, stash, (inputs,)), finish


def go_on(pipeline: Pipeline, training: Training, batch: Batch) -> Tensor:
    """Let a batch go forward through this process's stage, and an earlier one back; add the gradient of that.

    Returns the losses of the batch, (B,), on rank 0; none, (0,), elsewhere.
    """
    memory: dict[str, Any] = training.kept.setdefault("pipedream", {"step": 0, "parts": {}})
    step, parts, devices = memory["step"], memory["parts"], len(pipeline.ranks)
    parts[step] = batch
    plans = [without_flush(device, devices, step) for device in range(devices)]
    losses = pipeline.carry_out(plans, parts, training.loss)
    parts.pop(step - (devices - 1 - pipeline.device), None)
    memory["step"] = step + 1
    return losses.get(step, torch.empty(0))


def empty(pipeline: Pipeline, training: Training) -> None:
    """Let the batches that are under way go back, and update this process's stage after each."""
    memory: dict[str, Any] = training.kept.pop("pipedream", {"step": 0, "parts": {}})
    devices = len(pipeline.ranks)
    plans = [emptying(device, devices, memory["step"]) for device in range(devices)]
    pipeline.carry_out(plans, memory["parts"], training.loss, lambda: training.recipe.update(training))
    pipeline.mailbox.settle()
