"""One section a technique: its card, what its paper claims, what was measured, its curves and its records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from effbench.analysis.comparison import Comparison, SetResult
from effbench.analysis.verdicts import Verdict
from effbench.records import Record
from effbench.report import numbers
from effbench.report.claim_cards import Card, claim_cards
from effbench.report.console import visible
from effbench.report.eta import duration
from effbench.report.figures.curves import curves
from effbench.report.figures.figure import Line
from effbench.report.html.panel import Panel, panel
from effbench.report.sources import Source

BASELINE = "baseline"
MOST_RECORDS = 20_000  # of a page; more would take a browser seconds to open
_MOST_CURVES = 12  # of one section
_MOST_LINES = 3  # of one drawing, the baseline's besides

Found = Sequence[tuple[Comparison, SetResult]]  # where a technique stands


@dataclass(frozen=True, slots=True)
class Section:
    """All of a technique, or of the baseline, which has no claims."""

    name: str
    anchor: str
    source: Source | None
    cards: tuple[Card, ...]
    means: tuple[tuple[str, str, str], ...]  # of the baseline: workload, budget, what it reached
    pictures: tuple[Panel, ...]  # curves
    trials: int  # how many are listed
    records: Markup  # lines of words between tabs, the first the heads: the page makes a table of them when asked
    counts: tuple[tuple[str, int], ...]  # verdict -> how often it was given

    @property
    def two_tracks(self) -> bool:
        """Whether a card says what the technique would be worth if its own work were free."""
        return any(card.together != numbers.NOTHING for card in self.cards)

    @property
    def several(self) -> bool:
        """Whether the cards are of several sets, so that each has to say of which."""
        return len({card.claim.label for card in self.cards}) > 1 or any(
            card.claim.label != self.name for card in self.cards
        )


def anchor(name: str, known: Sequence[str]) -> str:
    """Return the id of a technique's section: its name where that can be one, else a number."""
    return f"t-{name}" if name.isidentifier() else f"t-{known.index(name)}"


def sections(
    comparisons: Sequence[Comparison], main: Sequence[Comparison], sources: Mapping[str, Source], *, records: bool
) -> list[Section]:
    """Return the baseline's section, then one for each technique that was tried, by name.

    main: of which curves are drawn.
    records: whether to list the trials.
    """
    names = sorted({name for found in comparisons for each in found.results for name in each.techniques})
    said = {each.name: {"paper": each.paper, "claim": each.claim, "leaf": each.leaf} for each in sources.values()}
    found: dict[str, list[tuple[Comparison, SetResult]]] = {name: [] for name in [BASELINE, *names]}
    cards: dict[str, list[Card]] = {name: [] for name in found}
    for comparison, told in zip(comparisons, claim_cards(comparisons, said), strict=True):
        for each in sorted(comparison.results, key=lambda result: len(result.techniques)):
            for name in each.techniques or [BASELINE]:
                found[name].append((comparison, each))
        for card in sorted(told, key=lambda card: len(card.claim.techniques)):
            for name in card.claim.techniques:
                cards[name].append(card)
    lines: list[dict[str, Line | None]] = [{} for _ in main]
    return [
        Section(
            name,
            anchor(name, names),
            sources.get(name),
            cards=tuple(cards[name]),
            means=tuple(_mean(*pair) for pair in pairs) if name == BASELINE else (),
            pictures=() if name == BASELINE else tuple(_pictures(pairs, main, lines)),
            trials=sum(len(each.records) for _, each in pairs) if records else 0,
            records=listing(record for _, each in pairs for record in each.records) if records else Markup(),
            counts=_counts(cards[name]),
        )
        for name, pairs in found.items()
        if pairs
    ]


def _counts(cards: Sequence[Card]) -> tuple[tuple[str, int], ...]:
    counts = Counter(card.claim.verdict for card in cards)
    return tuple((verdict.value, counts[verdict]) for verdict in Verdict if counts[verdict])


def _mean(comparison: Comparison, each: SetResult) -> tuple[str, str, str]:
    reached = f"{numbers.mean(each.mean)} {comparison.measure.title}" if each.values else numbers.NOTHING
    return comparison.group.workload, comparison.group.budget, reached


def _pictures(found: Found, main: Sequence[Comparison], lines: Sequence[dict[str, Line | None]]) -> Iterator[Panel]:
    """Yield the curves of a technique's sets against the baseline, on one workload after the other."""
    for comparison, known in zip(main[:_MOST_CURVES], lines, strict=False):
        labels = [each.label for where, each in found if where is comparison and each.values][:_MOST_LINES]
        figure = curves(comparison, labels=labels, known=known)
        if labels and figure.lines:
            yield panel(figure)


def listing(records: Iterable[Record]) -> Markup:
    """Return records as lines of words between tabs, numbers in full precision.

    A table would make ten elements of each record, and a page of thousands slow to open.
    """
    lines = ["\t".join(_HEADS), *("\t".join(map(visible, _row(record))) for record in records)]
    return Markup.escape("\n".join(lines))


_HEADS = (
    *("set", "workload", "budget", "seed", "status", "metric", "on test", "steps", "wall", "peak MiB", "key"),
    "remark",
)


def _row(record: Record) -> tuple[str, ...]:
    value = record.metrics.get("test", {}).get(record.metric)
    remark = " ".join((record.reason or "; ".join(record.warnings)).split())[:200]
    return (
        record.label,
        record.workload,
        record.budget,
        str(record.seed),
        record.status.replace("_", " "),
        record.metric,
        numbers.NOTHING if value is None else repr(value),
        str(record.steps),
        duration(record.wall_seconds) if record.wall_seconds else "",
        numbers.significant(record.peak_memory_mib) if record.peak_memory_mib is not None else "",
        record.key,
        remark + (f" ({record.log})" if record.log and record.status != "ok" else ""),
    )
