"""What `effbench run --dry-run` shows: the trials in their order, what will be skipped and why, and the time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from effbench import planning, prices
from effbench.commands.layout import columns
from effbench.planning import Cell, Settings
from effbench.report.console import Screen
from effbench.report.progress import duration
from effbench.store import FINAL, Store

if TYPE_CHECKING:
    from effbench.plugins import Plugins
    from effbench.suite import Suite


def plan(
    suite: Suite, plugins: Plugins, store: Store, settings: Settings, *, fresh: bool, screen: Screen | None = None
) -> str:
    """Return what a run would do, as text. The data is read, for only so is it known what applies; nothing trains.

    Raises:
        DataUnavailable: a workload's data is not here.
    """
    screen = Screen.of() if screen is None else screen
    cells = planning.cells_of(suite, plugins, settings)
    known = (store.read_json("prices") or {}) if store.path.is_dir() else {}
    unpriced = prices.missing(cells, known, plugins, settings)
    waiting = {id(cell) for group in unpriced for cell in group}
    done = set() if fresh or not store.path.is_dir() else {k for k, r in store.latest().items() if r.status in FINAL}
    todo, kept = [], 0
    for cell, seed in planning.in_running_order(suite, cells):
        if cell.refusal:
            continue
        if id(cell) not in waiting:
            price = prices.price_of(cell, known, plugins, settings)
            if planning.trial_of(suite, cell, seed, price, plugins, settings).key in done:
                kept += 1
                continue
        todo.append((cell, seed))
    lines = [screen.paint(f"{suite.name}: {len(todo)} of {suite.trials} trials to run", "bold")]
    rows = [
        (str(number), str(seed), cell.workload, str(cell.budget), cell.label)
        for number, (cell, seed) in enumerate(todo, start=1)
    ]
    if rows:
        lines += ["", *columns(rows, screen, title=("", "seed", "workload", "budget", "techniques"), indent=2)]
    lines += _not_run(cells, suite, kept, store, screen)
    return "\n".join([*lines, "", *_time(suite, [cell for cell, _ in todo], unpriced, plugins, settings)])


def _not_run(cells: Sequence[Cell], suite: Suite, kept: int, store: Store, screen: Screen) -> list[str]:
    lines = []
    refused = [(cell.workload, cell.label, cell.refusal) for cell in cells if cell.refusal]
    if refused:
        title = f"skipped, {len(refused)} x {len(suite.seeds)} seeds"
        lines += ["", screen.paint(title, "bold"), *columns(refused, screen, indent=2)]
    if kept:
        lines += ["", f"{kept} are finished: their records in {store.path} are kept."]
    return lines


def _time(
    suite: Suite, todo: Sequence[Cell], unpriced: Sequence[Sequence[Cell]], plugins: Plugins, settings: Settings
) -> list[str]:
    side_by_side = f"{settings.jobs} side by side, {settings.threads} thread{'s' * (settings.threads > 1)} each"
    lines = []
    if unpriced:
        cells = [cell for group in unpriced for cell in group]
        seconds = prices.SECONDS * (len(cells) + len(unpriced)) / settings.jobs
        lines.append(
            f"First, what a step costs is measured for {len(cells)} sets: {duration(seconds)} or more, "
            "once for all runs into this folder."
        )
    guesses = [planning.seconds_of(cell, None, plugins.workloads[cell.workload].step_seconds) for cell in todo]
    if not todo:
        lines.append("Nothing is left to train.")
    elif None in guesses:
        lines.append(f"Training, {side_by_side}: the budget does not tell how long.")
    else:
        seconds = sum(guess or 0.0 for guess in guesses) / settings.jobs
        lines.append(f"Training, {side_by_side}: about {duration(seconds)}, and set-up and evaluation on top.")
    if suite.total:
        lines.append(f"What cannot end within {suite.total} will not be started.")
    return lines
