"""The lines below a table: what did not run, what to mistrust, and how to read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from effbench.analysis.caveats import machine, named
from effbench.analysis.comparison import Comparison, SetResult
from effbench.analysis.verdicts import Verdict
from effbench.records import STATUSES, Record, label
from effbench.report.numbers import TIMES, exact, nonfinite, significant
from effbench.report.table import Remark
from effbench.report.words import agreed, counted, listed, spans

#: Clocks that count seconds -> which seconds these are.
SECONDS: dict[str, str] = {
    "seconds": "seconds on the wall",
    "cpu": "CPU seconds",
    "reference": "seconds at the prices of the reference machine",
}

#: Whether more of a measure is better -> how a caption says it.
WAYS: dict[bool | None, str] = {True: "more is better", False: "less is better", None: ""}

_SEEDS = 3  # that are named one by one


def remarks(comparison: Comparison, *, apart: bool) -> tuple[Remark, ...]:
    """Return the remarks of a table.

    apart: whether records of the same workload and budget stand in other tables, since they do not compare.
    """
    split = ["records of another clock or version of effbench stand in a table of their own"] if apart else []
    return (
        *_problems(comparison),
        *(Remark("caveat", line) for line in [*comparison.caveats, *split]),
        *_notes(comparison),
    )


def _problems(comparison: Comparison) -> Iterator[Remark]:
    """Yield what became of trials that are not scored; what befell several sets alike is said once."""
    found: dict[str, list[str]] = {}
    for each in comparison.results:
        for what in _what_happened(each):
            found.setdefault(what, []).append(each.label)
    for what, labels in found.items():
        yield Remark("problem", f"{listed(labels, most=9)}: {what}", sets=tuple(labels))


def problems_of(each: SetResult) -> Iterator[str]:
    """Say, for each status and reason, what became of the trials of a set that are not scored."""
    for what in _what_happened(each):
        yield f"{label(each.techniques)}: {what}"


def _what_happened(each: SetResult) -> Iterator[str]:
    found: dict[tuple[str, str], list[Record]] = {}
    for record in each.records:
        if record.status != "ok":
            reason = " ".join(record.reason.split())
            found.setdefault((record.status, reason), []).append(record)
    for (status, reason), records in found.items():
        numbers = sorted(record.seed for record in records)
        named = spans(numbers) if len(numbers) > _SEEDS else ", ".join(map(str, numbers))
        seeds = f"seed{'s' if len(records) > 1 else ''} {named}"
        log = f" ({records[0].log})" if records[0].log and status in {"failed", "killed", "timeout"} else ""
        yield f"{status.replace('_', ' ')}, {seeds}{': ' if reason else ''}{reason}{log}"
    for value, count in Counter(map(nonfinite, each.nonfinite)).items():
        yield f"{value} instead of a number in {count} of {len(each.records)} trials"


def statuses(records: Iterable[Record]) -> str:
    """Write `12 ok, 2 failed, 1 skipped`."""
    counted = Counter(record.status for record in records)
    order = [*STATUSES, *sorted(set(counted) - set(STATUSES))]
    return ", ".join(f"{counted[status]} {status.replace('_', ' ')}" for status in order if counted[status])


def _notes(comparison: Comparison) -> Iterator[Remark]:
    """Yield how to read the table; tables that explain the same alike can share the words."""
    yield from _intervals(comparison)
    yield from _marks(comparison)
    yield from _costs(comparison)
    yield from _circumstances(comparison)


def _note(text: str, about: str, column: str = "") -> Remark:
    return Remark("note", text, about, column)


def _intervals(comparison: Comparison) -> Iterator[Remark]:
    percent = f"{100 * comparison.confidence:g} %"
    if comparison.measure.is_cost:
        yield _note(f"means are geometric, with their {percent} interval (Student's t of logarithms)", "mean", "mean")
    else:
        yield _note(f"±: half of the {percent} interval of the mean over seeds (Student's t)", "mean", "mean")
    compared = sum(each.p_adjusted is not None for each in comparison.results)
    if compared or any(each.p_value is not None for each in comparison.results):
        then = "the verdict follows from it" if compared else "which holds however often one looks"
        yield _note(f"Δ: paired by seed, with its {percent} interval; {then}", "difference", "difference")
    if compared > 1:
        text = f"the intervals of Δ are widened for {compared} comparisons (Holm)"
        yield _note(text, "comparisons", "difference")


def _marks(comparison: Comparison) -> Iterator[Remark]:
    results = comparison.results
    if any(each.best for each in results):
        text = f"★: better than {named(comparison.against)}, and not told apart from the best mean of the complete sets"
        yield _note(text, "best", "verdict")
    if comparison.noise_floor:
        floor = significant(comparison.noise_floor, 2)
        text = f"grey: no larger than {floor}, which the baseline's seeds show against each other (effbench aa)"
        yield _note(text, "floor")
    if any(not each.is_complete and each.verdict is not Verdict.SKIPPED for each in results):
        text = "sets with missing seeds stand below complete ones: the seeds that are left may be the lucky ones"
        yield _note(text, "incomplete")


def _costs(comparison: Comparison) -> Iterator[Remark]:
    """Say how to read the columns of targets, speed, memory and set-up, as far as they have something to show."""
    results, percent = comparison.results, f"{100 * comparison.confidence:g} %"
    targets = sorted({record.target for record in comparison.group.records if record.target is not None})
    if targets:
        metric = next(record.metric for record in comparison.group.records if record.target is not None)
        text = f"target: {metric} {' or '.join(map(exact, targets))} on validation"
        yield _note(text, "target", "time_to_target")
        text = f"to target: interpolated between evaluations; geometric mean and its {percent} interval"
        yield _note(text, "to target", "time_to_target")
    if any(each.examples_per_second.mean is not None for each in results):
        text = f"examples/s: geometric mean, without set-up; {TIMES}: over that of {named(comparison.against)}, by seed"
        yield _note(text, "speed", "examples_per_second")
    if any(each.peak_memory_mib is not None for each in results):
        yield _note("peak MiB: of the seed with most", "memory", "peak_memory_mib")
    if any(each.setup_seconds.n for each in results):
        yield _note("set-up s: geometric mean of what comes before the first step", "set-up", "setup_seconds")


def _circumstances(comparison: Comparison) -> Iterator[Remark]:
    """Say which clock ran and on what, where all records agree; caveats say where they do not."""
    clock = comparison.group.clock
    if clock:
        yield _note(f"budgets are counted in {SECONDS.get(clock, clock)}, evaluation left out", "budget")
    ran = [record for record in comparison.group.records if record.status != "not_started"]
    facts = [agreed(machine(record) for record in ran)]
    if (threads := agreed(str(record.threads) for record in ran)) and (
        jobs := agreed(str(record.jobs) for record in ran)
    ):
        facts.append(f"{counted(int(threads), 'thread')} a trial, {jobs} at a time")
    packages = sorted({package for record in ran for package in record.versions})
    found = ((package, agreed(record.versions.get(package, "") for record in ran)) for package in packages)
    facts.append(", ".join(f"{package} {version}" for package, version in found if version))
    if any(facts):
        yield _note("; ".join(fact for fact in facts if fact), "made on")


def unit_of(clock: str) -> str:
    """Return the unit of what a clock counts, as a column's title writes it."""
    return "s" if clock in SECONDS else clock or "spent"
