"""Run a suite: prices first, then its trials; every one ends as a record, whatever happens."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from effbench import lock, planning, prices
from effbench.composing import cells_of
from effbench.errors import EffbenchError
from effbench.execution import Executor, Hear, Job, Outcome
from effbench.execution.local import Local
from effbench.interrupts import held_back
from effbench.observers import Observers, Warn, to_standard_error
from effbench.outcomes import log_file, record_of, without_training
from effbench.planning import Cell, Planned, Settings
from effbench.pricing import Trouble
from effbench.records import Record
from effbench.suite import Suite
from effbench.trial import Trial

if TYPE_CHECKING:
    from effbench.plugins import Plugins
    from effbench.store import Store

#: (all records so far, a cell) -> why the trials of the cell that are left need not run, or "".
Enough = Callable[[Sequence[Record], Cell], str]

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
    troubles: dict[str, Trouble] = field(default_factory=dict)  # price key -> why there is no price
    is_stopping: bool = False  # whether somebody pressed Ctrl-C
    began: float = field(default_factory=time.monotonic)

    @property
    def exit_code(self) -> int:
        """0 where all is fine, 1 where a trial failed or its record could not be written."""
        return int(self.unwritten > 0 or any(record.status not in _FINE for record in self.records))

    @property
    def has_failed(self) -> bool:
        """Whether a trial of this run went wrong."""
        return any(record.status not in _FINE for record in self.records[self.kept :])

    @property
    def until(self) -> float | None:
        """When the suite's total is spent, on the monotonic clock; None where it has none."""
        total = self.suite.total_seconds
        return None if total is None else self.began + total

    @property
    def is_over(self) -> bool:
        """Whether nothing more should be started."""
        return self.is_stopping or (self.until is not None and time.monotonic() > self.until)

    def execute(self, jobs: Iterable[Job], hear: Hear) -> Iterator[tuple[Job, Outcome]]:
        """Yield every job with its outcome, as they end.

        Raises:
            KeyboardInterrupt: Ctrl-C, after what ran has ended and was yielded.
        """
        with held_back() as asked:

            def stop() -> bool:
                if asked() and not self.is_stopping:
                    self.is_stopping = True
                    self.observers.warn("stopping: what runs is ended and recorded first")
                return self.is_stopping

            yield from self.executor.run(jobs, hear, stop)


def run_suite(
    suite: Suite,
    plugins: Plugins,
    store: Store,
    settings: Settings,
    *,
    executor: Executor | None = None,
    fail_fast: bool = False,
    fresh: bool = False,
    enough: Enough | None = None,
    warn: Warn = to_standard_error,
) -> Run:
    """Run what a suite still lacks, and return the run with its records.

    enough: says why the trials of a cell that are left need not run; "" where they do.
    executor: where trials run, and stays open; default: this machine.
    fail_fast: start nothing after the first failure.
    fresh: run again what is finished.
    warn: shows a person what should be seen at once.

    Raises:
        EffbenchError: results cannot be written, or data is missing; nothing was trained.
        KeyboardInterrupt: Ctrl-C; what ran is recorded as interrupted.
    """
    store.check_writable()
    held = lock.hold(store.path, warn)
    place = executor or executor_for(suite, settings)
    run = Run(suite, plugins, store, settings, place, Observers(plugins.manager, warn))
    try:
        done = {} if fresh else store.latest()
        planning.use_copies(settings, plugins)
        cells = cells_of(suite, plugins, settings, run.execute)
        store.merge_json("claims", _said(suite, plugins))
        store.write_json("suite", _as_run(suite, cells, plugins))
        known = prices.measure(run, cells)
        todo = _take_over(run, planning.plan(suite, cells, known, done, plugins, settings))
        run.observers.tell("effbench_suite_started", suite=suite.name, trials=[trial for trial, _ in todo])
        try:
            _run_trials(run, todo, fail_fast, enough)
        finally:
            run.observers.tell("effbench_suite_finished", suite=suite.name, records=run.records)
    finally:
        if executor is None:
            place.close()
        held.close()
    return run


def calibrate(
    suite: Suite,
    plugins: Plugins,
    store: Store,
    settings: Settings,
    *,
    fresh: bool = False,
    warn: Warn = to_standard_error,
) -> tuple[list[tuple[Cell, Mapping[str, Any]]], list[tuple[Cell, Trouble]]]:
    """Measure the prices that a results folder lacks; return (cells with their prices, cells with their troubles).

    fresh: measure again what is known.

    Raises:
        EffbenchError: results cannot be written, or data is missing.
        KeyboardInterrupt: Ctrl-C.
    """
    store.check_writable()
    held = lock.hold(store.path, warn)
    executor = executor_for(suite, settings)
    run = Run(suite, plugins, store, settings, executor, Observers(plugins.manager, warn))
    try:
        planning.use_copies(settings, plugins)
        cells = [cell for cell in cells_of(suite, plugins, settings, run.execute) if planning.is_priced(cell)]
        key_of = {id(cell): prices.price_key(cell, plugins, settings) for cell in cells}
        if fresh:
            old = store.read_json("prices") or {}
            store.write_json("prices", {key: entry for key, entry in old.items() if key not in key_of.values()})
        known = prices.measure(run, cells)
    finally:
        executor.close()
        held.close()
    priced = [(cell, known[key_of[id(cell)]]) for cell in cells if key_of[id(cell)] in known]
    return priced, [(cell, run.troubles[key_of[id(cell)]]) for cell in cells if key_of[id(cell)] in run.troubles]


def executor_for(suite: Suite, settings: Settings) -> Local:
    """Return this machine, ready to be told to run a suite's trials."""
    return Local(settings.jobs, settings.named, suite.workloads, settings.threads)


def _as_run(suite: Suite, cells: Sequence[Cell], plugins: Plugins) -> dict[str, Any]:
    """Return the suite with what each planned record will say, so that tables can count those that a crash took."""
    places = {}
    for cell in cells:
        workload = plugins.workloads[cell.workload]
        places[cell.workload, str(cell.budget)] = {
            "workload": cell.workload,
            "budget": str(cell.budget),
            "clock": cell.budget.unit,
            "metric": workload.metric,
            "higher_is_better": workload.higher_is_better,
            "target": workload.target,
        }
    return {**dataclasses.asdict(suite), "path": Path(suite.path).name, "planned": [*places.values()]}


def _said(suite: Suite, plugins: Plugins) -> dict[str, dict[str, str]]:
    """Return what is published of the suite's techniques, so that tables can tell it where no plugin is installed."""
    names = dict.fromkeys(name for workload in suite.workloads for each in suite.sets_of(workload) for name in each)
    chosen = [plugins.techniques[name] for name in names]
    return {each.name: {"paper": each.paper, "claim": each.claim, "leaf": each.leaf} for each in chosen}


def _take_over(run: Run, planned: Sequence[Planned]) -> list[tuple[Trial, Cell]]:
    """Take over what an earlier run has finished; return what is to run, in order."""
    todo = []
    for one in planned:
        trial = one.trial or planning.trial_of(run.suite, one.cell, one.seed, None, run.plugins, run.settings)
        run.trials[trial.key] = trial
        if one.kept is not None:
            run.records.append(one.kept)
        else:
            todo.append((trial, one.cell))
    run.kept = len(run.records)
    return todo


def _run_trials(run: Run, todo: Sequence[tuple[Trial, Cell]], fail_fast: bool, enough: Enough | None) -> None:
    def hear(job: Job, event: dict[str, Any]) -> None:
        trial = run.trials[job.payload["trial"]["key"]]
        if event["event"] == "setup":
            run.observers.tell("effbench_trial_started", trial=trial)
        elif event["event"] == "progress":
            run.observers.tell("effbench_progress", trial=trial, progress=event["progress"], step=event["step"])

    try:
        for job, outcome in run.execute(_jobs(run, todo, fail_fast, enough), hear):
            trial = run.trials[job.payload["trial"]["key"]]
            record = record_of(trial, outcome, run.plugins)
            _note_log(run, record, Path(job.log))
            keep(run, trial, record)
    except KeyboardInterrupt:  # so that tables know which seeds were planned
        recorded, why = {record.key for record in run.records}, "the run was interrupted before its turn"
        with held_back():  # a second Ctrl-C
            for trial in (trial for trial, _ in todo if trial.key not in recorded):
                keep(run, trial, without_training(trial, run.plugins, "not_started", "interrupted", why))
        raise


def _jobs(run: Run, todo: Sequence[tuple[Trial, Cell]], fail_fast: bool, enough: Enough | None) -> Iterator[Job]:
    """Yield each trial's job when its turn comes; what is refused, or comes too late, is recorded at once."""
    for trial, cell in todo:
        if cell.composed.refusal:
            keep(run, trial, without_training(trial, run.plugins, "skipped", "refused", cell.composed.refusal))
        elif fail_fast and run.has_failed:
            return
        elif enough is not None and (why := enough(run.records, cell)):
            keep(run, trial, without_training(trial, run.plugins, "not_started", "decided", why))
        elif why := _too_late(run, cell):
            keep(run, trial, without_training(trial, run.plugins, "not_started", "total", why))
        elif trouble := cell.composed.trouble or run.troubles.get(prices.price_key(cell, run.plugins, run.settings)):
            _keep_failed(run, trial, trouble)
        else:
            log = log_file(trial, run.store.logs)
            log.unlink(missing_ok=True)
            yield Job("trial", {"trial": trial.to_plain()}, cell.composed.processes, str(log), run.until)


def _too_late(run: Run, cell: Cell) -> str:
    """Say why a trial cannot end within the suite's total, or "" where it can."""
    if run.until is None:
        return ""
    left = run.until - time.monotonic()
    step_seconds = run.plugins.workloads[cell.workload].step_seconds
    guess = planning.seconds_of(cell, None, step_seconds, run.records[run.kept :]) or 0.0
    if guess <= left:
        return ""
    return f"of the total of {run.suite.total}, {max(0.0, left):.0f} s are left, and a trial takes about {guess:.0f} s"


def _keep_failed(run: Run, trial: Trial, trouble: Trouble) -> None:
    """Record a trial whose set could not be composed or priced; the traceback goes into the trial's own log."""
    record = without_training(trial, run.plugins, trouble.status, trouble.stop_reason, trouble.reason)
    if trouble.status != "skipped":
        log = log_file(trial, run.store.logs)
        with contextlib.suppress(OSError):
            log.write_text(trouble.story, encoding="utf-8", errors="backslashreplace")
        _note_log(run, record, log)
    keep(run, trial, record)


def _note_log(run: Run, record: Record, log: Path) -> None:
    """Say in the record where the trial's log is; delete it where nothing stands in it."""
    if log.is_file() and log.stat().st_size:
        record.log = str(log.relative_to(run.store.path))
    else:
        log.unlink(missing_ok=True)


def keep(run: Run, trial: Trial, record: Record) -> None:
    """Write a record; where the disk will not take it, show it, so that nothing is lost."""
    run.records.append(record)
    try:
        run.store.append(record)
    except EffbenchError as fault:
        run.unwritten += 1
        run.observers.warn(f"{fault}; the record was: {record.to_json()}")
    run.observers.tell("effbench_trial_finished", trial=trial, record=record)
