"""What stands below tables: what is particular to one below it, and what is to be said of all once, below the last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from effbench.report.table import Kind, Remark, Table

_ALONE: dict[Kind, str] = {"problem": "not scored", "caveat": "caveats", "note": "how to read it"}
_ONE_OF_SEVERAL: dict[Kind, str] = {"problem": "not scored", "caveat": "caveats", "note": ""}
_ALL: dict[Kind, str] = {"caveat": "caveats of all tables", "note": "how to read the tables"}


@dataclass(frozen=True, slots=True)
class Block:
    """Remarks of one kind under their title."""

    kind: Kind
    title: str  # in small letters; "" where there is none
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """What stands below the tables of one text."""

    below: tuple[tuple[Block, ...], ...]  # below each of them
    at_the_end: tuple[Block, ...]  # below the last, of all of them; nothing where a table stands alone


def said_once(tables: Sequence[Table]) -> Said:
    """Return where the remarks of tables stand."""
    if len(tables) < 2:
        return Said(tuple(_blocks(table.remarks, _ALONE) for table in tables), ())
    everywhere = of_all([table.remarks for table in tables])
    below = [[remark for remark in table.remarks if remark not in everywhere] for table in tables]
    return Said(tuple(_blocks(found, _ONE_OF_SEVERAL) for found in below), _blocks(everywhere, _ALL))


def of_all(several: Sequence[Sequence[Remark]]) -> list[Remark]:
    """Return what holds of all tables, given the remarks of each.

    A caveat holds of all where each has it, and a note where no table says something else about the same. What was not
    scored is always of one table.
    """
    texts: dict[str, set[tuple[str, ...]]] = {}  # what a note explains -> the words of each table that explains it
    for remarks in several:
        notes = [remark for remark in remarks if remark.kind == "note"]
        for about in {note.about for note in notes}:
            texts.setdefault(about, set()).add(tuple(note.text for note in notes if note.about == about))
    return [
        remark
        for remark in merged([remark for remark in remarks if remark.kind != "problem"] for remarks in several)
        if (len(texts[remark.about]) == 1 if remark.kind == "note" else all(remark in remarks for remarks in several))
    ]


def merged(several: Iterable[Sequence[Remark]]) -> list[Remark]:
    """Return the remarks of all, each once, next to those that it stands next to in its own table."""
    order: list[Remark] = []
    for remarks in several:
        place = 0
        for remark in remarks:
            if remark not in order:
                alike = [i for i, other in enumerate(order) if remark.about and other.about == remark.about]
                order.insert(alike[-1] + 1 if alike else place, remark)
            place = order.index(remark) + 1
    return order


def _blocks(remarks: Sequence[Remark], titles: dict[Kind, str]) -> tuple[Block, ...]:
    found = {kind: tuple(remark.text for remark in remarks if remark.kind == kind) for kind in titles}
    return tuple(Block(kind, titles[kind], lines) for kind, lines in found.items() if lines)
