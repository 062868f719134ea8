"""On what records were made: machine, versions, threads. Thousands of records share a few settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from effbench.analysis.caveats import machine
from effbench.records import Record

#: Statuses of trials that did not run, so that nothing is known of where.
_ASIDE = frozenset({"not_started", "skipped"})


@dataclass(frozen=True, slots=True)
class Setting:
    """All that records say of where they were made."""

    machine: str
    memory_gib: str
    device: str
    threads: int
    jobs: int
    versions: tuple[tuple[str, str], ...]  # package, version


def settings(records: Iterable[Record]) -> Counter[Setting]:
    """Return the settings of the trials that ran, and how many trials each has."""
    found: Counter[tuple[object, ...]] = Counter()
    first: dict[tuple[object, ...], Record] = {}
    for record in records:
        if record.status not in _ASIDE:
            here, packages = record.environment.get, id(record.versions)  # which records that were read share
            place = str(here("processor")), str(here("cores")), str(here("system")), str(here("device"))
            about = (*place, str(here("memory_gib")), record.threads, record.jobs, packages)
            found[about] += 1
            first.setdefault(about, record)
    counted: Counter[Setting] = Counter()
    for key, count in found.items():
        counted[_setting(first[key])] += count
    return counted


def _setting(record: Record) -> Setting:
    return Setting(
        machine(record),
        str(record.environment.get("memory_gib", "")),
        str(record.environment.get("device", "")),
        record.threads,
        record.jobs,
        tuple(sorted(record.versions.items())),
    )


def values(found: Mapping[Setting, int], name: str) -> Counter[str]:
    """Return the values of a field, or of a package's version, with how many trials have each; "" is none."""
    counted: Counter[str] = Counter()
    for setting, count in found.items():
        own = dict(setting.versions).get(name, "") if name not in Setting.__slots__ else str(getattr(setting, name))
        if own:
            counted[own] += count
    return counted


def packages(found: Iterable[Setting]) -> list[str]:
    """Return the packages of which some setting says the version."""
    return sorted({package for setting in found for package, _ in setting.versions})
