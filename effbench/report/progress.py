"""Show how a suite goes: a live screen on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from rich.console import Console

from effbench.hookspecs import hookimpl
from effbench.records import Record
from effbench.report.console import emit, visible
from effbench.report.eta import Pace, duration
from effbench.report.screen import Screen, outcome

if TYPE_CHECKING:
    from effbench.trial import Trial

__all__ = ["Lines", "Screen", "duration", "observer"]


class Lines:
    """One plain line for everything that happens: for logs, pipes and dumb terminals."""

    def __init__(self, stream: TextIO, jobs: int) -> None:
        self._stream, self._jobs = stream, jobs
        self._pace = Pace((), jobs)
        self._since = time.monotonic()

    def close(self) -> None:
        """Have nothing to give back."""

    def _say(self, text: str) -> None:
        emit(visible(text), self._stream)
        self._stream.flush()

    @hookimpl
    def effbench_calibration_started(self, suite: str, groups: int) -> None:
        """Say that prices are measured."""
        plural = "" if groups == 1 else "s"
        self._say(f"{suite}: measuring what a step costs, {groups} group{plural} of techniques")

    @hookimpl
    def effbench_calibration_finished(self) -> None:
        """Say that prices are known."""
        self._say(f"prices are measured after {duration(time.monotonic() - self._since)}")

    @hookimpl
    def effbench_suite_started(self, suite: str, trials: Sequence[Trial]) -> None:
        """Say how much is to do."""
        self._pace = Pace(trials, self._jobs)
        self._say(f"{suite}: {len(trials)} trials to run")

    @hookimpl
    def effbench_trial_started(self, trial: Trial) -> None:
        """Take the time."""
        self._pace.start(trial)

    @hookimpl
    def effbench_progress(self, trial: Trial, progress: float, step: int) -> None:
        """Note how far a trial is."""
        self._pace.move(trial, progress, step)

    @hookimpl
    def effbench_trial_finished(self, trial: Trial, record: Record) -> None:
        """Say what became of a trial."""
        self._pace.finish(trial, record)
        left = self._pace.seconds_left()
        eta = f", {duration(left)} left" if left else ""
        where = f" (see {record.log})" if record.log and record.status != "ok" else ""
        what = f"{record.workload}  {record.label}  seed {record.seed}: {outcome(record)}{where}"
        self._say(f"[{self._pace.finished}/{len(self._pace.trials)}] {what}{eta}")


def observer(jobs: int, stream: TextIO | None = None) -> Lines | Screen:
    """Return what shows progress on `stream` (default: standard error): a screen on a terminal, else lines.

    It must be closed at the end, whatever happened.
    """
    stream = stream or sys.stderr
    console = Console(file=stream)
    can_draw = console.is_terminal and not console.is_dumb_terminal and console.encoding.startswith("utf")
    return Screen(console, jobs) if can_draw else Lines(stream, jobs)
