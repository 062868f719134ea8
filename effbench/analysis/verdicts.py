"""What may be said of a set of techniques, and how sure we are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum

from effbench.analysis.intervals import CONFIDENCE, Estimate, Holm, estimate, holm


class Verdict(StrEnum):
    """What the records say of a set, held against the baseline at the end of the same budget."""

    BETTER = "better"
    WORSE = "worse"
    NO_EVIDENCE = "no evidence"
    BREAKS = "breaks"  # more than half of its seeds came to no good
    INCOMPLETE = "incomplete"  # seeds are missing: those that are left may be the lucky ones
    SKIPPED = "skipped"  # it was refused, so nothing was measured


def verdict(
    difference: Estimate | None, *, scored: int, planned: int, broken: int, higher: bool | None, floor: float
) -> Verdict:
    """Return what may be said of a set with these counts of seeds, and this corrected difference.

    higher: whether a positive difference is good; None where nobody said.
    floor: differences up to this size are noise, as a run of the baseline against itself shows them.
    """
    if 2 * broken > planned:
        return Verdict.BREAKS
    if scored < planned:
        return Verdict.INCOMPLETE
    if difference is None or difference.low is None or difference.high is None or higher is None:
        return Verdict.NO_EVIDENCE
    if abs(difference.mean or 0.0) <= floor or difference.low <= 0.0 <= difference.high:
        return Verdict.NO_EVIDENCE
    return Verdict.BETTER if (difference.low > 0.0) is higher else Verdict.WORSE


def corrected(
    differences: Sequence[Estimate | None], confidence: float = CONFIDENCE
) -> list[tuple[Estimate | None, Holm | None]]:
    """Widen the intervals of a table's differences so that each excludes zero exactly when Holm's test does.

    Equal differences of all seeds have no spread to judge by, and get no interval. An interval by itself holds the
    truth with at least the given confidence; all of a table at once may do so less often, for Holm's rule rejects more
    than intervals which all hold could.
    """
    p_values = {i: p for i, each in enumerate(differences) if each and (p := each.p_value) is not None}
    steps = dict(zip(p_values, holm(list(p_values.values()), confidence), strict=True))
    found: list[tuple[Estimate | None, Holm | None]] = []
    for i, each in enumerate(differences):
        if each is None:
            found.append((None, None))
        elif i in steps:
            found.append((each.at(1.0 - steps[i].level), steps[i]))
        else:
            found.append((each.at(confidence), None))
    return found


def paired(ours: Mapping[int, float], theirs: Mapping[int, float], confidence: float = CONFIDENCE) -> Estimate | None:
    """Return the mean of ours - theirs over the seeds that both have, with its interval; None without any."""
    found = [ours[seed] - theirs[seed] for seed in ours if seed in theirs]
    finite = [each for each in found if math.isfinite(each)]  # two numbers of 1e308 may be too far apart for a third
    return estimate(finite, confidence) if finite else None


def is_told_apart(ours: Mapping[int, float], theirs: Mapping[int, float], confidence: float = CONFIDENCE) -> bool:
    """Return whether the paired differences of two sets exclude zero, uncorrected."""
    found = paired(ours, theirs, confidence)
    p = found.p_value if found else None
    return p is not None and p <= 1.0 - confidence
