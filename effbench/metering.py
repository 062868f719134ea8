"""Read the meters at the end of a trial; one that fails costs its number, not the trial."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from effbench.clock import ON_THE_CLOCK
from effbench.recipe import Training
from effbench.records import Record
from effbench.trial import Stop

if TYPE_CHECKING:
    from effbench.meters import Meter


def read_meters(meters: Mapping[str, Meter], training: Training, record: Record) -> None:
    """Read every meter, and write the numbers into the record; what fails leaves a warning."""
    found: dict[str, float | None] = {**training.measured}
    record.traffic = training.group.together().gather(traffic_of(training))
    try:
        with training.ledger.line("metering"), _quiet():
            for name, meter in meters.items():
                found[name] = _read(meter, training, record)
    except Stop:  # the trial itself has come to its end
        record.warnings.append("the meters could not be read in time")
    record.peak_memory_mib = found.pop("peak_memory_mib", None)
    step = found.pop("flop_per_step", None)
    record.flop = step * record.steps if step is not None else None
    record.measured = {name: value for name, value in found.items() if value is not None}


def traffic_of(training: Training) -> dict[str, dict[str, float]]:
    """Return what this rank sent in a step on the average: collective -> {"bytes": ..., "calls": ...}.

    What left on the clock counts, preparing the final weights included, and not what was sent to set up or to
    evaluate. Bytes are algorithmic: see `effbench.distributed.traffic`.
    """
    steps = max(1, training.step)
    sent = training.group.wire.traffic.so_far(ON_THE_CLOCK)
    return {name: {"bytes": each.bytes / steps, "calls": each.calls / steps} for name, each in sorted(sent.items())}


def _read(meter: Meter, training: Training, record: Record) -> float | None:
    try:
        value = meter.measure(training)
        return None if value is None else float(value)
    except Exception as fault:  # noqa: BLE001 - it may be a stranger's
        first = str(fault).partition("\n")[0]
        record.warnings.append(f"{meter.name} could not be measured: {type(fault).__name__}: {first}")
        return None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Send what C++ code writes to standard output and error nowhere: torch's profiler chats."""
    saved = [os.dup(1), os.dup(2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        for number, copy in zip((1, 2), saved, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
