"""effbench seeds: how many seeds it takes to see an effect, by the variance that was measured."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence

from effbench.analysis.comparison import compare
from effbench.analysis.noise import read_aa
from effbench.analysis.power import MOST_SEEDS
from effbench.analysis.seeds import SeedsNeeded, seeds_for
from effbench.analysis.sizes import Size
from effbench.commands.layout import columns, paragraph
from effbench.commands.table import RESULTS, newest, records_in
from effbench.report.console import Screen, emit
from effbench.report.numbers import NOTHING, significant


def run(arguments: argparse.Namespace) -> int:
    """Show the seeds that each workload and budget needs."""
    effect = Size.parse(arguments.effect)
    paths = arguments.results or [newest(RESULTS)]
    comparisons = compare(records_in(paths), arguments.metric, arguments.workload)
    found = seeds_for(comparisons, effect, read_aa(paths), chance=arguments.power)
    if arguments.json:
        emit(json.dumps([dataclasses.asdict(each) for each in found], ensure_ascii=False, indent=2))
    else:
        emit("\n".join(lines(found, effect, arguments.power, Screen.of())))
    return 0


def lines(found: Sequence[SeedsNeeded], effect: Size, power: float, screen: Screen) -> list[str]:
    """Return what each workload needs, in lines."""
    title = ("workload", "budget", "metric", "effect", "spread of Δ", "seeds", "in this table", "spread measured on")
    rows = [
        (
            each.workload,
            each.budget,
            each.metric,
            significant(each.effect, 2),
            NOTHING if each.spread is None else significant(each.spread, 2),
            _seeds(each.alone, each.spread),
            f"{_seeds(each.in_table, each.spread)} (of {each.comparisons})",
            each.source,
        )
        for each in found
    ]
    note = (
        f"seeds: so many, for one set by itself, see an effect of {effect} with a chance of {power:g}; in this table: "
        "for each of its sets, the intervals corrected for their number"
    )
    return [*columns(rows, screen, title=title), "", *paragraph(note, screen)]


def _seeds(seeds: int | None, spread: float | None) -> str:
    if spread is None:
        return NOTHING
    return f"> {MOST_SEEDS}" if seeds is None else str(seeds)
