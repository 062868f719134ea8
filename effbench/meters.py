"""What else is measured of a trial: after training, off the clock, by one more step under an instrument."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from effbench.clock import Ledger
from effbench.hookspecs import hookimpl
from effbench.recipe import Training
from effbench.train import Positions, take_step

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Meter:
    """Measures one number of a run that is over; it may train on, for nobody looks at the weights any more.

    name: the key in the record, with its unit: `peak_memory_mib`.
    measure: training -> the number, or None where this machine cannot tell.
    """

    name: str
    measure: Callable[[Training], float | None]


def count_flop(work: Callable[[], Any]) -> float:
    """Return the floating-point operations of `work`, counted by FlopCounterMode.

    Meanwhile attention runs by its MATH backend, and compiled models run as they were before: the counter sees nothing
    of what the CPU's flash kernel or compiled code does.
    """
    with (
        torch.compiler.set_stance("force_eager"),
        sdpa_kernel(SDPBackend.MATH),
        FlopCounterMode(display=False) as counter,
    ):
        work()
    return float(counter.get_total_flops())


def flop_of_a_step(training: Training) -> float:
    """Count the floating-point operations of one step, over all ranks."""
    return training.group.together().sum_float(count_flop(lambda: step_aside(training)))


def peak_memory_of_a_step(training: Training) -> float | None:
    """Return the most memory, MiB, that one step holds above what is held before it.

    On a GPU the allocator's own peak; on the CPU the running sum of the profiler's allocations, exact to the byte.
    """
    device = next(training.model.parameters()).device
    if device.type == "cuda":
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        step_aside(training)
        return (torch.cuda.max_memory_allocated(device) - before) / MIB
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        step_aside(training)
    return peak_of_allocations(profile) / MIB


def step_aside(training: Training) -> None:
    """Take one more step that counts for nothing: no step, no example, no second of the run's."""
    aside = dataclasses.replace(training, ledger=Ledger())
    take_step(aside, Positions(aside.recipe.sampler(aside)))


def peak_of_allocations(profile: torch.profiler.profile) -> int:
    """Return the highest running sum, bytes, of the allocations and releases that a profile saw."""
    held = peak = 0
    assert profile.profiler is not None
    results = profile.profiler.kineto_results
    assert results is not None  # for the profile has come to its end
    events: list[Any] = [e for e in results.events() if e.name() == "[memory]"]
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


@hookimpl
def effbench_meters() -> list[Meter]:
    """Offer the meters that every trial uses."""
    return [Meter("flop_per_step", flop_of_a_step), Meter("peak_memory_mib", peak_memory_of_a_step)]
