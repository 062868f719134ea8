"""Tables as a pandas frame: one row a set of techniques, numbers in full precision, units in the names of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from effbench.report.table import Table, Value

if TYPE_CHECKING:
    import pandas as pd

#: Columns whose name does not say their unit -> with it. Quality is in the unit of `metric`, what was spent in that of
#: `clock`.
_UNITS = {
    "spent_at_target": "spent_at_target_in_clock_units",
    "spent_at_target_low": "spent_at_target_low_in_clock_units",
    "spent_at_target_high": "spent_at_target_high_in_clock_units",
    "relative_speed": "speed_over_baseline",
}


def to_frame(tables: Sequence[Table]) -> pd.DataFrame:
    """Return the rows of all tables; what is not known is missing, and text stays text."""
    import pandas as pd

    rows = [
        {_UNITS.get(key, key): value for key, value in row.values.items()} for table in tables for row in table.rows
    ]
    if not rows:
        return pd.DataFrame()
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return pd.DataFrame({name: _series(values) for name, values in columns.items()})


def _series(values: Sequence[Value]) -> pd.Series[Any]:
    import pandas as pd

    kinds = {type(value) for value in values if value is not None}
    if kinds and kinds <= {int, float} and (float in kinds or None in values):
        return pd.Series(list(values), dtype="float64")
    return pd.Series(list(values))
