"""Which records may stand in one table, and which seeds were planned."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from effbench.budget import Budget
from effbench.errors import InvalidBudget
from effbench.records import Record, canonical, naming

BASELINE = canonical({})

#: Statuses of a trial that was tried and came to no good.
BROKEN: frozenset[str] = frozenset({"diverged", "failed", "timeout", "killed", "no_steps"})


@dataclass(frozen=True, slots=True)
class Group:
    """The records that compare: one workload, budget, clock and Major.Minor version; one a set and seed."""

    workload: str
    budget: str
    clock: str  # the unit of the budget; "" where no record says
    version: str  # "0.1"; "" where no record says
    sets: dict[str, list[Record]]  # canonical text of the set -> its records, by seed

    @property
    def records(self) -> list[Record]:
        """All records, set by set."""
        return [record for records in self.sets.values() for record in records]

    @property
    def seeds(self) -> list[int]:
        """The planned seeds: those that any set was run, or was to be run, with."""
        return sorted({record.seed for records in self.sets.values() for record in records})


def grouped(records: Iterable[Record]) -> list[Group]:
    """Split records into groups that compare, in the order in which they first come.

    Of several records of one set and seed, as after a change of code, the last counts. A record that does not say
    its clock or version, as of a trial that never started, goes with most others of its workload and budget.
    """
    asked: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        asked.setdefault((record.workload, record.budget), []).append(record)
    groups = []
    for (workload, budget), found in asked.items():
        clock = _usual(record.clock for record in found)
        version = _usual(major_minor(record) for record in found)
        parts: dict[tuple[str, str], list[Record]] = {}
        for record in found:
            parts.setdefault((record.clock or clock, major_minor(record) or version), []).append(record)
        groups += [Group(workload, budget, *part, _by_set(within)) for part, within in parts.items()]
    return groups


def in_order(groups: Sequence[Group]) -> list[Group]:
    """Return groups workload by workload and clock by clock, as these first come, from the smallest budget up."""
    workloads, clocks = ([getattr(each, part) for each in groups] for part in ("workload", "clock"))

    def place(group: Group) -> tuple[int, int, float]:
        try:
            amount = Budget.parse(group.budget, more_units=[group.clock]).amount
        except InvalidBudget:  # of a plugin's clock that no record names
            amount = math.inf
        return workloads.index(group.workload), clocks.index(group.clock), amount

    return sorted(groups, key=place)


def _by_set(records: Sequence[Record]) -> dict[str, list[Record]]:
    sets: dict[str, dict[int, Record]] = {}
    name = naming()
    for record in records:
        sets.setdefault(name(record.techniques), {})[record.seed] = record
    return {text: [found[seed] for seed in sorted(found)] for text, found in sets.items()}


def _usual(values: Iterable[str]) -> str:
    counted = Counter(value for value in values if value).most_common(1)
    return counted[0][0] if counted else ""


def major_minor(record: Record) -> str:
    """Return the version of effbench, within which results compare; "" where the record does not say."""
    return ".".join(record.versions.get("effbench", "").split(".")[:2])
