"""effbench explain: why two sets of results differ."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator, Sequence

from effbench.analysis.explain import Explanation, LineRatio, Missing, Parting, explain
from effbench.commands.layout import columns, paragraph
from effbench.records import plain
from effbench.report.console import Screen, emit
from effbench.report.numbers import NOTHING, ends, significant
from effbench.report.words import counted, listed, spans
from effbench.store import read_records

_MOST = 12  # partings that are listed one by one

#: Line of the ledger -> what it is called here.
_LINES = {
    "setup": "set-up",
    "forward_backward": "forward and backward",
    "update": "update of the weights",
    "extra": "techniques' own work",
    "metering": "measuring",
    "checkpoint": "checkpoints",
    "idle": "everything else",
}


def run(arguments: argparse.Namespace) -> int:
    """Show what tells the two apart."""
    found = explain(read_records(arguments.first), read_records(arguments.second))
    if arguments.json:
        emit(json.dumps(plain(dataclasses.asdict(found)), allow_nan=False, ensure_ascii=False, indent=2))
    else:
        screen = Screen.of()
        folders = [("first", arguments.first), ("second", arguments.second)]
        emit("\n".join([*columns(folders, screen), "", *lines(found, screen)]))
    return 0


def lines(found: Explanation, screen: Screen) -> Iterator[str]:
    """Yield the explanation: what differs first, what follows from it after."""
    apart = len(found.partings)
    common = f"{counted(found.common, 'trial')} in common"
    ends = f": {found.equal} with the same results bit by bit, {apart} with others" if found.common else ""
    yield screen.paint(common + ends, "bold")
    for where, only in (("first", found.only_first), ("second", found.only_second)):
        if only:
            yield from ["", screen.paint(f"Only in the {where}", "bold")]
            yield from columns(_missing(only), screen, title=("workload", "budget", "seeds", "techniques"), indent=2)
    if found.changes:
        hashed = any(each.what.startswith(("code of", "data of")) for each in found.changes)
        title = "What differs (of code and data, fingerprints)" if hashed else "What differs"
        yield from ["", screen.paint(title, "bold")]
        changes = [(each.what, each.first, each.second) for each in found.changes]
        yield from columns(changes, screen, title=("", "first", "second"), indent=2)
    elif found.common:
        yield from ["", "Versions, code, data, machine, threads and prices are the same."]
    if found.lines:
        yield from [
            "",
            screen.paint("How long it took (geometric means), and the ratio of the second to the first", "bold"),
        ]
        heads = ("workload", "time for", "first", "second", "ratio", "95 % interval")
        yield from columns(map(_line, found.lines), screen, title=heads, indent=2)
        yield from paragraph(_what_ratios_are(found.lines), screen, indent=2)
    yield from _partings(found.partings, screen)


def _what_ratios_are(found: Sequence[LineRatio]) -> str:
    """Say what is paired, and what else the ratios hold."""
    pairs: dict[str, int] = {}
    for each in found:
        pairs[each.workload] = max(pairs.get(each.workload, 0), each.ratio.n)
    counts = ", ".join(f"{workload} {counted(number, 'pair')}" for workload, number in pairs.items())
    return (
        "Paired over runs of the same workload, techniques, budget and seed; intervals by Student's t on logarithms. "
        f"At most: {counts}. Other work on the machine is in the ratios."
    )


def _missing(only: Sequence[Missing]) -> list[tuple[str, ...]]:
    """Return a row for each workload, budget and choice of seeds."""
    sets: dict[tuple[str, str, tuple[int, ...]], list[str]] = {}
    for each in sorted(only, key=lambda one: (one.workload, one.budget, one.label != "baseline", one.label)):
        sets.setdefault((each.workload, each.budget, each.seeds), []).append(each.label)
    return [
        (workload, budget, spans(seeds), listed(labels, most=9)) for (workload, budget, seeds), labels in sets.items()
    ]


def _line(each: LineRatio) -> tuple[str, ...]:
    ratio = NOTHING if each.ratio.mean is None else significant(each.ratio.mean)
    per = "a step" if each.of_a_step else "a run"
    seconds = [f"{_amount(value)} {per}" for value in (each.first_seconds, each.second_seconds)]
    name = _LINES.get(each.line, each.line.replace("_", " "))
    return (each.workload, name, *seconds, ratio, ends(each.ratio.low, each.ratio.high))


def _amount(seconds: float) -> str:
    """Write `1.5 s`, `20.4 ms` or `3 us`."""
    scale, unit = (1.0, "s") if seconds >= 1.0 else (1e3, "ms") if seconds >= 1e-3 else (1e6, "us")
    return f"{significant(scale * seconds)} {unit}"


def _partings(partings: Sequence[Parting], screen: Screen) -> Iterator[str]:
    if not partings:
        return
    yield from ["", screen.paint("Runs of the same seed with other results, on test", "bold")]
    rows = [
        (each.workload, each.label, each.budget, str(each.seed), _where(each), *_finals(each))
        for each in partings[:_MOST]
    ]
    title = ("workload", "techniques", "budget", "seed", "they part", "first", "second")
    yield from columns(rows, screen, title=title, indent=2)
    if len(partings) > _MOST:
        yield f"  and {len(partings) - _MOST} more; --json lists them all"


def _where(each: Parting) -> str:
    if each.step is None:
        return f"after step {each.since:g}" if each.since else "no evaluation in common"
    return f"from step {each.since:g} to {each.step:g}" if each.since else f"before step {each.step:g}"


def _finals(each: Parting) -> tuple[str, str]:
    """Return what both reached on test, or else what became of them."""
    first, second = (
        status.replace("_", " ") if value is None else significant(value, 4)
        for value, status in ((each.first_final, each.first_status), (each.second_final, each.second_status))
    )
    return first, second
