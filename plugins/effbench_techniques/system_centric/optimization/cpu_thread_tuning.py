"""CPU thread tuning: so many threads for a step, and numbers next to zero taken for zero."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from effbench import Batch, Recipe, Training, technique
from effbench.errors import InvalidTechnique, NotApplicable

_MOST = 1024  # threads


@technique(
    "system_centric/optimization",
    paper="no paper: practice on CPUs; PyTorch's performance tuning guide",
    claim="no number is published",
    neutral={"threads": 0, "flush_denormals": False},
    title="CPU threads",
)
def cpu_thread_tuning(recipe: Recipe, *, threads: int = 2, flush_denormals: bool = True) -> Recipe:
    """Compute gradients by `threads` threads of the processor, and take denormal numbers for zero meanwhile.

    Sums are divided among threads, so that results differ in their rounding. A number below 1e-38 is denormal, and the
    processor may take a hundred times as long for it; they turn up where weights die out. Elsewhere in the run, and
    in evaluation, there are as many threads as the trial has.

    When it helps: wall seconds, cores that are idle, and layers that are large enough to be divided.
    When it does not: budgets of CPU time and of reference-seconds, which count every thread; small models, which may be
        slower with two; other trials on the same cores: two at once, with one thread each, are nearly twice the work of
        one (`docs/performance.md`).

    threads: threads of the step; 0 leaves their number as it is.
    flush_denormals: true takes denormal numbers for zero; false leaves them.
    """
    if not 0 <= threads <= _MOST:
        raise InvalidTechnique(f"cpu_thread_tuning: threads is {threads}; it should be from 0 (as it is) to {_MOST}")
    if flush_denormals and not can_flush():
        raise NotApplicable("cpu_thread_tuning: this processor cannot flush denormal numbers to zero")
    if threads == 0 and not flush_denormals:
        return recipe

    def gradient(training: Training, batch: Batch) -> Tensor:
        with tuned(threads, flush_denormals=flush_denormals):
            return recipe.gradient(training, batch)

    return recipe.wrap(gradient=gradient)


def can_flush() -> bool:
    """Tell whether this processor can take denormal numbers for zero; it is left taking them as they are."""
    return torch.set_flush_denormal(True) and torch.set_flush_denormal(False)


@contextmanager
def tuned(threads: int, *, flush_denormals: bool) -> Iterator[None]:
    """Compute by so many threads, without denormal numbers, while the context is open."""
    before = torch.get_num_threads()
    if threads not in (0, before):
        torch.set_num_threads(threads)
    if flush_denormals:
        torch.set_flush_denormal(True)
    try:
        yield
    finally:
        if flush_denormals:
            torch.set_flush_denormal(False)
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)
