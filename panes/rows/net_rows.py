"""Rows of a changelog, netted: each distinct row with the sum of its weights.

Guarded by tests/panes/rows/test_net_rows.py.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...combiners.aggregate import weights_of
from ...combiners.rows.columns import Column
from ...combiners.rows.hashing import hash_rows_128
from ..state.pane_type import PANE
from .equal_rows import netted

_PANE = "pane"


def net_rows(rows: pa.Table, weight: str) -> pa.Table:
    """The rows whose weights do not add up to zero, each once with the sum in the column `weight`.

    The facts of a pane do not tell rows apart, and of equal rows those of the last one stay.

    >>> rows = pa.table({"k": ["a", "b", "a"], "diff": [1, 1, -1]})
    >>> net_rows(rows, "diff").to_pydict()
    {'k': ['b'], 'diff': [1]}
    """
    apart = [field.name for field in rows.schema if not _is_about_pane(field) and field.name != weight]
    weights = weights_of(rows, weight)
    low, high = (
        hash_rows_128([Column(rows[name]) for name in apart]) if apart else 2 * (np.zeros(len(rows), np.uint64),)
    )
    groups, _, sums = netted(low, high, weights)
    last = np.zeros(groups.count, np.int64)
    last[groups.codes] = np.arange(rows.num_rows)
    left = np.flatnonzero(sums)
    kind = rows.schema.field(weight).type
    return rows.take(pa.array(last[left])).set_column(
        rows.schema.get_field_index(weight), weight, pa.array(sums[left], pa.int64()).cast(kind)
    )


def _is_about_pane(field: pa.Field) -> bool:
    return field.name == _PANE and field.type == PANE


__all__ = ["net_rows"]
