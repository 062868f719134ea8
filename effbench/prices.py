"""The price list of a results folder: what is known, what must be measured, and measuring it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from effbench import identity, machine
from effbench.execution import Job, Outcome
from effbench.outcomes import how_it_ended
from effbench.planning import Cell, Settings, is_priced
from effbench.pricing import Trouble, baseline_price

if TYPE_CHECKING:
    from effbench.plugins import Plugins
    from effbench.runner import Run

ROUNDS, SECONDS = 100, 1.0  # at least so many rounds in turns with the baseline, and so long per phase


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
        "code": [identity.code_of(plugins.techniques[name].function) for name in sorted(cell.techniques)],
        "workload code": identity.code_of(plugins.workloads[cell.workload].recipe),
        "torch": identity.versions()["torch"],
    }
    return identity.digest(json.dumps(parts, sort_keys=True))


def missing(cells: Iterable[Cell], known: Mapping[str, Any], plugins: Plugins, settings: Settings) -> list[list[Cell]]:
    """Return the cells whose price is not known, in groups that are measured in turns in one job.

    Sets that need several processes are measured one by one: what fails there fails for all that share the job.
    """
    together: dict[tuple[str, str], list[Cell]] = {}
    alone = []
    seen = set(known)  # a price is of a step, so that the rungs of a ladder share it
    for cell in cells:
        if is_priced(cell) and not _is_given(cell) and (key := price_key(cell, plugins, settings)) not in seen:
            seen.add(key)
            if cell.composed.processes > 1:
                alone.append([cell])
            else:
                together.setdefault((cell.workload, cell.budget.unit), []).append(cell)
    return [*together.values(), *alone]


def measure(run: Run, cells: Iterable[Cell]) -> Mapping[str, Any]:
    """Measure the prices that the list lacks, add them to it, and return the whole list.

    What cannot be priced goes into `run.troubles`, by price key, and costs nothing but its own trials.
    """
    known = run.store.read_json("prices") or {}
    groups = missing(cells, known, run.plugins, run.settings)
    if not groups:
        return known
    run.observers.tell("effbench_calibration_started", suite=run.suite.name, groups=len(groups))
    while groups:
        again: list[list[Cell]] = []
        for group, job, outcome in _outcomes(run, groups):
            if outcome.result is not None:
                known = _keep(run, group, outcome.result)
                if not outcome.result["troubles"]:
                    Path(job.log).unlink(missing_ok=True)
            elif len(group) > 1 and not run.is_over:
                again += [[cell] for cell in group]  # one of them ended the process, and only it should pay for that
            else:
                why = Trouble(*how_it_ended(outcome.ended), f"no price could be measured; see {job.log}\n")
                for cell in group:
                    _note_trouble(run, cell, why)
        groups = again
    run.observers.tell("effbench_calibration_finished", suite=run.suite.name)
    return known


def _outcomes(run: Run, groups: Sequence[Sequence[Cell]]) -> Iterator[tuple[Sequence[Cell], Job, Outcome]]:
    """Measure groups of cells side by side."""
    logs = [run.store.logs / f"prices-{group[0].workload}-{number}.log" for number, group in enumerate(groups)]
    group_of = {str(log): group for log, group in zip(logs, groups, strict=True)}

    def hear(job: Job, event: dict[str, Any]) -> None:
        if event["event"] == "price":
            workload, progress = job.payload["workload"], event["progress"]
            run.observers.tell("effbench_calibration_progress", workload=workload, progress=progress)

    jobs = [_job_of(group, run, log) for log, group in group_of.items()]
    for log in logs:
        log.unlink(missing_ok=True)
    for job, outcome in run.execute(jobs, hear):
        yield group_of[job.log], job, outcome


def _keep(run: Run, group: Sequence[Cell], measured: Mapping[str, Any]) -> dict[str, Any]:
    """Add what was measured to the price list, and return the whole list."""
    found = {}
    for number, cell in enumerate(group):
        key = price_key(cell, run.plugins, run.settings)
        if trouble := measured["troubles"].get(str(number)):
            _note_trouble(run, cell, Trouble(**trouble))
        else:
            where = {"machine": machine.environment(run.settings.device)}
            found[key] = {"workload": cell.workload, "set": cell.label, **measured["prices"][str(number)], **where}
    return run.store.merge_json("prices", found)


def _note_trouble(run: Run, cell: Cell, trouble: Trouble) -> None:
    """Remember why a cell has no price."""
    if trouble.status != "skipped":
        trouble = dataclasses.replace(trouble, reason=f"while its step was priced: {trouble.reason}")
    run.troubles[price_key(cell, run.plugins, run.settings)] = trouble


def _job_of(group: Sequence[Cell], run: Run, log: str) -> Job:
    """Return the job that measures a group of cells."""
    payload = {
        "workload": group[0].workload,
        "sets": {str(number): cell.techniques for number, cell in enumerate(group)},
        "processes": group[0].composed.processes,
        "unit": group[0].budget.unit,
        "threads": run.settings.threads,
        "device": run.settings.device,
        "rounds": ROUNDS,
        "seconds": SECONDS,
    }
    return Job("price", payload, group[0].composed.processes, log, run.until)


def _is_given(cell: Cell) -> bool:
    """Tell whether the price is known without measuring: the baseline's step costs what the workload says it does."""
    return not cell.techniques and cell.budget.unit == "reference"


def price_of(cell: Cell, known: Mapping[str, Any], plugins: Plugins, settings: Settings) -> dict[str, Any] | None:
    """Return a cell's price as plain values, or None where its budget needs none.

    Raises:
        KeyError: it is not known.
    """
    if not is_priced(cell):
        return None
    if _is_given(cell):
        return baseline_price(plugins.workloads[cell.workload].step_seconds).to_plain()
    entry = known[price_key(cell, plugins, settings)]
    return {part: entry[part] for part in ("unit", "phases", "lumps")}
