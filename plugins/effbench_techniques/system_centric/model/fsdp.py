"""FSDP: each process keeps a share of every parameter, and all of one block only while it computes it."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from effbench import Recipe, Training, technique
from effbench.distributed.data_parallel import check_processes, refuse, share_batches
from effbench.distributed.scopes import refuse_beyond


@technique(
    "system_centric/model",
    paper="Zhao et al., PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel, arXiv:2304.11277; after "
    "Rajbhandari et al., ZeRO, arXiv:1910.02054",
    claim="near-linear TFLOPS up to 512 A100, and models that DDP cannot hold",
    neutral={"processes": 1},
    title="Fully sharded data parallel",
)
def fsdp(recipe: Recipe, *, processes: int = 2) -> Recipe:
    """Shard parameters, gradients and optimizer state over several processes, and gather a block when it is its turn.

    Each process keeps 1 / processes of every tensor. A block's parameters are gathered before its forward and its
    backward pass and forgotten afterwards; its gradients are averaged and scattered. Batches are divided as with ddp,
    so the weights are those of one process, but for rounding; BatchNorm normalises by each process's own share. What
    is evaluated is gathered into a plain model.

    When it helps: models whose parameters, gradients and optimizer state do not fit in one device's memory.
    When it does not: small models. Every block is gathered twice in a step: half as many bytes again as with ddp, and
        a message for each block.

    processes: number of processes; 1 turns it off.
    """
    check_processes("fsdp", processes)
    if processes == 1:
        return recipe
    refuse(recipe, "milestones", "fsdp shards the parameters for good, and {others} may replace them while it trains")
    refuse(recipe, "eval_model", "fsdp gathers the model to evaluate, and {others} would copy it while it is sharded")
    refuse_beyond(recipe, "element", "fsdp leaves each process a share of every tensor, and {others} may look at more")

    def place(model: nn.Module) -> nn.Module:
        placed = recipe.placement(model)
        shard(model, processes)
        return Quiet(placed)

    def gathered(training: Training) -> nn.Module:
        return plain(training.recipe, recipe.eval_model(training))

    return share_batches(recipe, processes).wrap(placement=place, eval_model=gathered)


def shard(model: nn.Module, processes: int) -> None:
    """Replace all parameters by this process's shares of them: each block by itself, then what is left."""
    mesh = init_device_mesh(next(model.parameters()).device.type, (processes,))
    blocks = getattr(model, "blocks", None)
    for block in blocks if isinstance(blocks, nn.ModuleList) else ():
        if any(True for _ in block.parameters()):
            fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)


class Quiet(nn.Module):
    """A sharded model without FSDP's warning that outputs which are views must not be changed in place: none is."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor) -> Any:
        """Return the model's outputs."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view tensor")
            return self.model(inputs)


def plain(recipe: Recipe, sharded: nn.Module) -> nn.Module:
    """Gather a sharded model into a new one that is not; every process must take part."""
    with torch.random.fork_rng(devices=[]):
        model = recipe.model().to(next(sharded.parameters()).device)
    model.load_state_dict({name: whole(tensor) for name, tensor in sharded.state_dict().items()})
    return model


def whole(tensor: Tensor) -> Tensor:
    """Return all of a tensor of which each process has a share; others as they are."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
