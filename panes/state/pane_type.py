"""The type of the column `pane`, and rows that were stored when it had fewer fields.

Guarded by tests/panes/state/test_pane_type.py and tests/flows/test_stored_seeds.py.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ...combiners.rows.columns import flat
from ...windows.times import UTC_MICROS

FORMER_PANE = pa.struct(
    [
        ("index", pa.int64()),
        ("nonspeculative_index", pa.int64()),
        ("timing", pa.string()),
        ("is_first", pa.bool_()),
        ("is_last", pa.bool_()),
        ("watermark", UTC_MICROS),
        ("watermark_percentile", pa.float64()),
        ("processing_time", UTC_MICROS),
        ("trigger", pa.string()),
    ]
)
"""The type of the column `pane` in states before format 5, and in seeds before format 3."""

PANE = pa.struct([*FORMER_PANE, pa.field("since", UTC_MICROS)])
"""The type of the column `pane`: number, timing, clocks and cause of a pane.

`since` is null, but for windows that began before combiners were added to a running grouping without a history: their
results are null, and those of windows that begin at `since` or later are whole."""

_WAS, _IS = str(FORMER_PANE), str(PANE)


def with_panes_of_now(table: pa.Table) -> pa.Table:
    """Stored rows, in which a column of panes has the fields that it has now.

    >>> import pyarrow as pa
    >>> rows = pa.table({"pane": pa.nulls(1, FORMER_PANE), "x": [1]})
    >>> with_panes_of_now(rows)["pane"].type.names[-2:]
    ['trigger', 'since']
    """
    for at, field in enumerate(table.schema):
        if field.type == FORMER_PANE:
            panes = flat(table.column(at))
            parts = [*panes.flatten(), pa.nulls(len(panes), UTC_MICROS)]
            mask = panes.is_null() if panes.null_count else None
            panes = pa.StructArray.from_arrays(parts, fields=list(PANE), mask=mask)
            table = table.set_column(at, field.with_type(PANE), panes)
    return table


def with_pane_types_of_now(described: Any) -> Any:
    """The parts of a stored fingerprint, in which the type of panes is that of now."""
    match described:
        case str():
            return described.replace(_WAS, _IS)
        case list() | tuple():
            return [with_pane_types_of_now(one) for one in described]
        case dict():
            return {name: with_pane_types_of_now(one) for name, one in described.items()}
        case _:
            return described


__all__ = ["FORMER_PANE", "PANE", "with_pane_types_of_now", "with_panes_of_now"]
