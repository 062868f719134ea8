"""Means over ranks, in as few messages as can be: what methods that communicate rarely send when they do."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

from effbench.averages import tensors_of
from effbench.distributed.group import Group


@torch.no_grad()
def average(tensors: Iterable[Tensor], group: Group) -> None:
    """Replace floating-point tensors by their means over all ranks, in one message for each type; others stay."""
    by_type = dict[torch.dtype, list[Tensor]]()
    for tensor in tensors:
        if tensor.is_floating_point():
            by_type.setdefault(tensor.dtype, []).append(tensor)
    for alike in by_type.values():
        whole = joined(alike)
        dist.all_reduce(whole)
        spread(whole.div_(group.size), alike)


def average_model(model: nn.Module, group: Group) -> nn.Module:
    """Return a copy of a model, with the means over all ranks of its parameters and buffers."""
    mean = copy.deepcopy(model)
    average(tensors_of(mean).values(), group)
    return mean


def joined(tensors: Sequence[Tensor]) -> Tensor:
    """Return a copy of tensors of one type as one vector, (n,)."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


@torch.no_grad()
def spread(whole: Tensor, tensors: Sequence[Tensor]) -> None:
    """Write a vector into the tensors that it is joined from."""
    parts = torch.split(whole, [tensor.numel() for tensor in tensors])
    for part, tensor in zip(parts, tensors, strict=True):
        tensor.copy_(part.view_as(tensor))
