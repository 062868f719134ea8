"""What `effbench run --dry-run` shows: the trials in their order, what will be skipped and why, and the time."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from effbench import planning, prices
from effbench.commands.layout import columns, paragraph
from effbench.composing import cells_of
from effbench.planning import Cell, Planned, Settings
from effbench.report.console import Screen
from effbench.report.progress import duration
from effbench.runner import executor_for
from effbench.store import Store

if TYPE_CHECKING:
    from effbench.plugins import Plugins
    from effbench.suite import Suite


def dry_run(
    suite: Suite, plugins: Plugins, store: Store, settings: Settings, *, fresh: bool, screen: Screen
) -> list[str]:
    """Return what a run would do, in lines. The data is read, for only so is it known what applies; nothing trains.

    Raises:
        DataUnavailable: a workload's data is not here.
    """
    planning.use_copies(settings, plugins)
    with contextlib.closing(executor_for(suite, settings)) as here:
        cells = cells_of(suite, plugins, settings, here.run)
    there = store.path.is_dir()
    done = store.latest() if there and not fresh else {}
    known = (store.read_json("prices") or {}) if there else {}
    planned = planning.plan(suite, cells, known, done, plugins, settings)
    todo = [one for one in planned if one.kept is None and one.cell.composed.can_run]
    kept = sum(one.kept is not None and not one.cell.composed.refusal for one in planned)
    lines = [screen.paint(f"{suite.name}: {len(todo)} of {suite.trials} trials to run", "bold")]
    lines += _trials(todo, screen)
    refused = [(cell, cell.composed.refusal) for cell in cells if cell.composed.refusal]
    broken = [(cell, cell.composed.trouble.reason) for cell in cells if cell.composed.trouble is not None]
    lines += _left_out("will be skipped", refused, len(suite.seeds), screen)
    lines += _left_out("will fail", broken, len(suite.seeds), screen)
    if kept:
        lines += ["", f"{kept} are finished: their records in {store.path} are kept."]
    if unpriced := prices.missing(cells, known, plugins, settings):
        lines += ["", *paragraph(_pricing_time(unpriced, settings), screen)]
    lines += ["", *paragraph(_time(todo, plugins, settings, store), screen)]
    if suite.total:
        lines += paragraph(f"What cannot end within {suite.total} will not be started.", screen)
    return lines


def _trials(todo: Sequence[Planned], screen: Screen) -> list[str]:
    again = any(one.why for one in todo)
    rows = []
    for number, one in enumerate(todo, start=1):
        row = (str(number), str(one.seed), one.cell.workload, str(one.cell.budget), one.cell.label)
        rows.append((*row, one.why) if again else row)
    title = ("", "seed", "workload", "budget", "techniques", *(["runs again for"] if again else []))
    return ["", *columns(rows, screen, title=title, indent=2)] if rows else []


def _left_out(what: str, cells: Sequence[tuple[Cell, str]], seeds: int, screen: Screen) -> list[str]:
    rows = [(cell.workload, cell.label, why) for cell, why in cells]
    title = screen.paint(f"{len(rows) * seeds} {what}", "bold")
    return ["", title, *columns(rows, screen, indent=2)] if rows else []


def _pricing_time(unpriced: Sequence[Sequence[Cell]], settings: Settings) -> str:
    each = [prices.SECONDS * (len(group) + 1) for group in unpriced]  # in turns with the baseline
    seconds = max(*each, sum(each) / settings.jobs)
    sets = sum(map(len, unpriced))
    pairs = f"{sets} pair{'s' * (sets > 1)} of workload and techniques"
    return f"First it is measured what a step costs, for {pairs}: {duration(seconds)} or more, once."


def _time(todo: Sequence[Planned], plugins: Plugins, settings: Settings, store: Store) -> str:
    if not todo:
        return "Nothing is left to train."
    records = list(store.latest().values()) if store.path.is_dir() else []
    guesses = []
    for one in todo:
        step_seconds = plugins.workloads[one.cell.workload].step_seconds
        guesses.append(planning.seconds_of(one.cell, None, step_seconds, records))
    jobs = f"{settings.jobs} at a time, {settings.threads} thread{'s' * (settings.threads > 1)} each"
    if None in guesses:
        return f"Training, {jobs}: nothing tells yet how long it takes."
    seconds = sum(guess or 0.0 for guess in guesses) / settings.jobs
    return f"Training, {jobs}: about {duration(seconds)}, and set-up and evaluation on top."
