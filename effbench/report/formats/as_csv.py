"""Tables as CSV: one header, one line a set of techniques, numbers in full precision."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from effbench.report.table import Table


def to_csv(tables: Sequence[Table]) -> str:
    """Write all tables under one header, quoted as RFC 4180 has it; what is not known is empty."""
    rows = [row.values for table in tables for row in table.rows]
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().removesuffix("\n")
