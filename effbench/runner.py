"""Run a suite: prices first, then its trials; every one ends as a record, whatever happens."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from effbench import machine, planning, prices
from effbench.errors import EffbenchError
from effbench.execution import Executor, Job, Outcome
from effbench.execution.local import Local
from effbench.observers import Observers, Warn, to_standard_error
from effbench.outcomes import log_file, record_of, without_training
from effbench.planning import Cell, Settings
from effbench.records import Record
from effbench.store import FINAL
from effbench.suite import Suite
from effbench.trial import Trial

if TYPE_CHECKING:
    from effbench.plugins import Plugins
    from effbench.store import Store

_FINE = {"ok", "skipped", "not_started"}


@dataclass(slots=True)
class Run:
    """A suite being run: what it needs, and what has come of it so far."""

    suite: Suite
    plugins: Plugins
    store: Store
    settings: Settings
    executor: Executor
    observers: Observers
    records: list[Record] = field(default_factory=list)  # of this suite, those of earlier runs included
    kept: int = 0  # how many an earlier run had finished
    unwritten: int = 0  # how many the disk would not take
    trials: dict[str, Trial] = field(default_factory=dict)  # by key
    began: float = field(default_factory=time.monotonic)

    @property
    def exit_code(self) -> int:
        """0 where all is fine, 1 where a trial failed or its record could not be written."""
        return int(self.unwritten > 0 or any(record.status not in _FINE for record in self.records))

    @property
    def failed(self) -> bool:
        """Whether a trial of this run went wrong."""
        return any(record.status not in _FINE for record in self.records[self.kept :])

    def seconds_left(self) -> float | None:
        """Return what is left of the suite's total, None where it has none."""
        total = self.suite.total_seconds
        return None if total is None else total - (time.monotonic() - self.began)


def run_suite(
    suite: Suite,
    plugins: Plugins,
    store: Store,
    settings: Settings,
    *,
    executor: Executor | None = None,
    fail_fast: bool = False,
    fresh: bool = False,
    warn: Warn = to_standard_error,
) -> Run:
    """Run what a suite still lacks, and return the run with its records.

    executor: where trials run; default: this machine.
    fail_fast: start nothing after the first failure.
    fresh: run again what is finished.
    warn: shows a person what should be seen at once.

    Raises:
        EffbenchError: results cannot be written, or data is missing; nothing was trained.
        KeyboardInterrupt: Ctrl-C; what ran is recorded as interrupted.
    """
    store.check_writable()
    executor = executor or Local(settings.jobs, settings.named)
    run = Run(suite, plugins, store, settings, executor, Observers(plugins.manager, warn))
    try:
        if fresh or not store.latest():
            executor.start()  # it gets ready while this process reads data; else there may be nothing left to do
        cells = planning.cells_of(suite, plugins, settings)
        store.write_json("suite", dataclasses.asdict(suite))
        known = measure_prices(run, cells)
        todo = _still_to_do(run, cells, known, fresh)
        run.observers.tell("effbench_suite_started", suite=suite.name, trials=[trial for _, trial in todo])
        _run_trials(run, todo, fail_fast)
    finally:
        executor.close()
    return run


def measure_prices(run: Run, cells: Sequence[Cell]) -> Mapping[str, Any]:
    """Measure the prices that the list lacks, add them to it, and return the whole list.

    Raises:
        EffbenchError: a price could not be measured; names the log.
    """
    known = run.store.read_json("prices") or {}
    groups = prices.missing(cells, known, run.plugins, run.settings)
    if not groups:
        return known
    logs = [run.store.logs / f"prices-{group[0].workload}-{number}.log" for number, group in enumerate(groups)]
    group_of = dict(zip(map(str, logs), groups, strict=True))
    run.observers.tell("effbench_calibration_started", suite=run.suite.name, groups=len(groups))

    def hear(job: Job, event: dict[str, Any]) -> None:
        if event["event"] == "price":
            run.observers.tell(
                "effbench_calibration_progress", workload=job.payload["workload"], progress=event["progress"]
            )

    for job, outcome in run.executor.run([prices.job_of(g, run.settings, log) for log, g in group_of.items()], hear):
        group = group_of[job.log]
        if outcome.result is None:
            why = outcome.ended or "it failed"
            raise EffbenchError(f"the prices of {group[0].workload} could not be measured ({why}); see {job.log}")
        _remove_if_empty(Path(job.log))
        new = prices.entries(group, outcome.result, run.plugins, run.settings, machine.environment())
        known = run.store.merge_json("prices", new)
    run.observers.tell("effbench_calibration_finished", suite=run.suite.name)
    return known


def _still_to_do(run: Run, cells: Sequence[Cell], known: Mapping[str, Any], fresh: bool) -> list[tuple[Cell, Trial]]:
    """Return what is to run, in order; take over what an earlier run has finished."""
    done = {} if fresh else run.store.latest()
    todo = []
    for cell, seed in planning.in_running_order(run.suite, cells):
        price = prices.price_of(cell, known, run.plugins, run.settings)
        trial = planning.trial_of(run.suite, cell, seed, price, run.plugins, run.settings)
        run.trials[trial.key] = trial
        if trial.key in done and done[trial.key].status in FINAL:
            run.records.append(done[trial.key])
        else:
            todo.append((cell, trial))
    run.kept = len(run.records)
    return todo


def _run_trials(run: Run, todo: Sequence[tuple[Cell, Trial]], fail_fast: bool) -> None:
    def hear(job: Job, event: dict[str, Any]) -> None:
        trial = run.trials[job.payload["trial"]["key"]]
        if event["event"] == "started":
            run.observers.tell("effbench_trial_started", trial=trial)
        elif event["event"] == "progress":
            run.observers.tell("effbench_progress", trial=trial, progress=event["progress"], step=event["step"])

    try:
        for job, outcome in run.executor.run(_jobs(run, todo, fail_fast), hear):
            _finish(run, job, outcome)
    except KeyboardInterrupt:
        with _no_second_interrupt():
            for job, outcome in run.executor.interrupt():
                _finish(run, job, outcome)
            run.observers.tell("effbench_suite_finished", suite=run.suite.name, records=run.records)
        raise
    run.observers.tell("effbench_suite_finished", suite=run.suite.name, records=run.records)


def _jobs(run: Run, todo: Sequence[tuple[Cell, Trial]], fail_fast: bool) -> Iterator[Job]:
    """Yield each trial's job when its turn comes; what is refused or comes too late is recorded at once."""
    for cell, trial in todo:
        if cell.refusal:
            keep(run, trial, without_training(trial, run.plugins, "skipped", "refused", cell.refusal))
        elif fail_fast and run.failed:
            return
        elif why := _too_late(run, cell):
            keep(run, trial, without_training(trial, run.plugins, "not_started", "total", why))
        else:
            log = log_file(trial, run.store.logs)
            log.unlink(missing_ok=True)
            yield Job("trial", {"trial": trial.to_plain()}, processes=cell.processes, log=str(log))


def _too_late(run: Run, cell: Cell) -> str:
    """Say why a trial cannot end within the suite's total, or "" where it can."""
    left = run.seconds_left()
    if left is None:
        return ""
    like = [record.wall_seconds for record in run.records[run.kept :] if record.workload == cell.workload]
    like = [seconds for seconds in like if seconds]
    step_seconds = run.plugins.workloads[cell.workload].step_seconds
    guess = sum(like) / len(like) if like else planning.seconds_of(cell, None, step_seconds) or 0.0
    if guess <= left:
        return ""
    return f"of the total of {run.suite.total}, {max(0.0, left):.0f} s are left, and a trial takes about {guess:.0f} s"


def _finish(run: Run, job: Job, outcome: Outcome) -> None:
    trial = run.trials[job.payload["trial"]["key"]]
    record = record_of(trial, outcome, run.plugins)
    log = Path(job.log)
    if not _remove_if_empty(log):
        record.log = str(log.relative_to(run.store.path))
    keep(run, trial, record)


def keep(run: Run, trial: Trial, record: Record) -> None:
    """Write a record; where the disk will not take it, show it, so that nothing is lost."""
    run.records.append(record)
    try:
        run.store.append(record)
    except EffbenchError as fault:
        run.unwritten += 1
        run.observers.warn(f"{fault}; the record was: {record.to_json()}")
    run.observers.tell("effbench_trial_finished", trial=trial, record=record)


def _remove_if_empty(log: Path) -> bool:
    """Delete a log in which nothing stands; tell whether there is none any more."""
    if log.is_file() and log.stat().st_size:
        return False
    log.unlink(missing_ok=True)
    return True


@contextlib.contextmanager
def _no_second_interrupt() -> Iterator[None]:
    """Let nothing disturb the shutdown: a second Ctrl-C would lose records."""
    former = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
