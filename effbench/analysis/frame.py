"""Records as a pandas frame: one row a record, flat columns, text that stays text."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from effbench.records import Record, plain
from effbench.store import read_records

if TYPE_CHECKING:
    import pandas as pd

_PLAIN = (
    "suite",
    "workload",
    "label",
    "seed",
    "budget",
    "clock",
    "status",
    "reason",
    "stop_reason",
    "metric",
    "higher_is_better",
    "target",
    "spent",
    "steps",
    "examples",
    "tokens",
    "flop",
    "examples_per_second",
    "parameters",
    "peak_memory_mib",
    "wall_seconds",
    "cpu_seconds",
    "setup_seconds",
    "overrun_seconds",
    "processes",
    "threads",
    "jobs",
    "log",
    "started",
    "finished",
    "key",
)
_AS_JSON = ("techniques", "order", "price", "environment", "plugins", "identity", "warnings")


def load_results(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> pd.DataFrame:
    """Read results folders into a frame with one row for each record that counts.

    Columns are the fields of a record. What is nested becomes flat: `test_accuracy`, `validation_accuracy`,
    `ledger_data_seconds`, `version_torch`; what has no fixed keys (`techniques`, `price`, `environment`) is
    JSON text. Curves are left out. Ids and labels stay text: a technique named `None`, `NA` or `1E10` is
    itself.

    Raises:
        EffbenchError: a path is no results folder, nor a file of records.
    """
    return to_frame(read_records(paths))


def to_frame(records: Iterable[Record]) -> pd.DataFrame:
    """Return a frame with one row a record, with the columns of `load_results`."""
    import pandas as pd

    rows = [_row(record) for record in records]
    names = dict.fromkeys((*_PLAIN, *_AS_JSON))  # first, and there even without records
    for row in rows:
        names.update(dict.fromkeys(row))
    return pd.DataFrame({name: _column([row.get(name) for row in rows]) for name in names})


def _row(record: Record) -> dict[str, Any]:
    row = {**record.measured, **{name: getattr(record, name) for name in _PLAIN}}
    row |= {f"{split}_{metric}": v for split, found in record.metrics.items() for metric, v in found.items()}
    row |= {f"ledger_{line}_seconds": seconds for line, seconds in record.ledger.items()}
    row |= {f"version_{package}": version for package, version in record.versions.items()}
    row |= {name: json.dumps(plain(getattr(record, name)), ensure_ascii=False) for name in _AS_JSON}
    return row


def _column(values: list[Any]) -> pd.Series[Any]:
    """Return numbers as numbers (NaN where there is none) and everything else as it is."""
    import pandas as pd

    kinds = {type(value) for value in values if value is not None}
    if kinds and kinds <= {int, float}:
        whole = kinds == {int} and all(value is not None and abs(value) < 2**63 for value in values)
        return pd.Series(values, dtype="int64" if whole else "float64")
    if kinds == {bool}:
        return pd.Series(values, dtype=bool if None not in values else object)
    return pd.Series(values, dtype=object)
