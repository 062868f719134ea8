"""Show how a suite goes: bars with an ETA and a running table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from effbench.hookspecs import hookimpl
from effbench.records import Record, label

if TYPE_CHECKING:
    from effbench.trial import Trial

_STYLES = {"ok": "green", "skipped": "dim", "not_started": "dim", "diverged": "yellow"}
_MOST_ROWS = 24  # of the running table


def duration(seconds: float) -> str:
    """Write seconds as a person says them: 8 s, 2 min 05 s, 1 h 20 min."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


@dataclass(slots=True)
class Eta:
    """Guess when all trials are done, from the seconds that finished ones took and from how far the running ones are."""

    trials: int
    jobs: int
    took: list[float] = field(default_factory=list)
    running: dict[str, float] = field(default_factory=dict)  # key -> progress

    @property
    def share(self) -> float:
        """Return the share of all trials that is done, running ones in part."""
        return (len(self.took) + sum(self.running.values())) / self.trials if self.trials else 1.0

    def seconds(self) -> float | None:
        """Return the seconds that are left, None before anything has finished."""
        real = [seconds for seconds in self.took if seconds]
        if not real:
            return None
        left = self.trials - len(self.took) - sum(self.running.values())
        return left * statistics.fmean(real) / self.jobs


class Lines:
    """One plain line for everything that happens: for logs, pipes and dumb terminals."""

    def __init__(self, stream: TextIO, jobs: int) -> None:
        self._stream, self._jobs = stream, jobs
        self._eta = Eta(0, jobs)
        self._since = time.monotonic()

    def close(self) -> None:
        """Have nothing to give back."""

    def _say(self, text: str) -> None:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        self._stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")
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
        self._eta = Eta(len(trials), self._jobs)
        self._say(f"{suite}: {len(trials)} trials to run")

    @hookimpl
    def effbench_trial_finished(self, record: Record) -> None:
        """Say what became of a trial."""
        self._eta.took.append(record.wall_seconds)
        done, left = len(self._eta.took), self._eta.seconds()
        eta = f", {duration(left)} left" if left and done < self._eta.trials else ""
        self._say(
            f"[{done}/{self._eta.trials}] {record.workload}  {record.label}  seed {record.seed}: {outcome(record)}{eta}"
        )


def outcome(record: Record) -> str:
    """Say in a few words what became of a trial."""
    if record.status == "ok":
        value = record.metrics.get("test", {}).get(record.metric)
        shown = f"{record.metric} {value:.4g} " if value is not None else ""
        return f"{shown}in {duration(record.wall_seconds)}, {record.steps} steps"
    where = f" (see {record.log})" if record.log else ""
    first = record.reason.splitlines()[0] if record.reason else ""
    return f"{record.status}: {first}{where}"


class Screen:
    """Bars and a running table on a terminal."""

    def __init__(self, console: Console, jobs: int) -> None:
        self._console, self._jobs = console, jobs
        self._eta = Eta(0, jobs)
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[note]}", style="dim"),
            TimeElapsedColumn(),
            console=console,
        )
        self._tasks: dict[str, TaskID] = {}
        self._total: TaskID | None = None
        self._cells: dict[tuple[str, str], list[Record]] = {}
        self._live = Live(console=console, refresh_per_second=8, transient=True, get_renderable=self._render)

    def _render(self) -> Group:
        return Group(self._table(), self._bars) if self._cells else Group(self._bars)

    @hookimpl
    def effbench_calibration_started(self, suite: str, groups: int) -> None:
        """Open a bar for the prices."""
        self._live.start()
        self._console.print(Text(f"{suite}: first, what a step costs ({groups} groups of techniques)", style="bold"))

    @hookimpl
    def effbench_calibration_progress(self, workload: str, progress: float) -> None:
        """Move the bar of a workload's prices."""
        task = self._tasks.get(f"price {workload}")
        if task is None:
            task = self._tasks[f"price {workload}"] = self._bars.add_task(f"prices of {workload}", total=1.0, note="")
        self._bars.update(task, completed=progress)

    @hookimpl
    def effbench_calibration_finished(self) -> None:
        """Take the bars of the prices away."""
        for name in [name for name in self._tasks if name.startswith("price ")]:
            self._bars.remove_task(self._tasks.pop(name))

    @hookimpl
    def effbench_suite_started(self, suite: str, trials: Sequence[Trial]) -> None:
        """Open the bar of the whole suite."""
        self._eta = Eta(len(trials), self._jobs)
        self._total = self._bars.add_task(f"[bold]{suite}", total=1.0, note=f"0/{len(trials)} trials")
        self._live.start()

    @hookimpl
    def effbench_trial_started(self, trial: Trial) -> None:
        """Open the bar of a trial."""
        name = f"  {trial.workload}  {label(trial.techniques)}  seed {trial.seed}"
        self._tasks[trial.key] = self._bars.add_task(name, total=1.0, note="")

    @hookimpl
    def effbench_progress(self, trial: Trial, progress: float, step: int) -> None:
        """Move the bar of a trial."""
        self._eta.running[trial.key] = progress
        if trial.key in self._tasks:
            self._bars.update(self._tasks[trial.key], completed=progress, note=f"{step} steps")
        self._move_total()

    @hookimpl
    def effbench_trial_finished(self, trial: Trial, record: Record) -> None:
        """Take the trial's bar away, and put its result into the running table."""
        self._eta.running.pop(trial.key, None)
        self._eta.took.append(record.wall_seconds)
        if trial.key in self._tasks:
            self._bars.remove_task(self._tasks.pop(trial.key))
        self._cells.setdefault((record.workload, record.label), []).append(record)
        if record.status not in {"ok", "skipped", "not_started"}:
            text = f"{record.workload}  {record.label}  seed {record.seed}: {outcome(record)}"
            self._console.print(Text(text, style=_STYLES.get(record.status, "red")))
        self._move_total()

    @hookimpl
    def effbench_suite_finished(self) -> None:
        """Leave the screen to the table of results."""
        self._live.stop()

    def close(self) -> None:
        """Give the terminal back, whatever happened."""
        self._live.stop()

    def _move_total(self) -> None:
        if self._total is not None:
            left = self._eta.seconds()
            eta = f", {duration(left)} left" if left is not None else ""
            note = f"{len(self._eta.took)}/{self._eta.trials} trials{eta}"
            self._bars.update(self._total, completed=self._eta.share, note=note)

    def _table(self) -> Table:
        table = Table(box=None, padding=(0, 2), header_style="bold")
        for column, justify in (
            ("workload", "left"),
            ("techniques", "left"),
            ("n", "right"),
            ("test, so far", "right"),
        ):
            table.add_column(column, justify=justify)  # type: ignore[arg-type]
        for (workload, techniques), records in sorted(self._cells.items())[:_MOST_ROWS]:
            good = [r.metrics["test"][r.metric] for r in records if r.status == "ok" and "test" in r.metrics]
            shown = f"{records[0].metric} {statistics.fmean(good):.4g}" if good else records[-1].status
            style = "" if good else _STYLES.get(records[-1].status, "red")
            table.add_row(workload, techniques, str(len(good)), Text(shown, style=style))
        return table


def observer(jobs: int, stream: TextIO | None = None) -> Lines | Screen:
    """Return what shows progress on `stream` (default: standard error): a screen on a terminal, else lines."""
    stream = stream or sys.stderr
    console = Console(file=stream)
    return Screen(console, jobs) if console.is_terminal and not console.is_dumb_terminal else Lines(stream, jobs)
