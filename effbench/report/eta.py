"""How far a suite is, and a guess when it is done, from finished trials and from how far the running ones are."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING

from effbench.records import Record, canonical
from effbench.report.numbers import nonfinite

if TYPE_CHECKING:
    from effbench.trial import Trial

Cell = tuple[str, str]  # workload, canonical text of the set

_SURE = 0.1  # progress from which a running trial tells how long trials take


def duration(seconds: float) -> str:
    """Write seconds as a person says them: 120 ms, 8 s, 2 min 05 s, 1 h 20 min."""
    if not math.isfinite(seconds):
        return f"{nonfinite(seconds)} s"
    if 0.0005 <= seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def stopwatch(seconds: float) -> str:
    """Write seconds as a stopwatch shows them: 0:08, 2:05, 1:20:00."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


@dataclass(slots=True)
class Running:
    """A trial that runs."""

    trial: Trial
    started: float  # on the monotonic clock
    progress: float = 0.0
    step: int = 0


@dataclass(slots=True)
class Pace:
    """What is known of a suite under way.

    trials: all that are to run.
    jobs: trials side by side.
    now: monotonic clock, seconds.
    """

    trials: Sequence[Trial]
    jobs: int
    now: Callable[[], float] = time.monotonic
    planned: dict[Cell, int] = field(default_factory=lambda: defaultdict(int))
    done: dict[Cell, list[Record]] = field(default_factory=lambda: defaultdict(list))
    running: dict[str, Running] = field(default_factory=dict)  # by key
    finished: int = 0

    def __post_init__(self) -> None:
        """Count the trials of each cell."""
        for trial in self.trials:
            self.planned[_cell(trial)] += 1

    def start(self, trial: Trial) -> None:
        """Hear that a trial runs."""
        self.running[trial.key] = Running(trial, self.now())

    def move(self, trial: Trial, progress: float, step: int) -> None:
        """Hear how far a trial is."""
        if running := self.running.get(trial.key):
            running.progress, running.step = progress, step

    def finish(self, trial: Trial, record: Record) -> None:
        """Hear that a trial is over."""
        self.done[_cell(trial)].append(record)
        self.running.pop(trial.key, None)
        self.finished += 1

    def of(self, workload: str) -> tuple[float, int, int]:
        """Return (share that is done, how many trials are done, how many are planned) of a workload."""
        planned = sum(count for (name, _), count in self.planned.items() if name == workload)
        done = sum(len(records) for (name, _), records in self.done.items() if name == workload)
        part = sum(one.progress for one in self.running.values() if one.trial.workload == workload)
        return min(1.0, (done + part) / planned), done, planned

    def seconds_left(self) -> float | None:
        """Return the seconds that are left, None as long as nothing tells."""
        left = {cell: count - len(self.done.get(cell, ())) for cell, count in self.planned.items()}
        guesses = {cell: self._guess(cell) for cell, count in left.items() if count > 0}
        known = [guess for guess in guesses.values() if guess is not None]
        if not known:
            return None if guesses else 0.0
        seconds = {cell: fmean(known) if guess is None else guess for cell, guess in guesses.items()}
        total = sum(left[cell] * each for cell, each in seconds.items())
        total -= sum(one.progress * seconds.get(_cell(one.trial), 0.0) for one in self.running.values())
        return max(0.0, total) / self.jobs

    def _guess(self, cell: Cell) -> float | None:
        """Guess how long a trial takes: as others of its cell, else as others of its workload."""
        if own := self.done.get(cell):
            return fmean(record.wall_seconds for record in own)  # 0 where it is refused
        workload = [record for (name, _), records in self.done.items() if name == cell[0] for record in records]
        took = [record.wall_seconds for record in workload if record.wall_seconds]
        return fmean(took) if took else self._guess_from_running(cell[0])

    def _guess_from_running(self, workload: str) -> float | None:
        running = [one for one in self.running.values() if one.trial.workload == workload and one.progress >= _SURE]
        return fmean((self.now() - one.started) / one.progress for one in running) if running else None


def _cell(trial: Trial) -> Cell:
    return trial.workload, canonical(trial.techniques)
