"""Which points of a two-level factorial design to run: all of them, or a fraction that tells effects apart best."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from effbench.errors import InvalidSuite
from effbench.sets import parse_set

MOST_FACTORS = 10
LEAST_RESOLUTION = 3  # below it, main effects are not told from each other

Set = dict[str, dict[str, Any]]


def factorial_sets(techniques: Sequence[str], fraction: int = 1) -> list[Set]:
    """Return the sets of a design, without the baseline, which is one of its points.

    techniques: the factors, each one technique with its options, as "mixup(alpha=0.1)".
    fraction: run one point in so many: 1, 2, 4, ...

    Raises:
        InvalidSuite: there are too few or too many factors, one is no single technique, or the fraction leaves too few
            points to tell the main effects apart.
    """
    factors = [_factor(text) for text in techniques]
    names = [next(iter(factor)) for factor in factors]
    if not 2 <= len(factors) <= MOST_FACTORS:
        raise InvalidSuite(f"factorial: {len(factors)} techniques are crossed; name 2 to {MOST_FACTORS}")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidSuite(f"factorial: {twice[0]} is named twice; a factor is one technique, on or off")
    found = []
    for levels in fractional_design(len(factors), fraction):
        chosen = [factor for factor, level in zip(factors, levels, strict=True) if level]
        if chosen:
            found.append({name: options for factor in chosen for name, options in factor.items()})
    return found


def fractional_design(factors: int, fraction: int = 1) -> list[tuple[int, ...]]:
    """Return the points of a 2^(k-p) design: a level, 0 or 1, for each factor; the first point is all off.

    Of all choices of generators, the one with the highest resolution is taken, and of these the one with the fewest
    shortest words (Fries and Hunter, Minimum Aberration 2^(k-p) Designs, Technometrics 22, 1980).

    Raises:
        InvalidSuite: the fraction is no power of two, or leaves too few points.
    """
    p = fraction.bit_length() - 1
    if fraction < 1 or fraction != 2**p:
        raise InvalidSuite(f"factorial: fraction = {fraction}: write 1, 2, 4, ...: one point in so many is run")
    base = factors - p
    generators = _generators(base, p)
    if p and (generators is None or _words(base, generators)[0] < LEAST_RESOLUTION):
        raise InvalidSuite(
            f"factorial: fraction = {fraction} leaves {2 ** max(0, base)} points for {factors} techniques, which "
            "cannot tell their effects apart; run a bigger part"
        )
    points = []
    for levels in itertools.product((0, 1), repeat=base):
        extra = [sum(levels[i] for i in generator) % 2 for generator in generators or ()]
        points.append((*levels, *extra))
    return sorted(points, key=sum)


def _factor(text: str) -> Set:
    found = parse_set(text)
    if len(found) != 1:
        raise InvalidSuite(f"factorial: {text!r} should be one technique, such as 'mixup' or 'mixup(alpha=0.1)'")
    return found


def _generators(base: int, p: int) -> tuple[tuple[int, ...], ...] | None:
    """Return, for each further factor, the base factors whose parity it takes; None where there are too few."""
    if p == 0:
        return ()
    columns = [c for size in range(base, 1, -1) for c in itertools.combinations(range(base), size)]
    choices = itertools.islice(itertools.combinations(columns, p), 20_000)  # the longest first: the best are early
    return max(choices, key=lambda chosen: _words(base, chosen), default=None)


def _words(base: int, generators: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Return (resolution, minus the number of shortest words) of the defining relation."""
    words = [{*generator, base + number} for number, generator in enumerate(generators)]
    lengths = []
    for size in range(1, len(words) + 1):
        for some in itertools.combinations(words, size):
            product: set[int] = set()
            for word in some:
                product ^= word
            lengths.append(len(product))
    shortest = min(lengths)
    return shortest, -lengths.count(shortest)


def names_of(factorial: Mapping[str, Any]) -> list[str]:
    """Return the names of the techniques that a suite's `[factorial]` crosses."""
    return [next(iter(parse_set(text))) for text in factorial.get("techniques", ())]
