"""Facts of a result in memory."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def facts(table: Any) -> tuple[int, float, float]:
    """The rows of a table, the sum of its column s, and the greatest s."""
    sums = pa.table(table)["s"]
    return len(sums), float(pc.sum(sums).as_py()), float(pc.max(sums).as_py())
