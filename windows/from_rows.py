"""Lengths of time that rows bring: an expression such as `uc.col("gap")` in place of a fixed length.

Guarded by tests/windows/test_from_rows.py.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from ..errors import TypeMismatch


@runtime_checkable
class OfRows(Protocol):
    """A value that each row has: an expression over its columns."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the expression reads."""

    def evaluate(self, table: pa.Table) -> pa.Array | pa.ChunkedArray:
        """The value of each row."""

    def type(self, schema: pa.Schema) -> pa.DataType:
        """The type of the values; raises if the expression does not fit the columns."""


def check_length(length: OfRows, schema: pa.Schema, who: str) -> None:
    """Raise if an expression does not give lengths of time."""
    if not pa.types.is_duration(kind := length.type(schema)):
        raise TypeMismatch(
            f"{who} needs a length of time for each row, but {length!r} is {kind}: give a column of durations, which "
            "Spark calls INTERVAL DAY TO SECOND"
        )


def lengths(length: OfRows, rows: pa.Table) -> np.ndarray:
    """The length of each row in whole microseconds, rounded down; 0 where it is null.

    >>> import pyarrow as pa, uncombine as uc
    >>> from uncombine.windows.from_rows import lengths
    >>> lengths(uc.col("gap"), pa.table({"gap": pa.array([2, None], pa.duration("ms"))}))
    array([2000,    0])
    """
    values = length.evaluate(rows)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    unit = values.type.unit
    whole = np.asarray(values.view(pa.int64()).fill_null(0))
    if unit == "ns":
        return whole // 1_000
    factor = {"s": 1_000_000, "ms": 1_000, "us": 1}[unit]
    most = np.iinfo(np.int64).max // factor  # such a length reaches the end of time from any time
    return whole if factor == 1 else np.clip(whole, -most, most) * factor
