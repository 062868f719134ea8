"""effbench explain: why two sets of results differ."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator, Sequence

from effbench.analysis.explain import Explanation, LineRatio, Parting, explain
from effbench.commands.layout import columns
from effbench.records import plain
from effbench.report.console import Screen, emit
from effbench.report.numbers import NOTHING, ends, significant
from effbench.store import read_records

_MOST = 12  # partings that are listed one by one


def run(arguments: argparse.Namespace) -> int:
    """Show what tells the two apart."""
    found = explain(read_records(arguments.first), read_records(arguments.second))
    if arguments.json:
        emit(json.dumps(plain(dataclasses.asdict(found)), allow_nan=False, ensure_ascii=False, indent=2))
    else:
        emit("\n".join(lines(found, Screen.of())))
    return 0


def lines(found: Explanation, screen: Screen) -> Iterator[str]:
    """Yield the explanation: what differs first, what follows from it after."""
    apart = len(found.partings)
    yield screen.paint(
        f"{found.common} trials in common: {found.equal} with equal results, {apart} with others", "bold"
    )
    for where, only in (("first", found.only_first), ("second", found.only_second)):
        if only:
            yield from ["", f"Only in the {where}", *(f"  {screen.show(name)}" for name in only)]
    if found.changes:
        yield from ["", "What differs"]
        changes = [(each.what, each.first, each.second) for each in found.changes]
        yield from columns(changes, screen, title=("", "first", "second"), indent=2)
    elif found.common:
        yield from ["", "Versions, code, machine, threads and prices are the same."]
    if found.lines:
        yield from ["", "Seconds of a step, second over first"]
        title = ("workload", "line", "ratio", "95 % interval", "first", "second")
        yield from columns([_line(each) for each in found.lines], screen, title=title, indent=2)
    yield from _partings(found.partings, screen)


def _line(each: LineRatio) -> tuple[str, ...]:
    ratio = NOTHING if each.ratio.mean is None else significant(each.ratio.mean)
    seconds = [f"{1e3 * value:.3g} ms" for value in (each.first_seconds, each.second_seconds)]
    return (each.workload, each.line.replace("_", " "), ratio, ends(each.ratio.low, each.ratio.high), *seconds)


def _partings(partings: Sequence[Parting], screen: Screen) -> Iterator[str]:
    if not partings:
        return
    yield from ["", "Where runs of one seed part"]
    rows = [
        (each.workload, each.label, each.budget, str(each.seed), _where(each), _finals(each))
        for each in partings[:_MOST]
    ]
    title = ("workload", "techniques", "budget", "seed", "at step", "at the end")
    yield from columns(rows, screen, title=title, indent=2)
    if len(partings) > _MOST:
        yield f"  and {len(partings) - _MOST} more; --json lists them all"


def _where(each: Parting) -> str:
    if each.step is None:
        return f"after {each.since:g}" if each.since else "no step in common"
    return f"{each.since:g} to {each.step:g}" if each.since else f"up to {each.step:g}"


def _finals(each: Parting) -> str:
    shown = [NOTHING if value is None else significant(value, 4) for value in (each.first_final, each.second_final)]
    return " / ".join(shown)
