"""What a comparison cannot vouch for, in sentences for its reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from effbench.analysis.groups import Group
from effbench.analysis.measures import Measure
from effbench.analysis.stopping import stopped
from effbench.records import Record

if TYPE_CHECKING:
    from effbench.analysis.comparison import SetResult

_NAMES = 3  # sets that a sentence names before it counts the rest
_MACHINE = ("processor", "cores", "system", "device")


def caveats(group: Group, measure: Measure, results: Sequence[SetResult], against: str = "baseline") -> list[str]:
    """Return what to know before believing the numbers of a group; empty where nothing is amiss.

    against: label of the set that the others are compared with.
    """
    usual = named(against)
    ran = [record for record in group.records if record.status != "not_started"]
    return [
        *_few_seeds(group),
        *_stopped(group),
        *_baseline(results, usual),
        *_unpaired(results, usual),
        *_equal_differences(results),
        *_direction(measure),
        *_mixed(ran, "threads for each trial", lambda record: str(record.threads)),
        *_mixed(ran, "trials at a time", lambda record: str(record.jobs)),
        *_mixed(ran, "machines", machine),
        *_versions(ran),
        *_own_warnings(ran),
    ]


def machine(record: Record) -> str:
    """Return what the record says of the machine, in one line; "" where it says nothing."""
    processor, cores, system, device = map(record.environment.get, _MACHINE)
    parts = (device if device != "cpu" else "", processor, f"{cores} cores" if cores else "", system)
    return ", ".join(str(part) for part in parts if part)


def _few_seeds(group: Group) -> Iterable[str]:
    if len(group.seeds) == 1:
        yield "one seed: no spread is known, so nothing can be said to be better or worse; run more seeds"
    elif len(group.seeds) == 2:
        yield "two seeds: intervals from two values are very wide; five seeds or more are better"


def _stopped(group: Group) -> Iterable[str]:
    if stopped(group):
        yield (
            "sets were stopped when they were decided, so the intervals of the differences are those of the "
            "group-sequential test, which hold however often one looks; they replace Holm's"
        )


def named(against: str) -> str:
    """Return what sentences call the set that others are compared with."""
    return "the baseline" if against == "baseline" else against


def _baseline(results: Sequence[SetResult], usual: str) -> Iterable[str]:
    baseline = [each for each in results if each.is_baseline]
    if results and not baseline:
        yield f"there is no record of {usual} here, so there is nothing to compare with"
    elif baseline and not baseline[0].is_complete:
        yield f"{usual} is scored on {len(baseline[0].values)} of {baseline[0].planned} seeds only"


def _unpaired(results: Sequence[SetResult], usual: str) -> Iterable[str]:
    baseline = next((each for each in results if each.is_baseline), None)
    alone = [each.label for each in results if baseline is not None and set(each.values) - set(baseline.values)]
    if alone:
        yield f"some seeds have no run of {usual} to pair with, and count for the mean only: {_names(alone)}"


def _equal_differences(results: Sequence[SetResult]) -> Iterable[str]:
    equal = [each.label for each in results if each.difference is not None and each.difference.spread == 0.0]
    if equal:
        yield (
            f"equal differences on all seeds give no spread to judge by, so no interval: {_names(equal)}; "
            "run more seeds"
        )


def _direction(measure: Measure) -> Iterable[str]:
    if measure.higher_is_better is None:
        yield f"the records do not agree, or say, whether more {measure.title} is better, so there are no verdicts"


def _mixed(records: Sequence[Record], what: str, read: Callable[[Record], str]) -> Iterable[str]:
    """Warn when records differ in what they should have in common."""
    values = Counter(map(read, records))
    del values[""]
    if len(values) > 1:
        parts = [
            f"{value} in {count} {_plural('record', count)} ({_names(r.label for r in records if read(r) == value)})"
            for value, count in values.most_common()
        ]
        yield f"different {what}, so speeds and spent time may not compare: {'; '.join(parts)}"


def _versions(records: Sequence[Record]) -> Iterable[str]:
    for package in sorted({package for record in records for package in record.versions}):
        yield from _mixed(records, f"versions of {package}", version_of(package))


def version_of(package: str) -> Callable[[Record], str]:
    """Return what reads a record's version of a package; "" where it has none."""
    return lambda record: record.versions.get(package, "")


def _own_warnings(records: Sequence[Record]) -> Iterable[str]:
    counted = Counter(warning for record in records for warning in record.warnings)
    for warning, count in counted.most_common():
        yield f"{warning} ({'all' if count == len(records) else f'{count} of {len(records)}'} records)"


def _names(labels: Iterable[str]) -> str:
    names = list(dict.fromkeys(labels))
    more = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {more} more" if more > 0 else "")


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else noun + "s"
