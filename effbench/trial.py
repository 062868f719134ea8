"""One trial: from plain values to a record, whatever happens on the way."""

from __future__ import annotations

import contextlib
import dataclasses
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from effbench import machine
from effbench.budget import Budget
from effbench.clock import Ledger
from effbench.errors import Diverged, EffbenchError, Refusal, words_of
from effbench.records import Record

if TYPE_CHECKING:
    from effbench.plugins import Plugins
    from effbench.workloads.workload import Workload

Event = dict[str, Any]
Hear = Callable[[Event], None]

_WIDEST = 500  # characters of a line that a record quotes
_SETUP_PATIENCE = 900.0  # seconds that reading data and building the model may take


class Stop(BaseException):
    """The parent process asks the trial to come to an end."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What to do, as plain values: it can be hashed, sent to another machine, and done again."""

    suite: str
    workload: str
    techniques: Mapping[str, Mapping[str, Any]]  # the set: name -> options; the baseline is the empty set
    seed: int
    budget: str
    processes: int = 1
    price: Mapping[str, Any] | None = None  # the price list's entry, for budgets in priced units
    threads: int = 1
    jobs: int = 1
    device: str = "cpu"
    identity: Mapping[str, str] = field(default_factory=dict)  # what the result depends on, part by part
    key: str = ""

    def to_plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Trial:
        """Undo `to_plain`."""
        return cls(**plain)


def blank(trial: Trial, workload: Workload, plugins: Plugins) -> Record:
    """Return a record of a trial of which nothing is known yet but what was asked."""
    return Record(
        suite=trial.suite,
        workload=trial.workload,
        techniques={name: dict(options) for name, options in trial.techniques.items()},
        seed=trial.seed,
        budget=trial.budget,
        status="failed",
        clock=Budget.parse(trial.budget, more_units=plugins.offers["effbench_clocks"]).unit,
        metric=workload.metric,
        higher_is_better=workload.higher_is_better,
        target=workload.target,
        price=dict(trial.price) if trial.price else None,
        threads=trial.threads,
        jobs=trial.jobs,
        versions=machine.versions(),
        environment=machine.environment(trial.device),
        plugins={name: plugins.origin("effbench_techniques", name) for name in trial.techniques},
        identity=dict(trial.identity),
        started=machine.now(),
        key=trial.key,
    )


def nobody(event: Event) -> None:
    """Hear an event, and do nothing."""


def run(trial: Trial, plugins: Plugins, hear: Hear = nobody, since: float | None = None) -> Record:
    """Run a trial in this process and return its record. Nothing that a plugin raises gets out.

    hear: is told how far it is; an event's `within` says in how many seconds the next is due at the latest.
    since: the monotonic clock when the trial was asked for, so that its set-up is in the ledger.
    """
    from effbench.course import train_and_judge

    workload = plugins.workloads[trial.workload]
    record = blank(trial, workload, plugins)
    ledger = Ledger(since=since, synchronize=torch.cuda.synchronize if trial.device.startswith("cuda") else None)
    hear({"event": "setup", "within": _SETUP_PATIENCE})
    torch.set_num_threads(trial.threads)
    try:
        train_and_judge(trial, plugins, workload, record, ledger, hear)
    except BaseException as fault:  # noqa: BLE001 - a plugin may raise anything, and costs its own row only
        record.status, record.stop_reason, record.reason = what_it_means(fault)
        if record.status in {"failed", "timeout"}:
            with contextlib.suppress(OSError):  # the disk may be full
                traceback.print_exc()  # into the trial's own log: where it failed, or where it hung
    ledger.close()
    record.ledger = dict(ledger.wall)
    record.cpu_seconds = record.cpu_seconds or ledger.cpu_seconds()
    record.environment |= machine.disturbance()
    record.finished = machine.now()
    if (found := torch.get_num_threads()) != trial.threads:
        record.warnings.append(f"a technique changed the number of threads from {trial.threads} to {found}")
    return record


def what_it_means(fault: BaseException) -> tuple[str, str, str]:
    """Return (status, stop reason, reason) of a trial that a fault ended."""
    match fault:
        case Refusal():
            return "skipped", "refused", str(fault)
        case Diverged():
            return "diverged", "diverged", str(fault)
        case Stop():
            return "timeout", "deadline", "still running at its deadline"
        case KeyboardInterrupt():
            return "interrupted", "interrupted", "Ctrl-C"
        case EffbenchError():
            return "failed", "failed", str(fault)
    return "failed", "failed", _brief(words_of(fault))


def _brief(words: str) -> str:
    """Return the first line and the last, each cut short; the log has them all."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    lines = [line if len(line) <= _WIDEST else f"{line[:_WIDEST]} ..." for line in (lines[0], lines[-1])[: len(lines)]]
    return lines[0] if len(lines) == 1 else f"{lines[0]} ... {lines[-1]}"
