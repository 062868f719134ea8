"""The hooks: what a plugin may offer, and what it may hear of. None is called inside the timed region.

A plugin is a module (or any object) with functions of these names, marked with `effbench.hookimpl`. A package makes
itself found by an entry point of the group `effbench`; a file is named with `--plugin`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from effbench.clock import Clock
    from effbench.data.source import DataSource
    from effbench.execution import Executor
    from effbench.meters import Meter
    from effbench.records import Record
    from effbench.techniques import Technique
    from effbench.trial import Trial
    from effbench.workloads.workload import Workload

hookspec = pluggy.HookspecMarker("effbench")
hookimpl = pluggy.HookimplMarker("effbench")


@hookspec
def effbench_techniques() -> Iterable[Technique]:
    """Offer techniques: functions marked with `@effbench.technique`."""


@hookspec
def effbench_workloads() -> Iterable[Workload]:
    """Offer workloads."""


@hookspec
def effbench_datasets() -> Iterable[DataSource]:
    """Offer data sets."""


@hookspec
def effbench_clocks() -> Mapping[str, Callable[[], Clock]]:
    """Offer clocks: unit of a budget ("joules") -> a function that makes a clock for one run."""


@hookspec
def effbench_meters() -> Iterable[Meter]:
    """Offer meters: what else to measure after a trial, off the clock."""


@hookspec
def effbench_executors() -> Mapping[str, Callable[[int], Executor]]:
    """Offer executors: name -> a function from the number of jobs to a place where trials run."""


@hookspec
def effbench_table_formats() -> Mapping[str, Callable[[Any], str]]:
    """Offer table formats: name -> a function from an `effbench.report.tables.Table` to text."""


@hookspec
def effbench_calibration_started(suite: str, groups: int) -> None:
    """Hear that prices are being measured first: in how many jobs."""


@hookspec
def effbench_calibration_progress(workload: str, progress: float) -> None:
    """Hear how far the measuring of a workload's prices is, in [0, 1]."""


@hookspec
def effbench_calibration_finished(suite: str) -> None:
    """Hear that all prices are known."""


@hookspec
def effbench_suite_started(suite: str, trials: Sequence[Trial]) -> None:
    """Hear that a suite starts: its name, and the trials that are to run."""


@hookspec
def effbench_trial_started(trial: Trial) -> None:
    """Hear that a trial starts."""


@hookspec
def effbench_progress(trial: Trial, progress: float, step: int) -> None:
    """Hear how far a running trial is: the share of its budget that is spent, and its steps; a few times a second."""


@hookspec
def effbench_trial_finished(trial: Trial, record: Record) -> None:
    """Hear that a trial is over, whatever became of it."""


@hookspec
def effbench_suite_finished(suite: str, records: Sequence[Record]) -> None:
    """Hear that a suite is over, with the records of this run."""
