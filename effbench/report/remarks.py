"""The lines below a table: what did not run, what to mistrust, and how to read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from effbench.analysis.caveats import machine
from effbench.analysis.comparison import Comparison, SetResult
from effbench.analysis.verdicts import Verdict
from effbench.records import STATUSES, Record
from effbench.report.numbers import TIMES, exact, nonfinite, significant
from effbench.report.table import Remark

#: Clocks that count seconds -> which seconds these are.
SECONDS: dict[str, str] = {
    "seconds": "seconds on the wall",
    "cpu": "CPU seconds",
    "reference": "seconds at the prices of the reference machine",
}


def remarks(comparison: Comparison, *, apart: bool) -> tuple[Remark, ...]:
    """Return the remarks of a table.

    apart: whether records of the same workload and budget stand in other tables, since they do not compare.
    """
    problems = [line for each in comparison.results for line in problems_of(each)]
    split = ["records of another clock or version of effbench stand in a table of their own"] if apart else []
    return (
        *(Remark("problem", line) for line in problems),
        *(Remark("caveat", line) for line in [*comparison.caveats, *split]),
        *(Remark("note", line) for line in _notes(comparison)),
    )


def problems_of(each: SetResult) -> Iterator[str]:
    """Say, for each status and reason, what became of the trials of a set that are not scored."""
    found: dict[tuple[str, str], list[Record]] = {}
    for record in each.records:
        if record.status != "ok":
            reason = " ".join(record.reason.split())
            found.setdefault((record.status, reason), []).append(record)
    for (status, reason), records in found.items():
        seeds = f"seed{'s' if len(records) > 1 else ''} {', '.join(str(record.seed) for record in records)}"
        log = f" ({records[0].log})" if records[0].log and status in {"failed", "killed", "timeout"} else ""
        yield f"{each.label}: {status.replace('_', ' ')}, {seeds}{': ' if reason else ''}{reason}{log}"
    for value, count in Counter(map(nonfinite, each.nonfinite)).items():
        yield f"{each.label}: {value} instead of a number in {count} of {len(each.records)} trials"


def statuses(records: Iterable[Record]) -> str:
    """Write `12 ok, 2 failed, 1 skipped`."""
    counted = Counter(record.status for record in records)
    order = [*STATUSES, *sorted(set(counted) - set(STATUSES))]
    return ", ".join(f"{counted[status]} {status.replace('_', ' ')}" for status in order if counted[status])


def _notes(comparison: Comparison) -> Iterator[str]:
    group, measure, results = comparison.group, comparison.measure, comparison.results
    percent = f"{100 * comparison.confidence:g} %"
    way = {True: ", more is better", False: ", less is better", None: ""}[measure.higher_is_better]
    where = f" on {measure.split}" if measure.split else ""
    yield f"{measure.title}{where}{way}: mean over seeds ± half its {percent} interval (Student's t)"
    compared = sum(each.p_adjusted is not None for each in results)
    if not compared and any(each.p_value is not None for each in results):
        yield f"Δ: paired by seed, with its {percent} interval, which holds however often one looks"
    if compared:
        corrected = f", widened for {compared} comparisons (Holm)" if compared > 1 else ""
        yield f"Δ: paired by seed, with its {percent} interval{corrected}; the verdict follows from it"
    if any(each.best for each in results):
        yield "★: better than the baseline, and not told apart from the best mean of the complete sets"
    if comparison.noise_floor:
        floor = significant(comparison.noise_floor, 2)
        yield f"grey: no larger than {floor}, which the baseline's seeds show against each other (effbench aa)"
    if any(not each.is_complete and each.verdict is not Verdict.SKIPPED for each in results):
        yield "sets with missing seeds stand below complete ones: the seeds that are left may be the lucky ones"
    yield from _target(comparison)
    if any(each.examples_per_second.mean is not None for each in results):
        yield f"examples/s: without set-up, {TIMES} the baseline's by seed; peak memory: of the seed with most"
    yield from _circumstances(group.records, group.clock, group.budget)


def _target(comparison: Comparison) -> Iterator[str]:
    targets = {record.target for record in comparison.group.records if record.target is not None}
    if targets:
        named = " or ".join(exact(target) for target in sorted(targets))
        metric = next(record.metric for record in comparison.group.records if record.target is not None)
        yield f"target: {metric} {named} on validation, interpolated between evaluations"


def _circumstances(records: list[Record], clock: str, budget: str) -> Iterator[str]:
    """Say which clock ran and on what, where all records agree; caveats say where they do not."""
    counted = f", counted in {SECONDS[clock]}" if clock in SECONDS else ""
    yield f"budget: {budget}{counted}, evaluation left out"
    yield f"trials: {statuses(records)}"
    ran = [record for record in records if record.status != "not_started"]
    facts = [_agreed(machine(record) for record in ran)]
    if (threads := _agreed(str(record.threads) for record in ran)) and (
        jobs := _agreed(str(record.jobs) for record in ran)
    ):
        facts.append(f"{threads} thread{'s' if threads != '1' else ''} a trial, {jobs} at a time")
    packages = sorted({package for record in ran for package in record.versions})
    found = ((package, _agreed(record.versions.get(package, "") for record in ran)) for package in packages)
    facts.append(", ".join(f"{package} {version}" for package, version in found if version))
    if any(facts):
        yield "; ".join(fact for fact in facts if fact)


def _agreed(values: Iterable[str]) -> str:
    """Return the value that all have, or ""."""
    found = {value for value in values if value}
    return found.pop() if len(found) == 1 else ""
