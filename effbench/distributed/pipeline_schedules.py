"""What each device of a pipeline does, in which order: schedules as plain data.

A model is cut into stages, a batch into micro-batches. Stage `device + devices * chunk` lies on `device` as its chunk
number `chunk`; all schedules but the interleaved one have a single chunk, so that stages and devices are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Literal, NamedTuple

Kind = Literal["forward", "backward"]


class Action(NamedTuple):
    """One pass of one micro-batch through one chunk."""

    kind: Kind
    chunk: int
    micro_batch: int


#: (device, devices, micro-batches) -> what the device does, in order.
Schedule = Callable[[int, int, int], list[Action]]


def fill_drain(device: int, devices: int, micro_batches: int) -> list[Action]:  # noqa: ARG001 - the same on all devices
    """Let all micro-batches go forward, then all of them back, the last one first.

    Huang et al., GPipe, arXiv:1811.06965, figure 2c.
    """
    forward = [Action("forward", 0, number) for number in range(micro_batches)]
    return forward + [Action("backward", 0, number) for number in reversed(range(micro_batches))]


def one_forward_one_backward(device: int, devices: int, micro_batches: int) -> list[Action]:
    """Let each micro-batch go back as early as it can, so that at most `devices - device` are under way.

    Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training, arXiv:2006.09503: PipeDream-Flush.
    """
    forward = [Action("forward", 0, number) for number in range(micro_batches)]
    backward = [Action("backward", 0, number) for number in range(micro_batches)]
    return _alternating(forward, backward, ahead=devices - 1 - device)


def interleaved(chunks: int) -> Schedule:
    """Return the schedule in which each device has `chunks` chunks, one at every turn of the model around the devices.

    Micro-batches go in groups of as many as there are devices, each group through all chunks before the next one. A
    last group of fewer would leave devices waiting, some for ever. With one chunk it is `one_forward_one_backward`.

    Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, arXiv:2104.04473.

    Raises, when it is called:
        ValueError: the number of micro-batches is no multiple of that of the devices.
    """
    if chunks == 1:
        return one_forward_one_backward

    def schedule(device: int, devices: int, micro_batches: int) -> list[Action]:
        if micro_batches % devices:
            raise ValueError(f"{micro_batches} micro-batches do not fill groups of {devices}, as many as devices")
        groups = [range(first, first + devices) for first in range(0, micro_batches, devices)]
        forward = [Action("forward", chunk, n) for group in groups for chunk in range(chunks) for n in group]
        backward = [
            Action("backward", chunk, n) for group in groups for chunk in reversed(range(chunks)) for n in group
        ]
        return _alternating(forward, backward, ahead=(chunks - 1) * devices + 2 * (devices - 1 - device))

    return schedule


def without_flush(device: int, devices: int, step: int) -> list[Action]:
    """Return what a device does in one step of a pipeline that is never emptied: a batch comes, an earlier one goes.

    Batches are numbered like steps. The first `devices - 1 - device` steps only fill the pipeline.

    Harlap et al., PipeDream: Fast and Efficient Pipeline Parallel DNN Training, arXiv:1806.03377.
    """
    back = step - (devices - 1 - device)
    return [Action("forward", 0, step), *([Action("backward", 0, back)] if back >= 0 else [])]


def emptying(device: int, devices: int, steps: int) -> list[Action]:
    """Return what is left to do for a device after so many steps of `without_flush`."""
    return [Action("backward", 0, number) for number in range(max(0, steps - (devices - 1 - device)), steps)]


def _alternating(forward: list[Action], backward: list[Action], ahead: int) -> list[Action]:
    """Return all actions in order: `ahead` forward, then one forward and one backward in turns, then the rest."""
    ahead = min(ahead, len(forward))
    pairs = zip_longest(forward[ahead:], backward[: len(forward) - ahead])
    turns = [action for pair in pairs for action in pair if action is not None]
    return forward[:ahead] + turns + backward[len(forward) - ahead :]
