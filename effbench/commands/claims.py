"""effbench claims: what a paper says of a technique, beside what was measured here. Never imports torch."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from effbench.analysis.claims import Claim, claims
from effbench.analysis.comparison import compare
from effbench.analysis.intervals import Estimate
from effbench.analysis.noise import read_aa
from effbench.analysis.tracks import TwoTracks, tracks
from effbench.commands.layout import columns, paragraph
from effbench.commands.table import RESULTS, newest
from effbench.records import canonical, plain
from effbench.report.console import Screen, emit
from effbench.report.numbers import NOTHING, TIMES, difference, significant
from effbench.store import Store, read_records

Tracks = Mapping[tuple[str, str, str], TwoTracks]  # workload, budget, set


def run(arguments: argparse.Namespace) -> int:
    """Show a card for each set, workload and budget."""
    folders = arguments.results or [newest(RESULTS)]
    comparisons = compare(read_records(folders), arguments.metric, arguments.workload, aa=read_aa(folders))
    found = claims(comparisons, said_in(folders))
    both = {(each.workload, each.budget, canonical(each.techniques)): each for each in tracks(comparisons)}
    if arguments.json:
        cards = [plain(dataclasses.asdict(card)) for card in found]
        emit(json.dumps(cards, allow_nan=False, ensure_ascii=False, indent=2))
    else:
        emit("\n".join(lines(found, both, Screen.of())))
    return 0


def said_in(folders: Sequence[str | Path]) -> dict[str, dict[str, str]]:
    """Return what results folders say is published of their techniques."""
    found: dict[str, dict[str, str]] = {}
    for folder in folders:
        if Path(folder).is_dir():
            found |= Store(folder).read_json("claims") or {}
    return found


def lines(found: Sequence[Claim], both: Tracks, screen: Screen) -> Iterator[str]:
    """Yield the cards, those of one set below what is published of it."""
    by_set: dict[str, list[Claim]] = {}
    for card in found:
        by_set.setdefault(canonical(card.techniques), []).append(card)
    for number, cards in enumerate(by_set.values()):
        yield from [""] * (number > 0)
        yield screen.paint(screen.show(cards[0].label), "bold")
        for name, said in cards[0].said.items():
            prefix = f"{name}: " if len(cards[0].said) > 1 else ""
            for what in (said.paper, f"claim: {said.claim}" if said.claim else ""):
                yield from (f"  {line}" for line in paragraph(prefix + what, screen) if what)
        yield from columns([_row(card, both) for card in cards], screen, title=_TITLE, indent=2)
        reasons = dict.fromkeys(f"{card.workload}, {card.budget}: {why}" for card in cards for why in card.reasons)
        yield from (f"  {screen.show(reason)}" for reason in reasons)


_TITLE = (
    "workload",
    "budget",
    "n",
    "verdict",
    "Δ vs baseline",
    "relative",
    "a step",
    "waived",
    "speed-up",
    "together",
)


def _row(card: Claim, both: Tracks) -> tuple[str, ...]:
    tracked = both.get((card.workload, card.budget, canonical(card.techniques)))
    return (
        card.workload,
        card.budget,
        card.n,
        card.verdict,
        _shown(card.difference),
        NOTHING if card.relative is None else f"{'+' * (card.relative > 0)}{significant(100.0 * card.relative, 2)} %",
        _times(card.cost.step.mean, card.cost.step.low, card.cost.step.high) if card.cost else NOTHING,
        _shown(tracked.waived) if tracked else NOTHING,
        _speed_up(card),
        tracked.finding if tracked else NOTHING,
    )


def _shown(found: Estimate | None) -> str:
    return NOTHING if found is None else difference(found)


def _speed_up(card: Claim) -> str:
    """Write the speed-up to the baseline's final quality; of how many seeds, where not all got there."""
    found = card.speed_up
    if found is None:
        return NOTHING
    if found.mean.mean is not None:
        return _times(found.mean.mean, found.mean.low, found.mean.high)
    return f"{found.reached}/{found.seeds} got there"


def _times(ratio: float | None, low: float | None, high: float | None) -> str:
    if ratio is None:
        return NOTHING
    interval = "" if low is None or high is None else f" [{significant(low)}, {significant(high)}]"
    return f"{significant(ratio)}{TIMES}{interval}"
