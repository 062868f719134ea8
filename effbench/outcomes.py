"""Turn what became of a trial's process into the trial's record, with what the record cannot vouch for."""

from __future__ import annotations

import datetime as dt
import json
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from effbench import machine
from effbench.execution import Outcome
from effbench.records import Record, label
from effbench.trial import Trial, blank

if TYPE_CHECKING:
    from effbench.plugins import Plugins

_MAY_MISS_SECONDS, _MAY_MISS_SHARE = 0.05, 0.01  # of the wall time, by the ledger's lines
_MAY_JUMP_SECONDS = 5.0  # the system clock, against the monotonic one


def record_of(trial: Trial, outcome: Outcome, plugins: Plugins) -> Record:
    """Return the record that the process sent, or one that says how it ended without sending any."""
    if outcome.result is not None:
        record = Record.from_json(json.dumps(outcome.result))
        if record.status == "timeout" and outcome.ended == "total":
            record.stop_reason, record.reason = "total", "still running when the suite's total was spent"
    else:
        status, stop, reason = how_it_ended(outcome.ended)
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


def how_it_ended(ended: str) -> tuple[str, str, str]:
    """Return (status, stop reason, reason) of a process that left no result."""
    match ended.split():
        case ["deadline"]:
            return "timeout", "deadline", "did not stop at its deadline, and was killed"
        case ["total"]:
            return "timeout", "total", "did not stop when the suite's total was spent, and was killed"
        case ["interrupted"]:
            return "interrupted", "interrupted", "Ctrl-C"
        case ["signal", number]:
            return "killed", "failed", f"killed by signal {number} ({_name(int(number))})"
        case ["exit", "code", number]:
            return "failed", "failed", f"its process ended with exit code {number} and left no record"
        case []:
            return "failed", "failed", "its process ended and left no record"
        case _:
            return "failed", "failed", ended


def _name(number: int) -> str:
    """Return what a signal is called, and what it most often means."""
    name = signal.Signals(number).name if number in {known.value for known in signal.Signals} else "unknown"
    return f"{name}: perhaps the memory ran out" if name == "SIGKILL" else name


def doubts(record: Record) -> list[str]:
    """Say what the record cannot vouch for, in words that do not change with the numbers, so that tables can count."""
    found = []
    lines, wall = sum(record.ledger.values()), record.wall_seconds
    if record.ledger and abs(lines - wall) > max(_MAY_MISS_SECONDS, _MAY_MISS_SHARE * wall):
        found.append("the ledger's lines and the wall time are more than 1 % apart")
    if record.ledger and record.started and record.finished:
        stamps = dt.datetime.fromisoformat(record.finished) - dt.datetime.fromisoformat(record.started)
        if abs(stamps.total_seconds() - wall) > _MAY_JUMP_SECONDS:
            found.append("the system clock was set meanwhile, or the machine slept")
    cores, threads = record.environment.get("cores", 1), record.threads * max(record.jobs, record.processes)
    if threads > cores:
        found.append(f"more threads than cores: {threads} on {cores}")
    elif record.environment.get("load_after", 0.0) > cores + 1:
        found.append("the machine was busy with other work")
    return found


def log_file(trial: Trial, folder: Path) -> Path:
    """Return where a trial's output goes: a name that a person can read, and no two trials share."""
    readable = re.sub(r"[^A-Za-z0-9_.+=-]+", "-", label(trial.techniques))[:60]
    return folder / f"{trial.workload}-{readable}-{trial.seed}-{trial.key[:6]}.log"
