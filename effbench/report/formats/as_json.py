"""Tables as strict JSON: a list with one object for each set of techniques."""

from __future__ import annotations

import json
from collections.abc import Sequence

from effbench.records import plain
from effbench.report.table import Table


def to_json(tables: Sequence[Table]) -> str:
    """Write the rows of all tables as a list of objects; what is not known is null."""
    rows = [plain(row.values) for table in tables for row in table.rows]
    return json.dumps(rows, allow_nan=False, ensure_ascii=False, indent=2)
