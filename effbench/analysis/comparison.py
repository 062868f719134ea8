"""Each set of techniques against the baseline, or another set, seed by seed, at the end of the same budget."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from effbench import collecting
from effbench.analysis.caveats import caveats
from effbench.analysis.groups import BROKEN, Group, grouped, in_order
from effbench.analysis.intervals import CONFIDENCE, Estimate, estimate
from effbench.analysis.measures import Measure, known_measures, measure
from effbench.analysis.noise import noise_of
from effbench.analysis.ratios import Ratio, geometric_mean, paired_ratios, positive_mean
from effbench.analysis.stopping import DECIDED, intervals, left_out, stopped
from effbench.analysis.targets import TimeToTarget, time_to_target
from effbench.analysis.verdicts import Verdict, corrected, is_told_apart, paired, verdict
from effbench.errors import UnknownName
from effbench.records import Record, canonical, label


@dataclass(frozen=True, slots=True)
class SetResult:
    """What is known of one set of techniques in one table."""

    key: str  # the set's canonical text, which no other set of the table has
    label: str
    techniques: Mapping[str, Mapping[str, Any]]
    records: Sequence[Record]  # one a seed
    planned: int  # seeds
    is_baseline: bool  # whether the others are compared with it: the empty set, unless another is asked for
    values: Mapping[int, float]  # seed -> measure of the runs that are scored: finite, status ok
    nonfinite: Sequence[float]  # NaN and infinite measures of runs that ended well otherwise
    mean: Estimate
    difference: Estimate | None  # to the baseline, paired; None for the baseline, and where no seed pairs
    p_value: float | None
    p_adjusted: float | None  # by Holm, over the sets of this table
    verdict: Verdict | None  # None for the baseline
    best: bool
    is_under_floor: bool  # its difference is no larger than what the baseline shows against itself
    time_to_target: TimeToTarget | None
    examples_per_second: Ratio
    relative_speed: float | None  # to the baseline: geometric mean of the ratios of paired seeds
    peak_memory_mib: float | None  # of the seed that needed most
    setup_seconds: Ratio

    @property
    def is_complete(self) -> bool:
        """Whether every planned seed is scored."""
        return len(self.values) == self.planned

    @property
    def decided(self) -> str:
        """What was decided before all its seeds had run: `better after 5 of 8 seeds`; "" where they all were to run."""
        return next((record.reason for record in self.records if record.stop_reason == DECIDED), "")

    @property
    def statuses(self) -> Counter[str]:
        """How many records have which status."""
        return Counter(record.status for record in self.records)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One table's worth of results: baseline first, then from best to worst, incomplete ones last."""

    group: Group
    measure: Measure
    confidence: float
    against: str  # label of the set that the others are compared with: "baseline", unless another is asked for
    noise_floor: float  # in units of the measure; 0 where no A/A run tells
    results: Sequence[SetResult]
    caveats: Sequence[str]  # what the numbers cannot vouch for


def compare(
    records: Iterable[Record],
    metric: str | None = None,
    workload: str | None = None,
    *,
    confidence: float = CONFIDENCE,
    noise_floor: float = 0.0,
    aa: Sequence[Record] = (),
    against: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Comparison]:
    """Compare all sets with the baseline, or with another set, for each workload and budget by itself.

    metric: what to compare (see `measures.measure`); each workload's headline metric by default.
    workload: compare on this one alone.
    noise_floor: differences up to this size do not matter, in units of the metric; none of them is better or worse.
    aa: records of the baseline against itself. Their floor (see `noise`) greys out what lies under it; it overrules no
        verdict, for it knows nothing of the luck that paired seeds have in common.
    against: the set that takes the place of the baseline, to tell what one technique adds to another.

    Runs are paired by seed: a seed fixes the first weights and the order of examples. The intervals of the
    differences are Student's t, widened by Holm's correction over the sets of a table, and the verdict comes from
    them. Where a set was stopped when it was decided, its planned seeds are those that it ran, and the intervals of
    the table are those of the group-sequential test instead (see `sequential`). A set is *best* when its verdict is
    `better`, all its seeds are scored, and it cannot be told apart (paired, uncorrected) from the complete set with the
    best mean. Incomplete sets sort below complete ones.

    Raises:
        UnknownName: there is no such workload, no record with such a metric, or none of the set `against`.
    """
    with collecting.put_off():
        return _comparisons(list(records), metric, workload, confidence, noise_floor, list(aa), against or {})


def _comparisons(
    found: list[Record],
    metric: str | None,
    workload: str | None,
    confidence: float,
    noise_floor: float,
    own: Sequence[Record],
    against: Mapping[str, Mapping[str, Any]],
) -> list[Comparison]:
    if workload is not None:
        if workload not in (known := {record.workload for record in found}):
            raise UnknownName("workload", workload, known, "among these records ")
        found = [record for record in found if record.workload == workload]
    if metric is not None and found:
        measure(found, metric)
    groups = in_order(grouped(found))
    if against and all(canonical(against) not in group.sets for group in groups):
        raise UnknownName("set", label(against), {record.label for record in found}, "among these records ")
    comparisons = []
    for group in groups:
        try:
            chosen = measure(group.records, metric)
        except UnknownName as unknown:
            if metric is None:
                there = known_measures(group.records)
                raise UnknownName("headline metric", unknown.name, there, f"{group.workload}: ") from None
            continue  # another workload's metric
        noise = noise_of(group, chosen, own)
        floor = noise.floor(len(group.seeds), confidence) if noise else None
        compared = _compared(group, chosen, confidence, noise_floor, against)
        comparisons.append(compared if floor is None else _greyed(compared, max(floor, noise_floor)))
    return comparisons


def _greyed(comparison: Comparison, floor: float) -> Comparison:
    """Return a comparison in which differences up to `floor` lie under it, unless pairing has told them apart."""
    results = [
        each
        if each.difference is None or each.verdict in {Verdict.BETTER, Verdict.WORSE}
        else dataclasses.replace(each, is_under_floor=abs(each.difference.mean or 0.0) <= floor)
        for each in comparison.results
    ]
    return dataclasses.replace(comparison, noise_floor=floor, results=results)


def _compared(
    group: Group,
    chosen: Measure,
    confidence: float,
    noise_floor: float,
    against: Mapping[str, Mapping[str, Any]],
) -> Comparison:
    planned, usual = len(group.seeds), canonical(against)
    baseline = _measured(usual, group.sets.get(usual, []), True, chosen, planned, confidence)
    results = [
        _measured(name, records, name == usual, chosen, planned - left_out(records), confidence)
        for name, records in group.sets.items()
    ]
    differences = [None if each.is_baseline else paired(each.values, baseline.values, confidence) for each in results]
    wide = [(found, None) for found in intervals(group, differences, confidence)] if stopped(group) else None
    judged = []
    for each, (difference, holm) in zip(results, wide or corrected(differences, confidence), strict=True):
        said = None if each.is_baseline else _verdict(each, difference, chosen, noise_floor)
        judged.append(
            dataclasses.replace(
                each,
                difference=difference,
                p_value=difference.p_value if difference else None,
                p_adjusted=holm.adjusted if holm else None,
                verdict=said,
                is_under_floor=difference is not None and abs(difference.mean or 0.0) <= noise_floor > 0.0,
                relative_speed=None if each.is_baseline else _relative_speed(each, baseline),
            )
        )
    ranked = sorted(_marked(judged, chosen, confidence), key=lambda each: _rank(each, chosen))
    name = label(against)
    return Comparison(group, chosen, confidence, name, noise_floor, ranked, caveats(group, chosen, ranked, name))


def _measured(
    key: str, records: Sequence[Record], is_baseline: bool, chosen: Measure, planned: int, confidence: float
) -> SetResult:
    ok = [record for record in records if record.status == "ok"]
    read = {record.seed: value for record in ok if (value := chosen.read(record)) is not None}
    values = {seed: value for seed, value in read.items() if math.isfinite(value)}
    memory = [record.peak_memory_mib for record in ok if record.peak_memory_mib is not None]
    tried = [record for record in ok if record.seed in read] + [r for r in records if r.status in BROKEN]
    return SetResult(
        key=key,
        label=records[0].label if records else "baseline",
        techniques=records[0].techniques if records else {},
        records=records,
        planned=planned,
        is_baseline=is_baseline,
        values=values,
        nonfinite=[value for value in read.values() if not math.isfinite(value)],
        mean=estimate(list(values.values()), confidence),
        difference=None,
        p_value=None,
        p_adjusted=None,
        verdict=None,
        best=False,
        is_under_floor=False,
        time_to_target=time_to_target(tried, confidence),
        examples_per_second=positive_mean([*_speeds(ok).values()], confidence),
        relative_speed=None,
        peak_memory_mib=max(memory, default=None),
        setup_seconds=positive_mean([record.setup_seconds for record in ok], confidence),
    )


def _verdict(each: SetResult, difference: Estimate | None, chosen: Measure, floor: float) -> Verdict:
    if set(each.statuses) == {"skipped"}:
        return Verdict.SKIPPED
    return verdict(
        difference,
        scored=len(each.values),
        planned=each.planned,
        broken=sum(record.status in BROKEN for record in each.records) + len(each.nonfinite),
        higher=chosen.higher_is_better,
        floor=floor,
    )


def _speeds(records: Iterable[Record]) -> dict[int, float]:
    """Return the speeds by seed, without those that are none, as in a record from elsewhere."""
    speeds = {record.seed: record.examples_per_second or 0.0 for record in records if record.status == "ok"}
    return {seed: speed for seed, speed in speeds.items() if 0.0 < speed < math.inf}


def _relative_speed(each: SetResult, baseline: SetResult) -> float | None:
    return geometric_mean(paired_ratios(_speeds(each.records), _speeds(baseline.records))).mean


def _marked(results: Sequence[SetResult], chosen: Measure, confidence: float) -> list[SetResult]:
    complete = [each for each in results if each.is_complete and each.mean.mean is not None]
    if not complete:
        return list(results)
    leader = min(complete, key=lambda each: chosen.badness(each.mean.mean or 0.0))
    return [
        dataclasses.replace(each, best=True)
        if each.verdict is Verdict.BETTER and not is_told_apart(each.values, leader.values, confidence)
        else each
        for each in results
    ]


def _rank(each: SetResult, chosen: Measure) -> tuple[bool, int, float, str]:
    tier = 0 if each.is_complete else 1 if each.values else 2 if each.verdict is not Verdict.SKIPPED else 3
    return not each.is_baseline, tier, chosen.badness(each.mean.mean or 0.0), each.label
