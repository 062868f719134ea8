"""effbench merge: put the results of several folders into one, or say why they do not compare."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote

from effbench.analysis.merging import mismatches
from effbench.analysis.noise import FOLDER, read_aa
from effbench.errors import EffbenchError
from effbench.records import Record
from effbench.report.console import emit
from effbench.store import Store, latest


def run(arguments: argparse.Namespace) -> int:
    """Merge the folders into a new one."""
    stores = [Store(path) for path in arguments.results]
    if len(stores) < 2:
        raise EffbenchError("merge needs two folders of results, or more")
    refuse_one_twice(arguments.results)
    found = [list(store.latest().values()) for store in stores]
    refuse_apples_and_pears(stores, found)
    into = Store(arguments.into)
    if into.records_file.exists():
        raise EffbenchError(f"{into.path} holds results already; name a new folder with --into")
    merged = _put(into, [record for records in found for record in records])
    if own := read_aa(arguments.results):
        _put(Store(into.path / FOLDER), own)
    for store in stores:
        _bring(store, into)
    command = f"effbench table {quote(str(into.path))}"
    emit(f"{merged} records of {len(stores)} folders are in {into.path}; `{command}` shows them.")
    return 0


def refuse_one_twice(folders: Sequence[str]) -> None:
    """Do nothing where all folders are different ones.

    Raises:
        EffbenchError: one is named twice, by whatever path; names both spellings.
    """
    spelled: dict[Path, str] = {}
    for folder in folders:
        place = Path(folder).resolve()
        if place in spelled:
            raise EffbenchError(f"{spelled[place]} and {folder} are one folder; name each folder of results once")
        spelled[place] = folder


def _put(into: Store, records: Iterable[Record]) -> int:
    """Write the records that count into a new folder; return how many these are."""
    into.check_writable()
    merged = latest(records)
    for record in merged.values():
        into.append(record)
    return len(merged)


def refuse_apples_and_pears(stores: Sequence[Store], found: Sequence[Sequence[Record]]) -> None:
    """Do nothing where all folders compare with the first.

    Raises:
        EffbenchError: names each pair of folders that does not compare, and all reasons.
    """
    faults = []
    for store, records in zip(stores[1:], found[1:], strict=True):
        suites = (stores[0].read_json("suite"), store.read_json("suite"))
        faults += [f"\n  {store.path}: {each}" for each in mismatches(found[0], records, suites)]
    if faults:
        raise EffbenchError(f"these results do not compare with those of {stores[0].path}:{''.join(faults)}")


def _bring(store: Store, into: Store) -> None:
    """Copy what lies beside the records: prices, claims, logs; of the suite, the first folder's."""
    for name in ("prices", "claims"):
        if entries := store.read_json(name):
            into.merge_json(name, entries)
    if into.read_json("suite") is None and (suite := store.read_json("suite")) is not None:
        into.write_json("suite", suite)
    for log in store.logs.glob("*.log"):
        if not (there := Path(into.logs / log.name)).exists():
            shutil.copy2(log, there)
