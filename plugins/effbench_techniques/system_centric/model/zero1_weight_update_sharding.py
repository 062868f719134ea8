"""ZeRO-1: each replica keeps the optimizer's state of some parameters, updates these, and gives them to the others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Optimizer

from effbench import Batch, Recipe, Training, technique
from effbench.distributed.data_parallel import UNUSED_PARAMETERS, check_processes, refuse, share_batches
from effbench.distributed.scopes import refuse_beyond

Owners = Mapping[nn.Parameter, int]  # parameter -> rank that updates it

_LOCAL = "it takes gradients before they are averaged, so that replicas would part"


@technique(
    "system_centric/model",
    paper="Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, arXiv:1910.02054; "
    "Xu et al., Automatic Cross-Replica Sharding of Weight Update in Data-Parallel Training, arXiv:2004.13336",
    claim="a quarter of the memory with Adam in mixed precision, for the same communication as data parallelism",
    neutral={"processes": 1},
    conflicts={
        "sam": _LOCAL,
        "sophia": _LOCAL,
        "rigl": "it grows connections by the gradients of all parameters, and each process has some of them",
        "schedule_free": "it evaluates other weights than it trains, and each process would know those that it owns",
    },
    title="ZeRO-1: weight-update sharding",
)
def zero1_weight_update_sharding(recipe: Recipe, *, processes: int = 2) -> Recipe:
    """Train replicas of the model, each of which updates a part of the weights and has the optimizer's state of it.

    The all-reduce of data parallelism is taken apart: gradients are summed where their owner is (reduce-scatter), who
    steps, and then everybody gets the new weights (all-gather). Parameters stay whole, so that every optimizer that
    treats them one by one works as before; they are dealt so that all ranks own about as many numbers. Batches are
    divided as with ddp, and so are the exceptions: BatchNorm and dropout.

    When it helps: optimizer state that is large beside the activations, as Adam's 8 bytes for each parameter; and
        optimizers whose step is a good part of the time, as on many devices, each of which has few examples.
    When it does not: memory that is spent on activations. Here the exchange waits for the whole gradient, where ddp
        hides it behind the backward pass.

    processes: number of processes; 1 turns it off.
    """
    check_processes("zero1_weight_update_sharding", processes)
    if processes == 1:
        return recipe
    dealt = "zero1_weight_update_sharding deals parameters out to processes, and {others} may look at several"
    refuse_beyond(recipe, "tensor", dealt)
    flagged = UNUSED_PARAMETERS in recipe.traits
    shared = share_batches(recipe, processes)

    def place(model: nn.Module) -> nn.Module:
        return Owned(recipe.placement(model), owners_of(model))

    def gradient(training: Training, batch: Batch) -> Tensor:
        if training.generation:
            refuse(recipe, "milestones", f"{recipe.author} deals parameters out once, and {{others}} changed them")
        losses = shared.gradient(training, batch)
        assert isinstance(training.forward, Owned)
        reduce_to_owners(training.forward.owners, flagged=flagged)
        return losses

    def optimizer(model: nn.Module) -> Optimizer:
        built, owners = recipe.optimizer(model), owners_of(model)
        for group in built.param_groups:
            group["params"] = [p for p in group["params"] if owners.get(p) == dist.get_rank()]

        def gather(*_: Any) -> None:
            gather_from_owners(owners)

        built.register_step_post_hook(gather)
        return built

    return shared.wrap(placement=place, gradient=gradient, optimizer=optimizer)


class Owned(nn.Module):
    """A model of whose parameters this process owns some."""

    def __init__(self, placed: nn.Module, owners: Owners) -> None:
        super().__init__()
        self.placed, self.owners = placed, owners

    def forward(self, inputs: Tensor) -> Any:
        """Return the model's outputs."""
        return self.placed(inputs)

    def copies(self, parameter: nn.Parameter) -> float:
        """Return among how many a parameter counts here: its owner has it alone, for the others it is not there."""
        return 1.0 if self.owners.get(parameter) == dist.get_rank() else math.inf


def owners_of(model: nn.Module) -> Owners:
    """Deal the parameters to all ranks: the largest first, each to the rank that has least."""
    owned = [0] * dist.get_world_size()
    owners: dict[nn.Parameter, int] = {}
    trained = [p for p in model.parameters() if p.requires_grad]
    for parameter in sorted(trained, key=lambda p: -p.numel()):
        owners[parameter] = owned.index(min(owned))
        owned[owners[parameter]] += parameter.numel()
    return owners


@torch.no_grad()
def reduce_to_owners(owners: Owners, *, flagged: bool) -> None:
    """Give each owner the mean gradient of its parameters, and let go of what is not one's own.

    flagged: whether some parameters may have no gradient; one that has none on any rank keeps none.
    """
    ranks, rank, parts = dist.get_world_size(), dist.get_rank(), parts_of(owners)
    flats = [flat([p.grad if p.grad is not None else torch.zeros_like(p) for p in part], owners) for part in parts]
    if flagged:
        flags = [[float(p.grad is not None) for p in part] for part in parts]
        flats = [torch.cat([each, each.new_tensor(flag)]) for each, flag in zip(flats, flags, strict=True)]
    flats = padded(flats, max(len(each) for each in flats))
    total = torch.empty_like(flats[rank])
    dist.reduce_scatter(total, flats)
    total.div_(ranks)
    mine, end = parts[rank], sum(p.numel() for p in parts[rank])
    is_used = total[end : end + len(mine)].tolist() if flagged else [1.0] * len(mine)
    for parameter in owners:
        parameter.grad = None
    for parameter, slope, used in zip(mine, cut(total[:end], mine), is_used, strict=True):
        if used:
            parameter.grad = slope.to(parameter.dtype)


@torch.no_grad()
def gather_from_owners(owners: Owners) -> None:
    """Bring the weights up to date that others own."""
    rank, parts = dist.get_rank(), parts_of(owners)
    lengths = [sum(p.numel() for p in part) for part in parts]
    (mine,) = padded([flat(parts[rank], owners)], max(lengths))
    arrived = [torch.empty_like(mine) for _ in parts]
    dist.all_gather(arrived, mine)
    for each, (part, weights) in enumerate(zip(parts, arrived, strict=True)):
        if each != rank:
            for parameter, weight in zip(part, cut(weights[: lengths[each]], part), strict=True):
                parameter.copy_(weight)


def parts_of(owners: Owners) -> list[list[nn.Parameter]]:
    """Return the parameters of each rank."""
    return [[p for p, owner in owners.items() if owner == rank] for rank in range(dist.get_world_size())]


def flat(tensors: Sequence[Tensor], owners: Owners) -> Tensor:
    """Return all tensors in one, (n,), of the type of the first parameter that is owned."""
    like = next(iter(owners))
    return torch.cat([like.new_empty(0), *(tensor.detach().flatten().to(like.dtype) for tensor in tensors)])


def padded(flats: Sequence[Tensor], length: int) -> list[Tensor]:
    """Return (n,) tensors at a common length, zeros at their ends: collectives want them so."""
    return [nn.functional.pad(each, (0, length - len(each))) for each in flats]


def cut(flat: Tensor, parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    """Return views of `flat`, (n,), with the shapes of the parameters, one after the other."""
    parts = torch.split(flat, [p.numel() for p in parameters])
    return [part.view_as(p) for part, p in zip(parts, parameters, strict=True)]
