"""What a rank holds between steps: bytes of parameters, gradients, optimizer state, and of what techniques remember.

By the formulae of Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models,
arXiv:1910.02054, P parameters in float32 with Adam are 4P + 4P + 8P bytes, of which sharding divides one part after
the other by the number of ranks.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from effbench.hookspecs import hookimpl
from effbench.meters import MIB, Meter, step_aside
from effbench.recipe import Training


def parameter_bytes(training: Training) -> int:
    """Return the bytes of the parameters that this rank holds."""
    return nbytes(list(training.model.parameters()))


def gradient_bytes(training: Training) -> int:
    """Return the bytes of the gradients that this rank holds when its optimizer begins to work, in one more step."""
    seen = [0]

    def note(*_: object) -> None:
        seen.append(nbytes([p.grad for p in training.model.parameters()]))

    handle = training.optimizer.register_step_pre_hook(note)
    try:
        step_aside(training)
    finally:
        handle.remove()
    return max(seen)


def optimizer_bytes(training: Training) -> int:
    """Return the bytes of the optimizer's state on this rank."""
    return nbytes(dict(training.optimizer.state))


def kept_bytes(training: Training) -> int:
    """Return the bytes of what techniques keep on this rank: averages, residuals, masks."""
    return nbytes(training.kept)


def nbytes(found: Any) -> int:
    """Return the bytes of all tensors in `found`, however deep, each counted once; of sharded ones this rank's part."""
    tensors = {id(tensor): tensor for tensor in tensors_in(found)}
    return sum((each.to_local() if isinstance(each, DTensor) else each).nbytes for each in tensors.values())


def tensors_in(found: Any) -> Iterator[Tensor]:
    """Yield the tensors in a tensor, a module, the values of a mapping, a sequence or a dataclass; no others."""
    inside: Any = ()
    if isinstance(found, Tensor):
        yield found
    elif isinstance(found, nn.Module):
        inside = [*found.parameters(), *found.buffers()]
    elif isinstance(found, Mapping):
        inside = found.values()
    elif isinstance(found, list | tuple | set | deque):
        inside = found
    elif dataclasses.is_dataclass(found) and not isinstance(found, type):
        inside = [getattr(found, each.name) for each in dataclasses.fields(found)]
    for each in inside:
        yield from tensors_in(each)


def _most(on_this_rank: Callable[[Training], int]) -> Callable[[Training], float]:
    """Return a measure of the rank that holds most, MiB."""

    def measure(training: Training) -> float:
        return max(training.group.together().gather(on_this_rank(training))) / MIB

    return measure


@hookimpl
def effbench_meters() -> list[Meter]:
    """Offer the meters of what the rank that holds most holds."""
    return [
        Meter("held_parameters_mib", _most(parameter_bytes)),
        Meter("held_gradients_mib", _most(gradient_bytes)),
        Meter("held_optimizer_mib", _most(optimizer_bytes)),
        Meter("held_by_techniques_mib", _most(kept_bytes)),
    ]
