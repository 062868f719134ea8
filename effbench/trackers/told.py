"""What a tracker is told of a trial: plain names and numbers, from its record alone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from effbench.records import Record

_ODD = re.compile(r"[^\w.+=-]+")


def name_of(record: Record) -> str:
    """Return what a person calls a trial."""
    return f"{record.workload} {record.label} seed {record.seed}"


def file_name_of(record: Record) -> str:
    """Return a name for files, which no other trial has."""
    return f"{_ODD.sub('_', name_of(record))[:100]}-{record.key[:8]}"


def settings_of(record: Record) -> dict[str, str | int | float | bool]:
    """Return what was asked: workload, set, seed, budget, and each option as `technique.option`."""
    options = {
        f"{technique}.{option}": value if isinstance(value, str | int | float | bool) else str(value)
        for technique, own in record.techniques.items()
        for option, value in own.items()
    }
    asked: dict[str, str | int | float | bool] = {
        "suite": record.suite,
        "workload": record.workload,
        "techniques": record.label,
        "seed": record.seed,
    }
    asked |= {"budget": record.budget, "clock": record.clock, "status": record.status}
    return asked | options


def curve_of(record: Record) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield (step, values) for each evaluation on the way."""
    for row in record.curve:
        values = {f"validation/{name}" if name == record.metric else name: value for name, value in row.items()}
        yield round(values.pop("steps", 0.0)), _finite(values)


def results_of(record: Record) -> dict[str, float]:
    """Return what came of it, units in the names: metrics by split, seconds by line of the ledger, speed, memory."""
    found = {f"{split}/{name}": value for split, own in record.metrics.items() for name, value in own.items()}
    found |= {f"seconds/{line}": seconds for line, seconds in record.ledger.items()}
    found |= {"seconds/wall": record.wall_seconds, "steps": float(record.steps)}
    for name in ("examples_per_second", "peak_memory_mib", "flop"):
        value = getattr(record, name)
        if value is not None:
            found[name] = float(value)
    return _finite({**found, **record.measured})


def _finite(values: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if math.isfinite(value)}
