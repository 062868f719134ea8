"""Records for tests of everything that works from records alone."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from effbench.records import Record, label


def record(
    techniques: Mapping[str, Mapping[str, Any]] | str = "", *, seed: int = 0, value: float | None = None, **changes: Any
) -> Record:
    """A plausible record; `techniques` is a set, or the name of one technique, or "" for the baseline."""
    if isinstance(techniques, str):
        techniques = {techniques: {}} if techniques else {}
    status = changes.get("status", "ok")
    value = 0.8 + 0.001 * seed if value is None else value
    budget = changes.get("budget", "5s reference")
    metrics = {"validation": {"accuracy": value, "loss": 1 - value}, "test": {"accuracy": value, "loss": 1 - value}}
    facts: dict[str, Any] = {
        "suite": "quick",
        "workload": "mnist1d_cnn",
        "techniques": {n: dict(o) for n, o in techniques.items()},
        "seed": seed,
        "budget": budget,
        "status": status,
        "order": sorted(techniques),
        "clock": "reference",
        "metric": "accuracy",
        "higher_is_better": True,
        "target": 0.75,
        "threads": 1,
        "jobs": 2,
        "versions": {"effbench": "0.1.0", "torch": "2.13.0"},
        "environment": {"processor": "Test CPU", "cores": 2, "system": "Linux x86_64", "device": "cpu", "load": 0.5},
        "plugins": dict.fromkeys(techniques, "effbench_techniques"),
        "key": f"{label(techniques)}|{changes.get('workload', 'mnist1d_cnn')}|{budget}|{seed}",
    }
    if status == "ok":
        facts |= {
            "metrics": metrics,
            "stop_reason": "budget",
            "spent": 5.0,
            "steps": 400,
            "examples": 12800,
            "curve": curve(value),
            "ledger": {"setup": 0.4, "data": 0.2, "forward_backward": 4.0, "update": 0.8},
            "wall_seconds": 5.4,
            "cpu_seconds": 5.3,
            "setup_seconds": 0.4,
            "examples_per_second": 2560.0 + seed,
            "peak_memory_mib": 31.5,
            "parameters": 20010,
        }
    return Record(**{**facts, **changes})


def curve(final: float, points: int = 5, budget: float = 5.0) -> list[dict[str, float]]:
    """Accuracy that rises linearly from 0 to `final` over the budget, seen at equal distances."""
    shares = [(i + 1) / points for i in range(points)]
    return [{"progress": s, "spent": s * budget, "steps": 400 * s, "accuracy": s * final} for s in shares]


def several(techniques: Mapping[str, Mapping[str, Any]] | str, values: Sequence[float], **changes: Any) -> list[Record]:
    """One record a value; the seeds are 0, 1, 2, ..."""
    return [record(techniques, seed=seed, value=value, **changes) for seed, value in enumerate(values)]


LUCK = (0.00, 0.02, 0.01, 0.03, -0.01)  # of five seeds


def runs(
    techniques: Mapping[str, Mapping[str, Any]] | str, value: float, *, jitter: float = 0.0005, **changes: Any
) -> list[Record]:
    """Five runs around `value`, with the luck of their seeds, and a jitter of their own, up and down by turns."""
    values = [value + luck + jitter * (-1) ** seed for seed, luck in enumerate(LUCK)]
    return several(techniques, values, **changes)


def study(sets: int = 4, seeds: int = 3, workloads: Sequence[str] = ("mnist1d_cnn",), draw: int = 0) -> list[Record]:
    """A baseline and `sets` sets of techniques on each workload, with noise that pairs by seed."""
    dice = random.Random(draw)
    records = []
    for workload in workloads:
        luck = [dice.gauss(0.0, 0.01) for _ in range(seeds)]
        for number in range(sets + 1):
            techniques = {f"technique_{number}": {"alpha": 0.1 * number}} if number else {}
            values = [0.8 + 0.004 * number + luck[s] + dice.gauss(0.0, 0.002) for s in range(seeds)]
            records += several(techniques, values, workload=workload)
    return records
