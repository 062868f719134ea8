"""The baseline against itself: how large differences are where there is none (an A/A run).

A trial repeated with its own seed is repeated bit by bit, and shows no noise at all. So the baseline is run with
seeds of its own against *other* seeds of its own, its twins: what then differs is luck alone. Real comparisons share a
seed, which takes some of the luck away (on `digits_mlp` after 30 steps, more than half of it), so that the floor is on
the safe side: it greys out, and overrules nothing.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from effbench.analysis.groups import BASELINE, Group, grouped
from effbench.analysis.intervals import CONFIDENCE, Estimate, estimate, t_quantile
from effbench.analysis.measures import Measure, measure
from effbench.analysis.power import POWER, detectable
from effbench.analysis.verdicts import paired
from effbench.errors import UnknownName
from effbench.records import Record
from effbench.store import read_records

FOLDER = "aa"  # below the results of the suite
TWIN = 1_000_000  # the twin of seed s is s + TWIN


@dataclass(frozen=True, slots=True)
class Noise:
    """What luck does to the baseline on one workload under one budget."""

    workload: str
    budget: str
    clock: str
    measure: Measure
    runs: Estimate  # of all runs of the baseline
    against_itself: Estimate | None  # paired differences of the seeds and their twins

    def floor(self, seeds: int, confidence: float = CONFIDENCE) -> float | None:
        """Return the largest mean difference that luck alone shows between so many seeds, but for 1 - confidence.

        t * s * sqrt(2 / seeds), where s is the spread of the runs. None where one run shows no spread.
        """
        if self.runs.spread is None or seeds < 1:
            return None
        return t_quantile(self.runs.n - 1, confidence) * self.runs.spread * math.sqrt(2.0 / seeds)

    def detectable(self, seeds: int, *, chance: float = POWER, confidence: float = CONFIDENCE) -> float | None:
        """Return the smallest effect that a comparison of so many seeds sees with that chance."""
        spread = self.runs.spread
        return (
            None if spread is None else detectable(seeds, math.sqrt(2) * spread, chance=chance, confidence=confidence)
        )

    @property
    def is_quiet(self) -> bool:
        """Whether the baseline is not told apart from itself."""
        found = self.against_itself
        return found is None or (p := found.p_value) is None or p > 1.0 - CONFIDENCE


def noises(records: Iterable[Record], metric: str | None = None) -> list[Noise]:
    """Return the noise of each workload and budget, from runs of the baseline alone.

    metric: as in `comparison.compare`; workloads that do not have it are left out.
    """
    found = []
    for group in grouped(records):
        try:
            chosen = measure(group.records, metric)
        except UnknownName:
            continue
        found.append(noise(group, chosen))
    return found


def noise(group: Group, chosen: Measure) -> Noise:
    """Return the noise of the baseline's runs of one group."""
    runs = [record for record in group.sets.get(BASELINE, ()) if record.status == "ok"]
    values = {r.seed: v for r in runs if (v := chosen.read(r)) is not None and math.isfinite(v)}
    first = {seed: value for seed, value in values.items() if seed < TWIN}
    twins = {seed - TWIN: value for seed, value in values.items() if seed >= TWIN}
    return Noise(
        group.workload, group.budget, group.clock, chosen, estimate(list(values.values())), paired(first, twins)
    )


def noise_of(group: Group, chosen: Measure, aa: Sequence[Record]) -> Noise | None:
    """Return the noise that tells of a group, from the records of A/A runs; None where these have none of its kind."""
    for found in grouped(aa):
        if (found.workload, found.budget, found.clock, found.version) == (
            group.workload,
            group.budget,
            group.clock,
            group.version,
        ):
            return noise(found, chosen)
    return None


def read_aa(paths: Iterable[str | os.PathLike[str]]) -> list[Record]:
    """Return the records of the A/A runs that lie below results folders; none where there are none."""
    return read_records([folder for path in paths if (folder := Path(path) / FOLDER).is_dir()])
