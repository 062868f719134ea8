"""Claim cards as people read them: what papers claim of a set of techniques, beside what was measured here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from effbench.analysis.claims import Claim, claims
from effbench.analysis.comparison import Comparison
from effbench.analysis.intervals import Estimate
from effbench.analysis.tracks import TwoTracks, tracks
from effbench.analysis.verdicts import Verdict
from effbench.records import canonical
from effbench.report.numbers import NOTHING, TIMES, difference, mean, significant


@dataclass(frozen=True, slots=True)
class Card:
    """A claim in words: one set on one workload under one budget.

    baseline, mean: of the metric, with their intervals.
    relative: the difference as a share of the baseline's mean.
    step: what a step costs, over the baseline's.
    speed_up: to the baseline's final quality; of how many seeds, where not all got there.
    waived: the difference if the set's own extra work were free, where a track at equal steps was run.
    together: what both tracks say, where both were run.
    """

    claim: Claim
    baseline: str
    mean: str
    difference: str
    relative: str
    step: str
    speed_up: str
    waived: str
    together: str


def claim_cards(comparisons: Sequence[Comparison], said: Mapping[str, Mapping[str, str]]) -> list[list[Card]]:
    """Return the cards of each comparison, in the order of its sets.

    said: technique -> {"paper": ..., "claim": ..., "leaf": ...}.
    """
    both = {(each.workload, each.budget, canonical(each.techniques)): each for each in tracks(comparisons)}
    found = []
    for comparison in comparisons:
        usual = next((each.mean for each in comparison.results if each.is_baseline), Estimate(0))
        others = [each for each in comparison.results if not each.is_baseline]
        cards = zip(claims([comparison], said), others, strict=True)
        place = comparison.group.workload, comparison.group.budget
        found.append([_card(claim, usual, own.mean, both.get((*place, own.key))) for claim, own in cards])
    return found


def _card(claim: Claim, usual: Estimate, own: Estimate, tracked: TwoTracks | None) -> Card:
    step = claim.cost.step if claim.cost else None
    return Card(
        claim=claim,
        baseline=mean(usual),
        mean=mean(own),
        difference=_shown(claim.difference),
        relative=_relative(claim),
        step=_times(step.mean, step.low, step.high) if step else NOTHING,
        speed_up=_speed_up(claim),
        waived=_shown(tracked.waived) if tracked else NOTHING,
        together=str(tracked.finding) if tracked else NOTHING,
    )


def _shown(found: Estimate | None) -> str:
    return NOTHING if found is None else difference(found)


def _relative(claim: Claim) -> str:
    if claim.relative is None:
        return NOTHING
    return f"{'+' * (claim.relative > 0)}{significant(100.0 * claim.relative, 2)} %"


def _speed_up(claim: Claim) -> str:
    found = claim.speed_up
    if found is None or claim.verdict is Verdict.SKIPPED:
        return NOTHING
    if found.mean.mean is not None:
        return _times(found.mean.mean, found.mean.low, found.mean.high)
    return f"{found.reached}/{found.seeds} got there"


def _times(ratio: float | None, low: float | None, high: float | None) -> str:
    if ratio is None:
        return NOTHING
    interval = "" if low is None or high is None else f" [{significant(low)}, {significant(high)}]"
    return f"{significant(ratio)}{TIMES}{interval}"
