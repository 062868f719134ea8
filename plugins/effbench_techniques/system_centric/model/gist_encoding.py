"""Gist encoding: keep one bit for each ReLU, and of what ReLUs return only what is not zero."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.autograd.graph import saved_tensors_hooks
from torch.multiprocessing.reductions import StorageWeakRef

from effbench import Batch, Recipe, Training, technique
from effbench.autograd import applied
from effbench.errors import NotApplicable
from effbench.models.replacing import replace

_SMALLEST = 32  # numbers: below that, encoding costs more than it spares
_FULLEST = 0.9  # share of numbers that are not zero, up to which encoding spares much


@technique(
    "system_centric/model",
    paper="no paper: none on arXiv; Jain et al., Gist: Efficient Data Encoding for Deep Neural Network Training, "
    "ISCA 2018",
    claim="up to twice less memory for ImageNet networks, for 4 % more time",
    conflicts={"torch_compile": "compiled code keeps what it likes, and asks no hooks"},
)
def gist_encoding(recipe: Recipe) -> Recipe:
    """Encode what is kept for the backward pass where that loses nothing: masks of ReLUs as bits, zeros not at all.

    A ReLU's backward pass needs to know where its output is positive: a bit for each number instead of the number. A
    convolution or linear layer after it needs the output, of which about half is zero: the others are kept, and a bit
    for each that says where they go. The gradient is the same, bit by bit.

    When it helps: convolutional networks with ReLUs, whose memory is activations.
    When it does not: it costs time, on a CPU much more than on a GPU with kernels for it; networks without zeros,
        such as transformers with GELUs.
    """
    with torch.random.fork_rng(devices=[]):
        if not finds_zeros(recipe.model(), recipe.dataset.inputs[:2].cpu()):
            raise NotApplicable("gist_encoding spares zeros that ReLUs make, and this model keeps none")

    def model() -> nn.Module:
        made = recipe.model()
        replace(made, nn.ReLU, lambda _: OneBitReLU())
        return made

    def gradient(training: Training, batch: Batch) -> Tensor:
        gist = Gist()
        with saved_tensors_hooks(gist.encode, decode):
            return recipe.gradient(training, batch)

    return recipe.wrap(model=model, gradient=gradient)


def finds_zeros(model: nn.Module, inputs: Tensor) -> bool:
    """Tell whether a model has ReLUs, or keeps anything else for its backward pass that can be encoded."""
    if any(type(module) is nn.ReLU for module in model.modules()):
        return True
    gist = Gist()
    with torch.enable_grad(), saved_tensors_hooks(gist.encode, decode):
        model(inputs)
    return gist.count > 0


class OneBitReLU(nn.Module):
    """The positive part of a number, whose backward pass keeps one bit of it."""

    def forward(self, x: Tensor) -> Tensor:
        """Return `x` where it is positive, else 0."""
        return applied(_OneBit, x)


class _OneBit(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:
        result = F.relu(x)
        context.save_for_backward(to_bits(result > 0))
        return result

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> Tensor:
        (bits,) = context.saved_tensors
        return torch.where(from_bits(bits, gradient.shape), gradient, 0.0)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Sparse:
    """A tensor as the numbers in it that are not zero, in order, and a bit for each that says where they are."""

    values: Tensor
    bits: Tensor
    shape: torch.Size
    stride: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes that it takes."""
        return self.values.nbytes + self.bits.nbytes


class Gist:
    """Encodes what autograd wants to keep, each tensor once, whoever keeps it."""

    def __init__(self) -> None:
        self.count = 0  # tensors that were encoded
        self._known: dict[Any, tuple[StorageWeakRef, weakref.ref[Sparse]]] = {}

    def encode(self, tensor: Tensor) -> Tensor | Sparse:
        """Return `tensor`, or what stands for it where enough of it is zero."""
        if tensor.is_leaf and tensor.requires_grad:  # weights stay anyway
            return tensor
        if not tensor.is_floating_point() or tensor.numel() < _SMALLEST or not is_dense(tensor):
            return tensor
        storage = tensor.untyped_storage()
        key = (storage._cdata, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor._version)  # noqa: SLF001 - no public name
        if (known := self._look_up(key)) is not None:
            return known
        there = tensor != 0
        if int(there.count_nonzero()) > _FULLEST * tensor.numel():
            return tensor
        encoded = Sparse(tensor.detach()[there], to_bits(there), tensor.shape, tensor.stride())
        self._known[key] = StorageWeakRef(storage), weakref.ref(encoded)  # type: ignore[no-untyped-call]  # torch's has no types
        self.count += 1
        return encoded

    def _look_up(self, key: Any) -> Sparse | None:
        """Return what a tensor was encoded to; not if another one lies in its memory now, or nobody keeps it."""
        if key not in self._known:
            return None
        storage, encoded = self._known[key]
        return None if storage.expired() else encoded()  # type: ignore[no-untyped-call]  # as above


def decode(kept: Tensor | Sparse) -> Tensor:
    """Return the tensor that `Gist.encode` was given."""
    if isinstance(kept, Tensor):
        return kept
    dense = torch.empty_strided(kept.shape, kept.stride, dtype=kept.values.dtype, device=kept.values.device).zero_()
    dense[from_bits(kept.bits, kept.shape)] = kept.values
    return dense


def is_dense(tensor: Tensor) -> bool:
    """Tell whether a tensor fills its stretch of memory without gaps, in an order that is a usual one."""
    return tensor.is_contiguous() or (tensor.ndim == 4 and tensor.is_contiguous(memory_format=torch.channels_last))


def to_bits(mask: Tensor) -> Tensor:
    """Pack booleans into bytes, (ceil(n / 8),), in order."""
    flat = mask.flatten().to(torch.uint8)
    bytes_ = F.pad(flat, (0, -len(flat) % 8)).view(-1, 8)
    return (bytes_ << torch.arange(8, dtype=torch.uint8, device=mask.device)).sum(1, dtype=torch.uint8)


def from_bits(bits: Tensor, shape: torch.Size) -> Tensor:
    """Undo `to_bits` for a mask of this shape."""
    flat = (bits[:, None] >> torch.arange(8, dtype=torch.uint8, device=bits.device)) & 1
    return flat.flatten()[: shape.numel()].view(shape).bool()
