"""Linear layers of which each process has a part: transformers cut by heads and by hidden units.

Shoeybi et al., Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism, arXiv:1909.08053.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from effbench.autograd import applied
from effbench.distributed.axes import Axis
from effbench.distributed.stages import is_hooked
from effbench.errors import NotApplicable
from effbench.models.transformer import Attention, FeedForward

_TOKENS = 4  # on which is tried whether something treats each head and each hidden unit by itself


class Copied(torch.autograd.Function):
    """Hands `x`, which all processes have alike, to each of them; so its slope is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, axis: Axis) -> Tensor:
        """Return `x`."""
        ctx.axis = axis
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:
        """Add up the slopes."""
        return ctx.axis.sum(slope.contiguous().clone()), None


class Summed(torch.autograd.Function):
    """Adds up what the processes have of `x`; so the slope of each is that of the sum."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, axis: Axis) -> Tensor:  # noqa: ARG004 - the signature of a function
        """Return the sum."""
        return axis.sum(x.contiguous().clone())

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:  # noqa: ARG004 - as above
        """Return the slope."""
        return slope, None


class Cut(nn.Module):
    """A linear layer of which each process has a part of the weights.

    dimension: 0 cuts the outputs: all processes are given the same, and each says its part (a column-parallel layer); 1
        cuts the inputs: each is given its part, and what they say is added up (a row-parallel layer).
    parts: the positions along this dimension that each process has.
    """

    def __init__(self, layer: nn.Linear, dimension: int, parts: Sequence[Tensor], axis: Axis) -> None:
        super().__init__()
        self.dimension, self.parts, self.axis = dimension, parts, axis
        own = parts[axis.place].to(layer.weight.device)
        self.weight = part_of(layer.weight, dimension, own)
        self.bias = part_of(layer.bias, 0, own) if layer.bias is not None and dimension == 0 else layer.bias

    def forward(self, x: Tensor) -> Tensor:
        """Return (..., O) of (..., I): this process's part of O, or all of it."""
        if self.dimension == 0:
            return F.linear(applied(Copied, x, self.axis), self.weight, self.bias)
        whole = applied(Summed, F.linear(x, self.weight), self.axis)
        return whole if self.bias is None else whole + self.bias

    def cut_parameters(self) -> dict[str, nn.Parameter]:
        """Return the parameters of which other processes have other parts, by name."""
        found = {"weight": self.weight}
        return found | {"bias": self.bias} if self.bias is not None and self.dimension == 0 else found


def part_of(parameter: Tensor, dimension: int, positions: Tensor) -> nn.Parameter:
    """Return these positions of a parameter as one of its own."""
    part = parameter.detach().index_select(dimension, positions)
    return nn.Parameter(part, requires_grad=parameter.requires_grad)


def cut_model(model: nn.Module, axis: Axis, technique: str) -> None:
    """Leave this process its heads of every attention layer, and its hidden units of every feed-forward layer.

    Raises:
        NotApplicable: there is nothing to cut, or it is not what can be cut.
    """
    layers = {name: module for name, module in model.named_modules() if type(module) in {Attention, FeedForward}}
    if not layers:
        raise NotApplicable(f"{technique} cuts the attention and feed-forward layers of transformers, and finds none")
    for name, layer in layers.items():
        try:
            if isinstance(layer, Attention):
                cut_attention(layer, axis)
            elif isinstance(layer, FeedForward):
                cut_feed_forward(layer, axis)
        except Uncuttable as why:
            raise NotApplicable(f"{technique} cannot cut {name}: {why}") from None


class Uncuttable(Exception):
    """Why a layer cannot be cut."""


def cut_attention(layer: Attention, axis: Axis) -> None:
    """Leave this process its heads: their rows of q, k and v, and their columns of the layer after it.

    Raises:
        Uncuttable: there are too few heads, or the layer is not that of a plain transformer.
    """
    width, heads = layer.qkv.in_features, layer.heads
    check_linear(layer.qkv, layer.last)
    if heads < axis.size:
        raise Uncuttable(f"it has {heads} heads, fewer than there are processes")
    shares = shared_out(heads, axis.size)
    check_heads(layer.attend, heads, width // heads, shares[axis.place])
    columns = torch.arange(width).view(heads, -1)
    rows = torch.arange(3 * width).view(3, heads, -1)
    layer.add_module("qkv", Cut(layer.qkv, 0, [rows[:, share].flatten() for share in shares], axis))
    layer.add_module("last", Cut(layer.last, 1, [columns[share].flatten() for share in shares], axis))
    layer.heads = len(shares[axis.place])


def cut_feed_forward(layer: FeedForward, axis: Axis) -> None:
    """Leave this process its hidden units; of a gated layer, both of the halves that belong together.

    Raises:
        Uncuttable: there are too few hidden units, or the layer is not that of a plain transformer.
    """
    check_linear(layer.first, layer.last)
    hidden = layer.last.in_features
    if hidden < axis.size or layer.first.out_features % hidden:
        raise Uncuttable(f"it has {hidden} hidden units, made of {layer.first.out_features} numbers")
    shares = shared_out(hidden, axis.size)
    rows = torch.arange(layer.first.out_features).view(-1, hidden)
    parts = [rows[:, share].flatten() for share in shares]
    check_activation(layer.activation, parts[axis.place], shares[axis.place], layer.first.out_features)
    layer.add_module("first", Cut(layer.first, 0, parts, axis))
    layer.add_module("last", Cut(layer.last, 1, shares, axis))


def shared_out(count: int, processes: int) -> list[Tensor]:
    """Return the positions below `count` that each process has: as many as any other, or one more."""
    return list(torch.arange(count).tensor_split(processes))


def check_linear(*layers: nn.Module) -> None:
    """Raise Uncuttable where a layer is not what it is in a plain transformer."""
    for layer in layers:
        if type(layer) is not nn.Linear:
            raise Uncuttable(f"another technique made it a {type(layer).__name__}, which has no rows and columns")
        if is_hooked(layer):
            raise Uncuttable("another technique does something with what its linear layers say")


def check_heads(attend: nn.Module, heads: int, size: int, own: Tensor) -> None:
    """Raise Uncuttable where attention has weights, or does not treat each head by itself, tried on random numbers."""
    q, k, v = torch.randn(3, 1, heads, _TOKENS, size, generator=torch.Generator().manual_seed(0))
    check_separable(attend, (q, k, v), tuple(x[:, own] for x in (q, k, v)), (slice(None), own))


def check_activation(activation: nn.Module, rows: Tensor, own: Tensor, size: int) -> None:
    """Raise Uncuttable where an activation has weights, or does not treat each hidden unit by itself."""
    x = torch.randn(_TOKENS, size, generator=torch.Generator().manual_seed(0))
    check_separable(activation, (x,), (x[:, rows],), (slice(None), own))


def check_separable(module: nn.Module, whole: tuple[Tensor, ...], part: tuple[Tensor, ...], own: Any) -> None:
    """Raise Uncuttable where what a module makes of a part is not this part of what it makes of the whole."""
    kind = type(module).__name__
    if next(module.parameters(), None) is not None:
        raise Uncuttable(f"its {kind} has weights for what several processes have")
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            same = torch.allclose(module(*whole)[own], module(*part), rtol=1e-4, atol=1e-6)
    except Exception as why:  # whatever another technique's module raises when it is tried by itself
        raise Uncuttable(f"its {kind} cannot be tried by itself ({type(why).__name__}: {why})") from why
    if not same:
        raise Uncuttable(f"its {kind} mixes what several processes have")


def cut_parameters(model: nn.Module) -> set[nn.Parameter]:
    """Return the parameters of which other processes have other parts."""
    cuts = [module for module in model.modules() if isinstance(module, Cut)]
    return {parameter for cut in cuts for parameter in cut.cut_parameters().values()}


def whole_state(model: nn.Module) -> dict[str, Tensor]:
    """Return weights and buffers by name, those that are cut put together on the first process of the axis alone."""
    state: dict[str, Tensor] = dict(model.state_dict())
    for prefix, module in model.named_modules():
        if isinstance(module, Cut):
            for name, parameter in module.cut_parameters().items():
                state[f"{prefix}.{name}"] = put_together(parameter.detach(), module)
    return state


def put_together(part: Tensor, cut: Cut) -> Tensor:
    """Return the whole of a tensor on the first process of the axis, from all parts; elsewhere the part."""
    axis = cut.axis
    if axis.place:
        dist.send(part.contiguous(), axis.ranks[0])
        return part
    shape = list(part.shape)
    shape[cut.dimension] = sum(len(positions) for positions in cut.parts)
    whole = part.new_empty(shape)
    for place, positions in enumerate(cut.parts):
        shape[cut.dimension] = len(positions)
        if place:
            part = part.new_empty(shape)
            dist.recv(part, axis.ranks[place])
        whole.index_copy_(cut.dimension, positions.to(part.device), part)
    return whole
