"""Short names of sets for people: long options that several sets share are told once, and numbered where they stand."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from effbench.analysis.comparison import Comparison
from effbench.records import label

ABOUT = "sets"  # what the notes explain, without which names cannot be understood
_LONG = 30  # characters of a technique with its options, from which on it is worth a note

Set = Mapping[str, Mapping[str, Any]]


def abbreviated(comparisons: Sequence[Comparison]) -> tuple[list[Comparison], list[str]]:
    """Return comparisons whose results have short names, alike in all of them, and what numbers in names stand for."""
    sets = {each.key: each.techniques for found in comparisons for each in found.results}
    names, lines = short_names(sets.values())
    return [
        dataclasses.replace(
            found, results=[dataclasses.replace(each, label=names[each.label]) for each in found.results]
        )
        for found in comparisons
    ], lines


def short_names(sets: Iterable[Set]) -> tuple[dict[str, str], list[str]]:
    """Return the name of each set by its label, and what the numbers in names stand for, a line each.

    `ssp+emulated_network(bandwidth=0.0, latency=0.0001)` becomes `ssp+emulated_network[1]`, and the line is
    `emulated_network[1]: bandwidth=0.0, latency=0.0001`, where another set has the same technique with these options.
    Numbers do not depend on the order of the sets.
    """
    found = list(sets)
    counted = Counter(label({name: options}) for techniques in found for name, options in techniques.items())
    repeated = sorted(part for part, count in counted.items() if count > 1 and len(part) >= _LONG)
    numbers = {part: f"[{number}]" for number, part in enumerate(repeated, 1)}

    def short(techniques: Set) -> str:
        parts = (label({name: techniques[name]}) for name in sorted(techniques))
        return "+".join(part.partition("(")[0] + numbers[part] if part in numbers else part for part in parts)

    names = {label(techniques): short(techniques) or label(techniques) for techniques in found}
    return names, [f"{part.partition('(')[0]}{numbers[part]}: {part.partition('(')[2][:-1]}" for part in repeated]
