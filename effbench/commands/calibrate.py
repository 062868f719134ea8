"""effbench calibrate: measure what a step of each technique costs, and keep the price list beside the results."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from effbench import planning, prices
from effbench.commands.layout import columns
from effbench.commands.plugins_of import plugins_of
from effbench.commands.run import asked_settings, asked_suite, showing_progress
from effbench.execution.local import Local
from effbench.observers import Observers
from effbench.report.console import Screen, emit
from effbench.runner import Run, measure_prices
from effbench.store import Store


def run(arguments: argparse.Namespace) -> int:
    """Measure the prices that the list lacks, and show those of the suite."""
    plugins = plugins_of(arguments)
    suite = asked_suite(arguments, plugins)
    settings = asked_settings(arguments, plugins)
    store = Store(arguments.out or Path("results") / suite.name)
    store.check_writable()
    cells = planning.cells_of(suite, plugins, settings)
    keys = [prices.price_key(cell, plugins, settings) for cell in cells if planning.is_priced(cell)]
    if arguments.fresh:
        known = store.read_json("prices") or {}
        store.write_json("prices", {key: entry for key, entry in known.items() if key not in keys})
    executor = Local(settings.jobs, settings.named)
    try:
        executor.start()
        with showing_progress(plugins, settings):
            known = measure_prices(Run(suite, plugins, store, settings, executor, Observers(plugins.manager)), cells)
    finally:
        executor.close()
    emit("\n".join(price_list([known[key] for key in keys if key in known], Screen.of())))
    emit(f"\nThe price list is {store.path / 'prices.json'}; runs into this folder use it.")
    return 0


def price_list(entries: Sequence[Mapping[str, Any]], screen: Screen) -> list[str]:
    """Return what a step of each set costs, in steps of the baseline, phase by phase."""
    rows = []
    for entry in entries:
        for number, phase in enumerate(entry["phases"]):
            first = (entry["workload"], entry["set"]) if number == 0 else ("", "")
            interval = f"{phase['low']:.2f} to {phase['high']:.2f}"
            rows.append((*first, f"{phase['start']:.0%}", f"{phase['ratio']:.2f}", interval))
    return columns(rows, screen, title=("workload", "techniques", "from", "steps of the baseline", "95 % interval"))
