"""effbench calibrate: measure what a step of each technique costs, and keep the price list beside the results."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from effbench import messages
from effbench.commands.layout import columns
from effbench.commands.plugins_of import plugins_of
from effbench.commands.run import asked_settings, asked_suite, showing_progress
from effbench.planning import Cell
from effbench.report.console import Screen, emit
from effbench.runner import calibrate
from effbench.store import Store


def run(arguments: argparse.Namespace) -> int:
    """Measure the prices that the list lacks, and show those of the suite; 1 where one cannot be had."""
    plugins = plugins_of(arguments)
    settings = asked_settings(arguments, plugins)
    suite = asked_suite(arguments, plugins)
    store = Store(arguments.out or Path("results") / suite.name)
    with showing_progress(plugins, settings):
        priced, troubles = calibrate(suite, plugins, store, settings, fresh=arguments.fresh, warn=messages.warn)
    for cell, trouble in troubles:
        messages.warn(f"{cell.workload}, {cell.label} has no price: {trouble.reason}")
    if not priced and not troubles:
        emit(f"{suite.name} needs no prices: its budgets are not in reference-seconds or FLOP.")
        return 0
    emit("\n".join(price_list(priced, Screen.of())))
    emit(f"\nThe price list is {store.path / 'prices.json'}; runs into this folder use it.")
    return int(bool(troubles))


def price_list(priced: Iterable[tuple[Cell, Mapping[str, Any]]], screen: Screen) -> list[str]:
    """Return what a step of each set costs, in steps of the baseline, phase by phase of the budget."""
    rows = []
    for cell, price in priced:
        for number, phase in enumerate(price["phases"]):
            first = (cell.workload, cell.label) if number == 0 else ("", "")
            interval = f"{phase['low']:.2f} to {phase['high']:.2f}"
            rows.append((*first, f"{phase['start']:.0%}", f"{phase['ratio']:.2f}", interval))
    return columns(rows, screen, title=("workload", "techniques", "from", "baseline's steps", "95 % interval"))
