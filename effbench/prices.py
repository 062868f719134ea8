"""The price list of a results folder: what is known, what must be measured, and the jobs that measure it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from effbench import identity
from effbench.execution import Job
from effbench.planning import Cell, Settings, is_priced
from effbench.pricing import Phase, Price

if TYPE_CHECKING:
    from effbench.plugins import Plugins

ROUNDS, SECONDS = 100, 2.0  # at least so many rounds in turns with the baseline, and so long per phase


def price_key(cell: Cell, plugins: Plugins, settings: Settings) -> str:
    """Return the key of a cell's price: it holds as long as code, versions, threads and device are the same.

    The machine is not part of it, on purpose: a price list may come from another one.
    """
    parts = {
        "workload": cell.workload,
        "techniques": json.dumps(cell.techniques, sort_keys=True),
        "unit": cell.budget.unit,
        "threads": settings.threads,
        "device": settings.device,
        "step seconds": plugins.workloads[cell.workload].step_seconds,
        "code": [identity.source_digest(plugins.techniques[name].function) for name in sorted(cell.techniques)],
        "workload code": identity.source_digest(plugins.workloads[cell.workload].recipe),
        "torch": identity.versions()["torch"],
    }
    return identity.digest(json.dumps(parts, sort_keys=True))


def missing(cells: Iterable[Cell], known: Mapping[str, Any], plugins: Plugins, settings: Settings) -> list[list[Cell]]:
    """Return the cells whose price is not known, in groups that are measured in turns in one job."""
    groups: dict[tuple[str, str, int], list[Cell]] = {}
    for cell in cells:
        if is_priced(cell) and not _is_given(cell) and price_key(cell, plugins, settings) not in known:
            groups.setdefault((cell.workload, cell.budget.unit, cell.processes), []).append(cell)
    return list(groups.values())


def job_of(group: Sequence[Cell], settings: Settings, log: str = "") -> Job:
    """Return the job that measures a group of cells."""
    payload = {
        "workload": group[0].workload,
        "sets": {cell.label: cell.techniques for cell in group},
        "unit": group[0].budget.unit,
        "threads": settings.threads,
        "device": settings.device,
        "data": dict(settings.data or {}),
        "rounds": ROUNDS,
        "seconds": SECONDS,
    }
    return Job("price", payload, processes=group[0].processes, log=log)


def entries(
    group: Sequence[Cell], measured: Mapping[str, Any], plugins: Plugins, settings: Settings, machine: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the new entries of the price list, by key."""
    return {
        price_key(cell, plugins, settings): {
            "workload": cell.workload,
            "set": cell.label,
            **measured[cell.label],
            "machine": dict(machine),
        }
        for cell in group
    }


def _is_given(cell: Cell) -> bool:
    """Tell whether the price is known without measuring: the baseline's step costs what the workload says it does."""
    return not cell.techniques and cell.budget.unit == "reference"


def price_of(cell: Cell, known: Mapping[str, Any], plugins: Plugins, settings: Settings) -> dict[str, Any] | None:
    """Return a cell's price as plain values, or None where its budget needs none."""
    if not is_priced(cell):
        return None
    if _is_given(cell):
        step_seconds = plugins.workloads[cell.workload].step_seconds
        return Price("reference", (Phase(0.0, step_seconds, 1.0, 1.0, 1.0, 0, 0.0),)).to_plain()
    entry = known[price_key(cell, plugins, settings)]
    return {part: entry[part] for part in ("unit", "phases", "lumps")}
