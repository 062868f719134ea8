"""Trials that were planned and left no record, as of a run that was killed: records of them, for tables to count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from effbench.errors import EffbenchError
from effbench.records import Record, naming

_WHY = "it left no record: the run ended before its turn, or is not there yet"


def without_record(suite: Mapping[str, Any], records: Iterable[Record]) -> list[Record]:
    """Return a record of the status `not_started` for each planned trial that has none among `records`.

    suite: what `suite.json` of a results folder holds. Its `planned` says what all records of one workload and budget
        have in common; without it, as in a folder of an early version, nothing is known of what was planned.

    Raises:
        EffbenchError: the file holds something else.
    """
    if "planned" not in suite:
        return []
    name = naming()
    known = {(record.workload, record.budget, name(record.techniques), record.seed) for record in records}
    try:
        return [
            each
            for each in _planned(suite)
            if (each.workload, each.budget, name(each.techniques), each.seed) not in known
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as fault:
        raise EffbenchError(f"suite.json of the results does not say what was planned: {fault}") from fault


def _planned(suite: Mapping[str, Any]) -> Iterator[Record]:
    for place in suite["planned"]:
        for techniques in (*suite["sets"], *suite["only"].get(place["workload"], ())):
            for seed in suite["seeds"]:
                asked = {"suite": suite["name"], "techniques": techniques, "seed": seed}
                yield Record.from_values({**place, **asked, "status": "not_started", "reason": _WHY})
