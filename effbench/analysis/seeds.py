"""How many seeds each workload needs for an effect of a given size, by the variance that was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from effbench.analysis.comparison import Comparison
from effbench.analysis.noise import noise_of
from effbench.analysis.power import POWER, seeds_needed
from effbench.analysis.sizes import Size
from effbench.records import Record


@dataclass(frozen=True, slots=True)
class SeedsNeeded:
    """What it takes to see an effect on one workload under one budget; None is more than anybody would run."""

    workload: str
    budget: str
    metric: str
    effect: float  # in units of the metric
    spread: float | None  # standard deviation of paired differences; None where nothing shows any
    source: str  # what the spread was measured on
    comparisons: int  # sets in the table
    alone: int | None  # seeds, for one set by itself
    in_table: int | None  # seeds, for all sets of the table, corrected by Holm


def seeds_for(
    comparisons: Sequence[Comparison], effect: Size, aa: Sequence[Record] = (), *, chance: float = POWER
) -> list[SeedsNeeded]:
    """Return the seeds that each comparison needs to see an effect with that chance.

    The spread is that of the sets' own paired differences, pooled; where there are none, of A/A runs, or else of the
    baseline's, times the root of two, as if pairing took no luck away.
    """
    found = []
    for each in comparisons:
        baseline = next((one for one in each.results if one.is_baseline), None)
        if baseline is None or baseline.mean.mean is None:
            continue
        size = effect.of(baseline.mean.mean)
        spread, source = _spread(each, aa)
        sets = max(1, sum(one.difference is not None for one in each.results))
        alone, in_table = (
            seeds_needed(size, spread, chance=chance, confidence=each.confidence, comparisons=count)
            if spread is not None
            else None
            for count in (1, sets)
        )
        group = each.group
        found.append(
            SeedsNeeded(group.workload, group.budget, each.measure.title, size, spread, source, sets, alone, in_table)
        )
    return found


def _spread(comparison: Comparison, aa: Sequence[Record]) -> tuple[float | None, str]:
    parts: list[float] = []
    freedom, sets = 0, 0
    for each in comparison.results:
        found = each.difference
        if found is not None and found.spread:  # equal differences say nothing of how others spread
            parts.append(math.sqrt(found.n - 1) * found.spread)
            freedom += found.n - 1
            sets += 1
    if freedom:
        return math.hypot(*parts) / math.sqrt(freedom), f"paired differences of {sets} set{'s' * (sets != 1)}"
    noise = noise_of(comparison.group, comparison.measure, aa)
    if noise is not None and noise.runs.spread:
        return math.sqrt(2.0) * noise.runs.spread, f"{noise.runs.n} A/A runs"
    baseline = next(each for each in comparison.results if each.is_baseline)
    if baseline.mean.spread:
        return math.sqrt(2.0) * baseline.mean.spread, f"{baseline.mean.n} runs of the baseline"
    return None, "one seed shows no spread" if baseline.mean.n == 1 else "equal values show no spread"
