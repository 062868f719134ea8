"""A process group that sends everything through a wire: what techniques send, and what torch sends by itself.

Collectives called from Python, from DDP's reducer, from FSDP and from functional collectives (DTensor, tensor
parallelism) all end in the methods of a `ProcessGroup`; torch takes one that is written in Python by
`Backend.register_backend`. Groups made by `dist.new_group` or a device mesh go through the same wire. What does not:
`torch.distributed.rpc`, which has a transport of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from effbench.distributed import traffic
from effbench.distributed.traffic import Message
from effbench.distributed.wire import Wire

Measure = Callable[[dist.ProcessGroup, Sequence[Any]], Message]  # (group, arguments of the call) -> message

NAME = "metered"  # of the backend, as torch knows it


class MeteredGroup(dist.ProcessGroup):
    """Counts a collective, then lets torch's own group do it."""

    def __init__(self, inner: dist.ProcessGroup, wire: Wire) -> None:
        super().__init__(inner.rank(), inner.size())  # type: ignore[call-arg]  # torch's stub lacks this signature
        self.inner, self.wire = inner, wire


def register(wire: Wire, devices: Sequence[str]) -> str:
    """Let groups of processes on these devices, "cpu" or "cuda", go through `wire`; return the backend's name."""

    def create(store: Any, rank: int, size: int, timeout: timedelta) -> dist.ProcessGroup:
        inner = dist.ProcessGroup(store, rank, size)
        outer = MeteredGroup(inner, wire)
        for device in devices:
            kind, backend = _backend(device, store, rank, size, timeout)
            for group in (inner, outer):
                group._set_default_backend(kind)  # noqa: SLF001 - as torch does for its own groups
                group._register_backend(torch.device(device), kind, backend)  # noqa: SLF001 - as above
        return outer

    dist.Backend.register_backend(NAME, create, devices=list(devices))
    return NAME


def _backend(device: str, store: Any, rank: int, size: int, timeout: timedelta) -> tuple[Any, Any]:
    """Return the kind of torch's backend for a device, and the backend."""
    place = dist.PrefixStore(f"{device}/", store)  # type: ignore[attr-defined]  # torch's stub lacks it
    backend: Any
    if device == "cuda":
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = timeout  # noqa: SLF001 - there is no public way
        kind, backend = dist.ProcessGroup.BackendType.NCCL, dist.ProcessGroupNCCL(place, rank, size, options)
    else:
        kind, backend = dist.ProcessGroup.BackendType.GLOO, dist.ProcessGroupGloo(place, rank, size, timeout)
    backend._set_sequence_number_for_group()  # noqa: SLF001 - as torch does
    return kind, backend


def nbytes(tensors: Any) -> int:
    """Return the bytes of a tensor, or of all tensors of a nested list."""
    return tensors.nbytes if isinstance(tensors, Tensor) else sum(nbytes(each) for each in tensors)


def _to_others(group: dist.ProcessGroup, source: Any, splits: Sequence[int] = ()) -> float:
    """Return the bytes that an all-to-all sends to other ranks.

    source: a list of one tensor for each rank, or one tensor with `splits` rows for each, equal where there are none.
    """
    here = group.rank()
    if not isinstance(source, Tensor):
        return nbytes([part for rank, part in enumerate(source) if rank != here])
    own = splits[here] / max(1, sum(splits)) if splits else 1 / group.size()
    return source.nbytes * (1 - own)


def _whole(volume: Callable[[float, int], Message], at: int) -> Measure:
    """Measure a collective to which all ranks give alike; the tensors are the call's argument number `at`."""
    return lambda group, given: volume(nbytes(given[at]), group.size())


def _rooted(volume: Callable[[float, int, int], Message], at: int) -> Measure:
    """Measure a collective with a root, of which the options tell, the argument after the tensors."""
    return lambda group, given: volume(
        nbytes(given[at]), group.size(), (group.rank() - given[at + 1].rootRank) % group.size()
    )


#: method of a process group that sends -> the message that a call of it is. Names differ among versions of torch.
MEASURES: Mapping[str, Measure] = {
    **dict.fromkeys(("allreduce", "allreduce_coalesced"), _whole(traffic.all_reduce, 0)),
    **dict.fromkeys(
        (
            "reduce_scatter",
            *("reduce_scatter_single", "_reduce_scatter_base"),
            *("reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced"),
        ),
        _whole(traffic.reduce_scatter, 1),
    ),
    **dict.fromkeys(
        (
            *("allgather", "allgather_coalesced"),
            *("all_gather_single", "_allgather_base"),
            *("all_gather_single_coalesced", "allgather_into_tensor_coalesced"),
        ),
        _whole(traffic.all_gather, 1),
    ),
    "alltoall": lambda group, given: traffic.all_to_all(_to_others(group, given[1]), group.size()),
    **dict.fromkeys(
        ("all_to_all_single", "alltoall_base"),
        lambda group, given: traffic.all_to_all(_to_others(group, given[1], given[3]), group.size()),
    ),
    "broadcast": _rooted(traffic.broadcast, 0),
    "reduce": _rooted(traffic.reduce, 0),
    "scatter": _rooted(traffic.scatter, 1),
    "gather": _rooted(traffic.gather, 1),
    "send": lambda group, given: traffic.send(nbytes(given[0])),  # noqa: ARG005 - the signature of a measure
    "barrier": lambda group, given: traffic.barrier(group.size()),  # noqa: ARG005 - as above
}
#: Those that receive: they send nothing, and take as long as it takes until the other's message is there.
RECEIVING: tuple[str, ...] = ("recv", "recv_anysource")


def _sending(method: str, measure: Measure) -> Callable[..., dist.Work]:
    def collective(group: MeteredGroup, *arguments: Any, opts: Any = None) -> dist.Work:
        given = arguments if opts is None else (*arguments, opts)
        torchs: Callable[..., dist.Work] = getattr(group.inner, method)
        return group.wire.send(measure(group, given), lambda: torchs(*given))

    return collective


def _receiving(method: str) -> Callable[..., dist.Work]:
    def collective(group: MeteredGroup, *arguments: Any) -> dist.Work:
        work: dist.Work = getattr(group.inner, method)(*arguments)
        return work

    return collective


for _method, _measure in MEASURES.items():
    setattr(MeteredGroup, _method, _sending(_method, _measure))
for _method in RECEIVING:
    setattr(MeteredGroup, _method, _receiving(_method))
