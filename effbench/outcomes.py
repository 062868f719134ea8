"""Turn what became of a trial's process into the trial's record, with what the record cannot vouch for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from effbench import machine
from effbench.execution import Outcome
from effbench.records import Record, label
from effbench.trial import Trial, blank

if TYPE_CHECKING:
    from effbench.plugins import Plugins

_MAY_MISS_SECONDS, _MAY_MISS_SHARE = 0.05, 0.01  # of the wall time, by the ledger's lines


def record_of(trial: Trial, outcome: Outcome, plugins: Plugins) -> Record:
    """Return the record that the process sent, or one that says how it ended without sending any."""
    if outcome.result is not None:
        record = Record.from_json(json.dumps(outcome.result))
    else:
        status, stop, reason = _how_it_ended(outcome.ended)
        record = without_training(trial, plugins, status, stop, reason)
    record.wall_seconds = outcome.seconds
    record.overrun_seconds = max(record.overrun_seconds, outcome.overrun_seconds)
    record.warnings += doubts(record)
    return record


def without_training(trial: Trial, plugins: Plugins, status: str, stop_reason: str, reason: str) -> Record:
    """Return the record of a trial of which nothing was measured."""
    record = blank(trial, plugins.workloads[trial.workload], plugins)
    record.status, record.stop_reason, record.reason, record.finished = status, stop_reason, reason, machine.now()
    return record


def _how_it_ended(ended: str) -> tuple[str, str, str]:
    """Return (status, stop reason, reason) of a process that left no record."""
    match ended.split():
        case ["deadline"]:
            return "timeout", "deadline", "did not stop at its deadline, and was killed"
        case ["interrupted"]:
            return "interrupted", "interrupted", "Ctrl-C"
        case ["signal", number]:
            return "killed", "failed", f"killed by signal {number}"
        case _:
            return "failed", "failed", f"its process ended with {ended or 'exit code 0'} and left no record"


def doubts(record: Record) -> list[str]:
    """Say what the record cannot vouch for."""
    found = []
    lines, wall = sum(record.ledger.values()), record.wall_seconds
    if record.ledger and abs(lines - wall) > max(_MAY_MISS_SECONDS, _MAY_MISS_SHARE * wall):
        found.append(f"the ledger's lines add up to {lines:.2f} s of {wall:.2f} s on the wall")
    cores, load = record.environment.get("cores", 1), record.environment.get("load_after", 0.0)
    if load > max(cores, record.jobs) + 1:
        found.append(f"busy machine: load {load:.1f} on {cores} cores")
    return found


def log_file(trial: Trial, folder: Path) -> Path:
    """Return where a trial's output goes: a name that a person can read, and no two trials share."""
    readable = re.sub(r"[^A-Za-z0-9_.+=-]+", "-", label(trial.techniques))[:60]
    return folder / f"{trial.workload}-{readable}-{trial.seed}-{trial.key[:6]}.log"
