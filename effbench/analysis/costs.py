"""What a set of techniques costs over the baseline: a step of it, and the work that is its own alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from effbench.analysis.intervals import CONFIDENCE, Estimate, estimate
from effbench.analysis.ratios import Ratio, geometric_mean, paired_ratios
from effbench.records import Record

#: Lines of the ledger that the budget pays for; a test holds them against the clock's own.
ON_THE_CLOCK = ("data", "forward_backward", "update", "extra")


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a set.

    step: a step over the baseline's step: by the price list where there is one, else by seconds of paired seeds.
    is_priced: whether it is by the price list; then the interval is that of the measured prices.
    extra: share of the seconds on the clock that went into the technique's own work, in [0, 1]. A technique that
        changes a term, rather than adding work, has none here, and shows in `step` alone.
    joules: energy of a run over the baseline's, where a meter measured it.
    """

    step: Ratio
    is_priced: bool
    extra: Estimate
    joules: Ratio


def cost(records: Sequence[Record], baseline: Sequence[Record], confidence: float = CONFIDENCE) -> Cost:
    """Return what a set costs, from its records and the baseline's that ended well."""
    ours, theirs = _ok(records), _ok(baseline)
    priced = _priced(ours)
    step = priced or geometric_mean(paired_ratios(_step_seconds(ours), _step_seconds(theirs)), confidence)
    extra = [record.ledger.get("extra", 0.0) / paid for record in ours if (paid := _paid(record))]
    joules = geometric_mean(paired_ratios(_joules(ours), _joules(theirs)), confidence)
    return Cost(step, priced is not None, estimate(extra, confidence), joules)


def joules(record: Record) -> float | None:
    """Return the energy of a run, J, where a meter measured it."""
    found = [value for name, value in record.measured.items() if name.endswith("joules")]
    return found[0] if found else None


def _ok(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.status == "ok"]


def _paid(record: Record) -> float:
    spent = record.ledger.get
    return math.fsum([spent(line, 0.0) for line in ON_THE_CLOCK])


def _step_seconds(records: Sequence[Record]) -> dict[int, float]:
    return {record.seed: _paid(record) / record.steps for record in records if record.steps}


def _joules(records: Sequence[Record]) -> dict[int, float]:
    return {record.seed: found for record in records if (found := joules(record)) is not None}


def _priced(records: Sequence[Record]) -> Ratio | None:
    """Return the price of a step over the baseline's, as a mean over the phases of the budget."""
    phases = next((record.price.get("phases") for record in records if record.price), None)
    if not phases:
        return None
    ends = [*(phase["start"] for phase in phases[1:]), 1.0]
    widths = [end - phase["start"] for phase, end in zip(phases, ends, strict=True)]
    # A stretch of the budget buys width / ratio steps: the price of a step, over all steps, is a harmonic mean.
    means = [
        1.0 / math.fsum(width / phase[side] for phase, width in zip(phases, widths, strict=True))
        for side in ("ratio", "low", "high")
    ]
    return Ratio(min(phase["rounds"] for phase in phases), *means)
