"""effbench aa: run the baseline against itself, and say how small an effect this suite can see on this machine."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path

from effbench import messages
from effbench.analysis.noise import FOLDER, TWIN, Noise, noises
from effbench.commands.layout import columns, paragraph
from effbench.commands.plugins_of import plugins_of
from effbench.commands.run import asked_settings, asked_suite, showing_progress
from effbench.report.console import Screen, emit
from effbench.report.numbers import NOTHING, mean, significant
from effbench.runner import run_suite
from effbench.store import Store


def run(arguments: argparse.Namespace) -> int:
    """Run the seeds and their twins, as far as they are missing, and show the noise; 1 where a trial failed."""
    plugins = plugins_of(arguments)
    settings = asked_settings(arguments, plugins)
    asked = asked_suite(arguments, plugins)
    twins = tuple(seed + TWIN for seed in asked.seeds)
    suite = dataclasses.replace(asked, sets=(), only={}, factorial={}, seeds=(*asked.seeds, *twins))
    folder = Path(arguments.out or Path("results") / suite.name)
    store = Store(folder / FOLDER)
    with showing_progress(plugins, settings):
        done = run_suite(suite, plugins, store, settings, fresh=arguments.fresh, warn=messages.warn)
    emit("\n".join(noise_table(noises(done.records), len(asked.seeds), Screen.of())))
    emit(f"\nThe records are in {store.path}; tables of {folder} grey out what lies under the floor.")
    return done.exit_code


def noise_table(found: Sequence[Noise], seeds: int, screen: Screen) -> list[str]:
    """Return the noise of each workload and budget, in lines."""
    title = ("workload", "budget", "metric", "baseline", "spread", "floor", "detectable", "against itself")
    rows = []
    for noise in found:
        floor, least = noise.floor(seeds), noise.detectable(seeds)
        spread = noise.runs.spread
        rows.append(
            (
                noise.workload,
                noise.budget,
                noise.measure.title,
                mean(noise.runs),
                NOTHING if spread is None else significant(spread, 2),
                _with_share(floor, noise.runs.mean),
                _with_share(least, noise.runs.mean),
                "alike" if noise.is_quiet else "told apart: one in twenty is, by luck",
            )
        )
    notes = [
        f"floor: the difference of {seeds} seeds that luck alone shows in 19 of 20 cases",
        f"detectable: the smallest effect that {seeds} paired seeds see in 8 of 10 cases, pairing taking no luck away",
    ]
    table = columns(rows, screen, title=title)
    return [*table, "", *(line for note in notes for line in paragraph(note, screen))]


def _with_share(value: float | None, usual: float | None) -> str:
    if value is None:
        return NOTHING
    share = f" ({100.0 * value / abs(usual):.2g} %)" if usual else ""
    return f"{significant(value, 2)}{share}"
