"""A live screen: how far each workload is, what runs, and the results so far. It leaves nothing behind but failures."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from effbench.hookspecs import hookimpl
from effbench.records import Record, canonical, label
from effbench.report.eta import Pace, duration, stopwatch

if TYPE_CHECKING:
    from effbench.trial import Trial

_STYLES = {"skipped": "dim", "not_started": "dim", "interrupted": "dim", "diverged": "yellow"}
_QUIET = {"ok", "skipped", "not_started", "interrupted"}  # no failures, so no line of their own
_WIDEST = 100  # columns; longer lines are hard to follow
_CELL = 14  # columns of a result at the least
_COUNTED = 60  # columns of a console that has room for numbers of steps
_GAP = (0, 2, 0, 0)


def outcome(record: Record) -> str:
    """Say in a few words what became of a trial."""
    if record.status == "ok":
        value = record.metrics.get("test", {}).get(record.metric)
        shown = f"{record.metric} {value:.4g} " if value is not None else ""
        return f"{shown}in {duration(record.wall_seconds)}, {record.steps} steps"
    first = record.reason.partition("\n")[0]
    return f"{record.status}: {first}" if first else record.status


class Screen:
    """Bars and a running table on a terminal.

    console: where it is drawn.
    jobs: trials side by side.
    """

    def __init__(self, console: Console, jobs: int) -> None:
        self._console, self._jobs = console, jobs
        self._suite, self._began = "", time.monotonic()
        self._prices: dict[str, float] = {}  # workload -> share of its prices that is measured
        self._pace = Pace((), jobs)
        self._lock = threading.Lock()  # it is drawn by a thread of its own
        self._live = Live(self, console=console, refresh_per_second=5, transient=True)

    def close(self) -> None:
        """Give the terminal back, whatever happened."""
        self._live.stop()

    @hookimpl
    def effbench_calibration_started(self, suite: str) -> None:
        """Begin to draw."""
        self._suite = suite
        self._live.start()

    @hookimpl
    def effbench_calibration_progress(self, workload: str, progress: float) -> None:
        """Move the bar of a workload's prices."""
        with self._lock:
            self._prices[workload] = progress

    @hookimpl
    def effbench_suite_started(self, suite: str, trials: Sequence[Trial]) -> None:
        """Begin to draw, if that was not done."""
        with self._lock:
            self._suite, self._pace = suite, Pace(trials, self._jobs)
        self._live.start()

    @hookimpl
    def effbench_trial_started(self, trial: Trial) -> None:
        """Put a trial among the running ones."""
        with self._lock:
            self._pace.start(trial)

    @hookimpl
    def effbench_progress(self, trial: Trial, progress: float, step: int) -> None:
        """Note how far a trial is."""
        with self._lock:
            self._pace.move(trial, progress, step)

    @hookimpl
    def effbench_trial_finished(self, trial: Trial, record: Record) -> None:
        """Put a result into the running table; a failure is told at once, for good."""
        with self._lock:
            self._pace.finish(trial, record)
        if record.status not in _QUIET:
            what = f"{record.workload}  {record.label}  seed {record.seed}: {outcome(record)}"
            self._console.print(Text(what, _STYLES.get(record.status, "red")), soft_wrap=True)
            if record.log:
                self._console.print(Text(f"    see {record.log}", "dim"), soft_wrap=True)

    @hookimpl
    def effbench_suite_finished(self) -> None:
        """Leave the screen to the table of results."""
        self._live.stop()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Draw all of it."""
        width = min(options.max_width, _WIDEST)
        elapsed = stopwatch(time.monotonic() - self._began)
        with self._lock:
            if self._pace.trials:
                yield Group(*_suite_parts(self._suite, self._pace, elapsed, width, console.height))
            else:
                doing = Text(f"  measuring what a step costs  {elapsed}", "dim")
                rows = {workload: (share, f"{share:.0%}") for workload, share in self._prices.items()}
                yield Group(Text.assemble((self._suite, "bold"), doing), _bars(rows, width))


def _suite_parts(suite: str, pace: Pace, elapsed: str, width: int, height: int) -> Iterator[RenderableType]:
    left = pace.seconds_left()
    known = f"  about {duration(left)} left" if left is not None else ""
    count = f"  {pace.finished} of {len(pace.trials)} trials  {elapsed}{known}"
    yield Text.assemble((suite, "bold"), (count, "dim"), no_wrap=True, overflow="ellipsis")
    shares = {}
    for workload in dict.fromkeys(name for name, _ in pace.planned):
        share, done, planned = pace.of(workload)
        shares[workload] = (share, f"{done}/{planned}")
    yield _bars(shares, width)
    yield ""
    yield _running(pace, width)
    yield ""
    yield _results(pace, width, max(3, height - len(shares) - pace.jobs - 7))


def _bar(share: float, width: int) -> ProgressBar:
    done = "green" if share >= 1.0 else "cyan"
    return ProgressBar(1.0, share, width=width, complete_style=done, finished_style=done, style="bright_black")


def _bars(rows: Mapping[str, tuple[float, str]], width: int) -> Table:
    """Draw a bar for each row: name -> (share, words)."""
    table = Table.grid(padding=_GAP)
    room = max(10, width - max(map(len, rows), default=0) - 16)
    for name, (share, words) in rows.items():
        table.add_row(f"  {name}", _bar(share, room), Text(words, "dim"))
    return table


def _running(pace: Pace, width: int) -> Table:
    """Draw what runs: as many rows as there are jobs, and as wide as any trial needs, so that nothing jumps."""
    named = max(len(label(trial.techniques)) + len(f"  seed {trial.seed}") for trial in pace.trials)
    first = max(len(trial.workload) for trial in pace.trials) + 2
    counted = width >= _COUNTED
    table = Table.grid(padding=_GAP)
    table.add_column(width=first, no_wrap=True, style="dim")
    room = width - first - (32 if counted else 18)
    table.add_column(width=max(12, min(named, room)), no_wrap=True, overflow="ellipsis", style="dim")
    table.add_column()
    table.add_column(justify="right", no_wrap=True, style="dim")
    running = list(pace.running.values())[: pace.jobs]
    for one in running:
        name = Text(f"{label(one.trial.techniques)}  seed {one.trial.seed}")
        steps = f"{one.step} steps" if counted else ""
        table.add_row(Text(f"  {one.trial.workload}"), name, _bar(one.progress, 12), steps)
    for _ in range(pace.jobs - len(running)):
        table.add_row("", "", "", "")
    return table


def _results(pace: Pace, width: int, room: int) -> Table:
    """Draw the results so far: a row a set, a column a workload, all from the beginning, so that nothing jumps."""
    sets = {canonical(trial.techniques): label(trial.techniques) for trial in pace.trials}
    named = max(12, min(max(map(len, sets.values())), width // 2))
    workloads = list(dict.fromkeys(name for name, _ in pace.planned))
    metrics = {record.workload: record.metric for records in pace.done.values() for record in records}
    columns = max(1, (width - named - 4) // (max(_CELL, *map(len, workloads)) + 2))
    table = Table.grid(padding=_GAP)
    table.add_column(no_wrap=True, overflow="ellipsis", width=named + 2)
    for _ in workloads[:columns]:
        table.add_column(no_wrap=True, min_width=_CELL)
    table.add_row("", *(Text(name, "bold") for name in workloads[:columns]))
    table.add_row("", *(Text(metrics.get(name, ""), "dim") for name in workloads[:columns]))
    for chosen in sorted(sets, key=lambda key: (key != canonical({}), sets[key]))[:room]:
        cells = [_cell(pace.done.get((name, chosen), ())) for name in workloads[:columns]]
        table.add_row(Text(f"  {sets[chosen]}"), *cells)
    if len(sets) > room:
        table.add_row(Text(f"  and {len(sets) - room} more", "dim"))
    return table


def _cell(records: Sequence[Record]) -> Text:
    """Write the mean of a set on a workload so far, and how many trials it is from; or else what went wrong."""
    if not records:
        return Text("\N{MIDDLE DOT}", "dim")
    good = [record.metrics["test"][record.metric] for record in records if record.status == "ok"]
    bad = [record.status for record in records if record.status != "ok"]
    text = Text()
    if good:
        text.append(f"{fmean(good):#.4g}").append(f" n={len(good)}", "dim")
    if bad:
        count = f"{len(bad)} " if len(bad) > 1 or good else ""
        text.append(f"{' ' * bool(good)}{count}{bad[-1]}", _STYLES.get(bad[-1], "red"))
    return text
