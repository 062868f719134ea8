"""effbench claims: what a paper says of a technique, beside what was measured here. Never imports torch."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
from collections.abc import Iterator, Sequence

from effbench.analysis.claims import claims
from effbench.analysis.comparison import compare
from effbench.analysis.noise import read_aa
from effbench.commands.layout import columns, paragraph
from effbench.commands.table import RESULTS, newest, records_in
from effbench.records import canonical, plain
from effbench.report.claim_cards import Card, claim_cards
from effbench.report.console import Screen, emit
from effbench.report.sources import published


def run(arguments: argparse.Namespace) -> int:
    """Show a card for each set, workload and budget."""
    folders = arguments.results or [newest(RESULTS)]
    comparisons = compare(records_in(folders), arguments.metric, arguments.workload, aa=read_aa(folders))
    names = {name for each in comparisons for found in each.results for name in found.techniques}
    said = published(names, folders)
    if arguments.json:
        cards = [plain(dataclasses.asdict(card)) for card in claims(comparisons, said)]
        emit(json.dumps(cards, allow_nan=False, ensure_ascii=False, indent=2))
    else:
        shown = itertools.chain.from_iterable(claim_cards(comparisons, said))
        emit("\n".join(lines(list(shown), Screen.of())))
    return 0


def lines(found: Sequence[Card], screen: Screen) -> Iterator[str]:
    """Yield the cards, those of one set below what is published of it."""
    by_set: dict[str, list[Card]] = {}
    for card in found:
        by_set.setdefault(canonical(card.claim.techniques), []).append(card)
    for number, cards in enumerate(by_set.values()):
        first = cards[0].claim
        yield from [""] * (number > 0)
        yield screen.paint(screen.show(first.label), "bold")
        for name, said in first.said.items():
            prefix = f"{name}: " if len(first.said) > 1 else ""
            for what in (said.paper, f"claim: {said.claim}" if said.claim else ""):
                yield from (f"  {line}" for line in paragraph(prefix + what, screen) if what)
        yield from columns(list(map(_row, cards)), screen, title=_TITLE, indent=2)
        told = (card.claim for card in cards)
        reasons = dict.fromkeys(f"{one.workload}, {one.budget}: {why}" for one in told for why in one.reasons)
        yield from (f"  {screen.show(reason)}" for reason in reasons)
    if by_set:
        yield ""
        for note in _NOTES:
            yield from paragraph(note, screen)


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
_NOTES = (
    "a step: what it costs, over what the baseline's costs",
    "waived: Δ at equal steps, as if the set's own work were free; only of suites with per_step = true",
    "together: what Δ and waived tell of it, in words",
    "speed-up: to the quality that the baseline ends with; of how many seeds, where not all got there",
)


def _row(card: Card) -> tuple[str, ...]:
    one = card.claim
    head = (one.workload, one.budget, one.n, one.verdict)
    return (*head, card.difference, card.relative, card.step, card.waived, card.speed_up, card.together)
