"""Tensor parallelism: each process has some heads and some hidden units of every layer of a transformer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from effbench import Recipe, Training, technique
from effbench.distributed.axes import Axis, grid
from effbench.distributed.cut_layers import cut_model, cut_parameters, whole_state
from effbench.distributed.data_parallel import check_processes, deal_batches, refuse
from effbench.distributed.scopes import refuse_beyond
from effbench.errors import EffbenchError

_OTHERS = "each process drops others, and here all work on the same examples"
EXCLUDED = {
    "mup": "it knows the matrices that get wider by their layers, and layers that are cut are others",
    "patch_dropout": _OTHERS,
    "random_ltd": _OTHERS,
    "sam": "it climbs along the gradient of all weights, and each process has a part of them",
    "sophia": "it counts the examples of all processes, which here are the same ones",
    "stochastic_depth": _OTHERS,
    "torch_compile": "what processes add up in the middle of a layer is no part of its graph",
}
#: Why it refuses updates that look at more than a weight.
CUT = "cuts matrices into parts, and {others} may look at whole ones"


@technique(
    "system_centric/model",
    paper="Shoeybi et al., Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism, "
    "arXiv:1909.08053",
    claim="a model of 8.3 billion parameters on 512 GPUs, at 76 % of the throughput of so many single ones",
    neutral={"processes": 1},
    conflicts=EXCLUDED,
    title="Tensor parallelism",
)
def tensor_parallel(recipe: Recipe, *, processes: int = 2) -> Recipe:
    """Cut the matrices of a transformer: attention by heads, feed-forward layers by hidden units.

    The first matrix of a layer is cut by its outputs, the last by its inputs, so that what lies between them needs no
    other process. What each says of the last is added up, twice in the forward pass of a block and twice in the
    backward pass, each time as many numbers as the block has features. All processes work on the same whole batch; what
    is not in a block, and the norms, every process computes alike, with the same dropout masks. The weights are those
    of one process, but for rounding. What is evaluated is put together on rank 0.

    When it helps: layers that are too large for one device, or wide ones on devices with a very fast connection.
    When it does not: everywhere else, for each block waits four times for the network.

    processes: number of processes, at most as many as there are heads; 1 turns it off.
    """
    check_processes("tensor_parallel", processes)
    if processes == 1:
        return recipe
    refuse(recipe, "milestones", "tensor_parallel cuts the model for good, and {others} may change it on the way")
    refuse_beyond(recipe, "element", f"tensor_parallel {CUT}")
    with torch.random.fork_rng(devices=[]):
        cut_model(recipe.model(), Axis(tuple(range(processes)), 0), "tensor_parallel")

    def place(model: nn.Module) -> nn.Module:
        placed = recipe.placement(model)
        axis = grid({"tensor": processes})["tensor"]
        cut_model(model, axis, "tensor_parallel")
        draw_alike(axis)
        return InParts(placed, model, axis)

    def collected(training: Training) -> nn.Module:
        part = recipe.eval_model(training)
        assert isinstance(training.forward, InParts)
        check_alike(part, training.forward.axis)
        return put_together(training, part)

    return deal_batches(recipe, processes, 1).wrap(placement=place, eval_model=collected)


def draw_alike(axis: Axis) -> None:
    """Let all processes of the axis draw the same dropout masks."""
    seed = torch.tensor(torch.initial_seed() if axis.place == 0 else 0)
    torch.manual_seed(int(axis.sum(seed)))


class InParts(nn.Module):
    """A model of which each process has a part."""

    def __init__(self, placed: nn.Module, model: nn.Module, axis: Axis) -> None:
        super().__init__()
        self.placed, self.axis, self.cut = placed, axis, cut_parameters(model)

    def copies(self, parameter: nn.Parameter) -> int:
        """Return on how many ranks the same part of a parameter lies."""
        return 1 if parameter in self.cut else self.axis.size

    def forward(self, inputs: Tensor) -> Any:
        """Return the model's outputs, on every rank."""
        return self.placed(inputs)


def check_alike(part: nn.Module, axis: Axis) -> None:
    """Raise EffbenchError where weights that all processes of the axis have are not alike, bit by bit."""
    cut = cut_parameters(part)
    sums = torch.stack([p.detach().double().sum() for p in part.parameters() if p not in cut])
    if not torch.equal(sums, axis.first(sums)):
        raise EffbenchError("processes work on the same batch, and yet their weights have come to differ")


def put_together(training: Training, part: nn.Module) -> nn.Module:
    """Return the whole model on rank 0, plain and new; elsewhere `part`."""
    state = whole_state(part)
    if training.group.rank:
        return part
    with torch.random.fork_rng(devices=[]):
        whole = training.recipe.model().to(next(iter(state.values())).device)
    whole.load_state_dict(state)
    return whole.train(part.training)
