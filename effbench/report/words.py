"""Sentences made of numbers and names: plurals, lists, runs of seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def counted(count: int, noun: str) -> str:
    """Write `1 seed` or `3 seeds`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def listed(names: Iterable[str], *, most: int = 4, word: str = "and") -> str:
    """Write `a, b and c`, or `a, b, c and 4 more`."""
    found = list(names)
    if len(found) > most:
        found = [*found[: most - 1], f"{len(found) - most + 1} more"]
        word = "and"
    return f" {word} ".join(part for part in (", ".join(found[:-1]), *found[-1:]) if part)


def spans(numbers: Sequence[int]) -> str:
    """Write sorted whole numbers as the command line takes them: `0-4,7`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)


def agreed(values: Iterable[str]) -> str:
    """Return the value that all have that say one, or ""."""
    found = {value for value in values if value}
    return found.pop() if len(found) == 1 else ""


def shortened(words: str, most: int) -> str:
    """Return words of at most so many characters, cut in the middle, since names often differ at the end."""
    if len(words) <= most:
        return words
    tail = most * 4 // 7
    return f"{words[: most - 1 - tail]}\N{HORIZONTAL ELLIPSIS}{words[-tail:]}"
