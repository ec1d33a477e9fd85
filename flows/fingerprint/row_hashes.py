"""The rows of tables and arrays, and the values of large collections, as hashes.

Guarded by tests/flows/fingerprint/test_fingerprint_code.py.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import Column, flat
from ...combiners.rows.hashing import hash_rows_128
from ...errors import UncombineError


def hash_of(*tokens: str | bytes | bytearray) -> str:
    """A hash of 128 bits of several texts."""
    made = blake2b(digest_size=16)
    for token in tokens:
        data = str.encode(token, "utf-8", "surrogatepass") if isinstance(token, str) else bytes(token)
        made.update(len(data).to_bytes(8, "little"))
        made.update(data)
    return made.hexdigest()


def rows_of(value: Any) -> str | None:
    """A hash of the rows of a table or an array; None for another value, or one whose values cannot be hashed."""
    if isinstance(value, np.ndarray):
        mask = np.ma.getmaskarray(value).tobytes() if isinstance(value, np.ma.MaskedArray) else b""
        return hash_of(str(value.dtype), str(value.shape), np.ascontiguousarray(value).tobytes(), mask)
    package = type(value).__module__.partition(".")[0]
    if package not in ("pyarrow", "pandas", "polars"):
        return None
    try:
        if isinstance(value, pa.Scalar):
            return hash_of(str(value.type), repr(value.as_py()))
        table = _of_pandas(value) if package == "pandas" else _table(value)
        if table is None:
            return None
        lanes = hash_rows_128([Column(flat(column)) for column in table.columns])
        return hash_of(str(table.schema.remove_metadata()), *(lane.tobytes() for lane in lanes))
    except (UncombineError, pa.ArrowException, TypeError, ValueError):
        return None


def rows_of_many(value: Collection[Any]) -> str | None:
    """A hash of the values of a large collection; None if they are no values of Arrow."""
    try:
        both: list[Collection[Any]] = [value]
        if isinstance(value, dict):
            both = [list(value), list(value.values())]
        arrays = [pa.array(sorted(one) if isinstance(one, set | frozenset) else list(one)) for one in both]
        return rows_of(pa.table(arrays, [str(i) for i in range(len(arrays))]))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def _of_pandas(value: Any) -> pa.Table | None:
    """A table of pandas with its index, by which functions look up."""
    pandas = sys.modules["pandas"]
    if isinstance(value, pandas.Index):
        value = value.to_frame(index=False)
    if isinstance(value, pandas.Series):
        value = value.to_frame()
    return pa.Table.from_pandas(value, preserve_index=True) if isinstance(value, pandas.DataFrame) else None


def _table(value: Any) -> pa.Table | None:
    if isinstance(value, pa.Table | pa.RecordBatch):
        return pa.table(value) if isinstance(value, pa.RecordBatch) else value
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return pa.table({"": value})
    if not hasattr(type(value), "__arrow_c_stream__"):
        return None
    try:
        return pa.table(value)
    except (pa.ArrowException, TypeError, ValueError):  # a column
        return pa.table({"": pa.chunked_array(value)})


__all__ = ["hash_of", "rows_of", "rows_of_many"]
