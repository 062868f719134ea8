"""What schedules of a pipeline cost, in slots of time: who waits, for how long, and how much is under way."""

from __future__ import annotations

from collections.abc import Sequence

from effbench.distributed.pipeline_schedules import Action, Kind


def timeline(plans: Sequence[Sequence[Action]]) -> list[list[Action | None]]:
    """Return what each device does in each slot of time, None where it waits, if every action takes one slot.

    A micro-batch enters a stage after it has left the one before, and goes back through it after it has gone back
    through the one behind, of which the last may turn it back at once.

    plans: what each device does, in order.

    Raises:
        ValueError: the devices wait for each other for ever.
    """
    devices = len(plans)
    last = max(action.chunk for plan in plans for action in plan) * devices + devices - 1
    done: dict[tuple[Kind, int, int], int] = {}  # (kind, stage, micro-batch) -> slot
    rows: list[list[Action | None]] = [[] for _ in plans]
    at = [0] * devices
    while any(position < len(plan) for position, plan in zip(at, plans, strict=True)):
        slot = len(rows[0])
        for device, plan in enumerate(plans):
            action = plan[at[device]] if at[device] < len(plan) else None
            if action is not None and all(done.get(each, slot) < slot for each in needs(action, device, devices, last)):
                done[action.kind, device + devices * action.chunk, action.micro_batch] = slot
                at[device] += 1
                rows[device].append(action)
            else:
                rows[device].append(None)
        if all(row[-1] is None for row in rows):
            raise ValueError(f"after {slot} slots every device waits for another one")
    return rows


def needs(action: Action, device: int, devices: int, last: int) -> list[tuple[Kind, int, int]]:
    """Return what must have been done before `action`, as (kind, stage, micro-batch); `last` is the last stage."""
    stage, number = device + devices * action.chunk, action.micro_batch
    if action.kind == "forward":
        return [("forward", stage - 1, number)] if stage else []
    behind: list[tuple[Kind, int, int]] = [("backward", stage + 1, number)] if stage < last else []
    return [("forward", stage, number), *behind]


def idle_share(rows: Sequence[Sequence[Action | None]]) -> float:
    """Return the share of all slots in which a device waits: the bubble."""
    slots = [action for row in rows for action in row]
    return slots.count(None) / len(slots)


def bubble(devices: int, micro_batches: int, chunks: int = 1) -> float:
    """Return the share of the time in which a device waits, in closed form: (D - 1) / (C M + D - 1).

    It is that of `fill_drain` and `one_forward_one_backward`, with one chunk, and of `interleaved`, if the number of
    micro-batches is a multiple of that of the devices.
    """
    return (devices - 1) / (chunks * micro_batches + devices - 1)


def most_under_way(plan: Sequence[Action]) -> int:
    """Return how many passes at the most a device keeps activations of at a time: gone forward, and not yet back."""
    under_way = most = 0
    for action in plan:
        under_way += 1 if action.kind == "forward" else -1
        most = max(most, under_way)
    return most
