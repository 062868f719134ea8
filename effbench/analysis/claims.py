"""Claim cards: what a paper says of a technique beside what was measured here, with the records that say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from effbench.analysis.comparison import Comparison, SetResult
from effbench.analysis.costs import Cost, cost
from effbench.analysis.intervals import Estimate
from effbench.analysis.speedups import SpeedUp, goals_of, speed_up
from effbench.analysis.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Said:
    """What is published of a technique; `claims.json` of a results folder has it for each that was run."""

    paper: str = ""
    claim: str = ""
    leaf: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """One set on one workload under one budget.

    relative: the difference as a share of the baseline's mean, signed as the difference is.
    records: (seed, status, key) of each record behind the card, in the folder that was read.
    """

    label: str
    techniques: Mapping[str, Mapping[str, Any]]
    said: Mapping[str, Said]  # technique -> what is published
    workload: str
    budget: str
    metric: str
    higher_is_better: bool | None
    verdict: Verdict
    difference: Estimate | None
    relative: float | None
    p_adjusted: float | None
    is_under_floor: bool
    scored: int  # seeds
    planned: int
    cost: Cost | None
    speed_up: SpeedUp | None
    peak_memory_mib: float | None
    baseline_peak_memory_mib: float | None
    reasons: tuple[str, ...]  # why trials are not scored
    records: tuple[tuple[int, str, str], ...]

    @property
    def sentence(self) -> str:
        """The card in one line."""
        found = self.difference
        effect = ""
        if found is not None and found.mean is not None:
            effect = f", {self.metric} {found.mean:+.4g}"
            if found.low is not None and found.high is not None:
                effect += f" [{found.low:+.4g}, {found.high:+.4g}]"
        step = self.cost.step.mean if self.cost else None
        price = f", {step:.2f} times the baseline's step" if step is not None else ""
        return f"{self.label} on {self.workload} in {self.budget}: {self.verdict}{effect}{price}, n = {self.n}"

    @property
    def n(self) -> str:
        """How many of the planned seeds are scored: `2/5`."""
        return f"{self.scored}/{self.planned}"


def claims(comparisons: Sequence[Comparison], said: Mapping[str, Mapping[str, str]] | None = None) -> list[Claim]:
    """Return a card for each set, workload and budget.

    said: technique -> {"paper": ..., "claim": ..., "leaf": ...}: what `store.read_json("claims")` returns.
    """
    known = {
        name: Said(facts.get("paper", ""), facts.get("claim", ""), facts.get("leaf", ""))
        for name, facts in (said or {}).items()
    }
    found = []
    for comparison in comparisons:
        baseline = next((each for each in comparison.results if each.is_baseline), None)
        goals = goals_of(baseline.records if baseline else ())
        others = [each for each in comparison.results if not each.is_baseline]
        found += [_claim(each, comparison, known, baseline, goals) for each in others]
    return found


def _claim(
    each: SetResult,
    comparison: Comparison,
    known: Mapping[str, Said],
    baseline: SetResult | None,
    goals: Mapping[int, tuple[float, float]],
) -> Claim:
    usual = baseline.mean.mean if baseline else None
    theirs = baseline.records if baseline else ()
    found = each.difference
    relative = found.mean / abs(usual) if found is not None and found.mean is not None and usual else None
    reasons = dict.fromkeys(" ".join(r.reason.split()) for r in each.records if r.status != "ok" and r.reason)
    return Claim(
        label=each.label,
        techniques=each.techniques,
        said={name: known.get(name, Said()) for name in each.techniques},
        workload=comparison.group.workload,
        budget=comparison.group.budget,
        metric=comparison.measure.title,
        higher_is_better=comparison.measure.higher_is_better,
        verdict=each.verdict or Verdict.NO_EVIDENCE,
        difference=found,
        relative=relative,
        p_adjusted=each.p_adjusted,
        is_under_floor=each.is_under_floor,
        scored=len(each.values),
        planned=each.planned,
        cost=cost(each.records, theirs, comparison.confidence) if theirs else None,
        speed_up=speed_up(each.records, goals, comparison.confidence),
        peak_memory_mib=each.peak_memory_mib,
        baseline_peak_memory_mib=baseline.peak_memory_mib if baseline else None,
        reasons=tuple(reasons),
        records=tuple((record.seed, record.status, record.key) for record in each.records),
    )
