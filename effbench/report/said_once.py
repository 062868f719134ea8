"""What stands below tables: what is particular to one below it, and what is to be said of all once, below the last."""

from __future__ import annotations

from collections import Counter
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
    """Return where the remarks of tables stand.

    A caveat is of all tables where each has it, and a note where no table says something else about the same. What
    was not scored always stands below its own table.
    """
    if len(tables) < 2:
        return Said(tuple(_blocks(table.remarks, _ALONE) for table in tables), ())
    merged = _merged([remark for remark in table.remarks if remark.kind != "problem"] for table in tables)
    texts = Counter(remark.about for remark in merged if remark.kind == "note")
    of_all = [
        remark
        for remark in merged
        if (remark.kind == "note" and texts[remark.about] == 1)
        or (remark.kind == "caveat" and all(remark in table.remarks for table in tables))
    ]
    below = [[remark for remark in table.remarks if remark not in of_all] for table in tables]
    return Said(tuple(_blocks(found, _ONE_OF_SEVERAL) for found in below), _blocks(of_all, _ALL))


def _merged(several: Iterable[Sequence[Remark]]) -> list[Remark]:
    """Return the remarks of all, each once, behind the one that it comes after in its own table."""
    merged: list[Remark] = []
    for remarks in several:
        place = 0
        for remark in remarks:
            if remark in merged:
                place = merged.index(remark) + 1
            else:
                merged.insert(place, remark)
                place += 1
    return merged


def _blocks(remarks: Sequence[Remark], titles: dict[Kind, str]) -> tuple[Block, ...]:
    found = {kind: tuple(remark.text for remark in remarks if remark.kind == kind) for kind in titles}
    return tuple(Block(kind, titles[kind], lines) for kind, lines in found.items() if lines)
