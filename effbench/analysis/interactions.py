"""What techniques are worth alone and in pairs, from a factorial design: main effects and pairwise interactions."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from effbench.analysis.comparison import Comparison
from effbench.analysis.intervals import Estimate, estimate
from effbench.analysis.verdicts import corrected
from effbench.records import canonical

MOST_FACTORS = 10  # of which a design would have a thousand points

Factor = tuple[str, str]  # technique, and its options as JSON


@dataclass(frozen=True, slots=True)
class Effect:
    """A main effect or an interaction, in units of the metric.

    of: one technique, for its main effect: the mean over the design of what turning it on changes. Two, for their
        interaction: what turning one on changes while the other is on, less what it changes while the other is off.
        Positive is more of the metric, be that good or bad.
    aliases: other effects that this design cannot tell from it, such as `mixup x sam`.
    p_adjusted: by Holm, over the effects of this design.
    """

    of: tuple[str, ...]
    effect: Estimate  # over seeds, its interval widened by Holm's correction
    p_adjusted: float | None
    aliases: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Interactions:
    """The effects of one workload and budget."""

    workload: str
    budget: str
    metric: str
    higher_is_better: bool | None
    factors: tuple[str, ...]
    points: int  # of the design that all seeds below have
    planned: int  # of the full factorial: 2 ** factors
    seeds: int
    effects: tuple[Effect, ...]  # main effects first


def interactions(comparison: Comparison, techniques: Iterable[str] = ()) -> Interactions | None:
    """Return the effects of the techniques that were crossed in this comparison; None where none, or too many, were.

    techniques: the factors, as the suite's `[factorial]` names them; default: those of which each occurs alone with
        every other, or without it, with one set of options.

    For each seed, the effects are the least squares of the metric on the signs of the factors (Box, Hunter and Hunter,
    Statistics for Experimenters, 2nd ed., chapters 5 and 6); the interval of an effect is Student's t over the seeds,
    which are blocks. A seed that a set of the design lacks (refused, broken) is left out, and so is a set without any;
    what can then no longer be told apart is an alias. Interactions of three techniques and more are taken as none.
    """
    import numpy as np

    values = _values(comparison)
    factors = _factors(values, techniques)
    if not 2 <= len(factors) <= MOST_FACTORS:
        return None
    points = {levels: values[name] for name in values if (levels := _levels(name, factors)) is not None}
    terms = [(i,) for i in range(len(factors))] + list(itertools.combinations(range(len(factors)), 2))
    there = [point for point in points if points[point]]
    seeds = sorted(set.intersection(*(set(points[point]) for point in there))) if there else []
    if not seeds or len(there) < len(factors) + 1:
        return None
    signs = np.array([[_sign(point, term) for term in [(), *terms]] for point in there])
    kept, aliases = _told_apart(signs)
    measured = np.array([[points[point][seed] for seed in seeds] for point in there])  # (points, seeds)
    fitted = np.linalg.lstsq(signs[:, kept], measured, rcond=None)[0]
    names = tuple(name for name, _ in factors)
    label = {column: tuple(names[i] for i in ([(), *terms][column])) for column in range(signs.shape[1])}
    shown = [(column, row) for row, column in enumerate(kept) if column > 0]
    # A coefficient is half of what going from -1 to +1 changes; an interaction is the difference of two such changes.
    raw = [estimate([float(v) * 2.0 * len(label[column]) for v in fitted[row]]) for column, row in shown]
    effects = [
        Effect(label[column], wide or plain, holm.adjusted if holm else None, tuple(label[a] for a in aliases[column]))
        for (column, _), plain, (wide, holm) in zip(shown, raw, corrected(raw, comparison.confidence), strict=True)
    ]
    group, measure = comparison.group, comparison.measure
    return Interactions(
        group.workload,
        group.budget,
        measure.title,
        measure.higher_is_better,
        names,
        len(there),
        2 ** len(factors),
        len(seeds),
        tuple(effects),
    )


def _values(comparison: Comparison) -> dict[str, Mapping[int, float]]:
    return {each.key: each.values for each in comparison.results}


def _factors(sets: Iterable[str], techniques: Iterable[str]) -> list[Factor]:
    """Return the techniques that are crossed, each with its one set of options."""
    options: dict[str, set[str]] = {}
    together: set[str] = set()
    for name in sets:
        parts = json.loads(name)
        together |= set(parts) if len(parts) > 1 else set()
        for technique, own in parts.items():
            options.setdefault(technique, set()).add(canonical(own))
    asked = list(techniques)
    chosen = asked or sorted(together)
    return [(name, next(iter(options[name]))) for name in chosen if len(options.get(name, ())) == 1]


def _levels(name: str, factors: Sequence[Factor]) -> tuple[int, ...] | None:
    """Return -1 or 1 for each factor; None where the set has something else in it."""
    parts = {technique: canonical(own) for technique, own in json.loads(name).items()}
    known = dict(factors)
    if any(known.get(technique) != own for technique, own in parts.items()):
        return None
    return tuple(1 if technique in parts else -1 for technique, _ in factors)


def _sign(point: Sequence[int], term: Sequence[int]) -> int:
    sign = 1
    for factor in term:
        sign *= point[factor]
    return sign


def _told_apart(signs: object) -> tuple[list[int], dict[int, list[int]]]:
    """Return the columns that are linearly independent, in order, and for each what it cannot be told from."""
    import numpy as np

    matrix = np.asarray(signs, dtype=float)
    kept: list[int] = []
    aliases: dict[int, list[int]] = {}
    for column in range(matrix.shape[1]):
        before = matrix[:, kept]
        solved = np.linalg.lstsq(before, matrix[:, column], rcond=None)[0] if kept else np.zeros(0)
        left = matrix[:, column] - before @ solved
        if np.abs(left).max(initial=0.0) > 1e-9:
            kept.append(column)
            aliases[column] = []
        else:
            for position, weight in zip(kept, solved, strict=True):
                if abs(weight) > 1e-9:
                    aliases[position].append(column)
    return kept, aliases
