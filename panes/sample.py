"""A sample of rows: a hash of values decides which rows are in it, so that a row and its retraction share their fate.

Guarded by tests/panes/test_sample.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from ..combiners.column_names import key_names
from ..combiners.rows.columns import Column
from ..combiners.rows.hashing import hash_rows, require_seed
from ..combiners.rows.plain_types import as_plain, plain_type, with_inner_types
from ..errors import InvalidArgument
from .rows.options import require_keys
from .state.pane_type import PANE
from .transforms import StorableField, Transform

_MOST_DIGITS = 38
"""The digits of a decimal of 128 bits."""

_OWN = 0x5A3D1E << 40
"""The first seed. Sketches and shards use small ones, and would see only a part of their hashes in a sample."""


@dataclass(frozen=True)
class Sample(Transform):
    """Keeps the rows whose number, which a hash of these columns makes from 0 up to 1, is less than the fraction.

    >>> import pyarrow as pa
    >>> from uncombine.panes.sample import Sample
    >>> Sample(0.5, ("x",), seed=0).apply(pa.table({"x": [1, 2, 3, 4, 1, 2, 3, 4]}))["x"].to_pylist()
    [2, 4, 2, 4]
    """

    fraction: float
    by: Sequence[str]
    seed: int

    filters = True
    word = "sample"

    def meaning(self, columns: frozenset[str] | None) -> Mapping[str, Any]:
        return {"fraction": self.fraction, "by": self.by, "seed": self.seed}

    def apply(self, table: pa.Table) -> pa.Table:
        hashes = hash_rows([Column(_as_on_spark(table[name])) for name in self.by], _OWN + self.seed)
        return table.filter(pa.array((hashes >> np.uint64(11)) * 2.0**-53 < self.fraction))

    def carrying(self, table: pa.Table, column: str) -> pa.Table:
        return self.apply(table)

    def before(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        return None if columns is None else columns | frozenset(self.by)

    def settled(self, schema: pa.Schema, storable: StorableField) -> Sample:
        require_keys(self.by, schema, "sample()")
        return self


def sample(fraction: float, by: object, seed: int, schema: pa.Schema, weight: str | None) -> Sample:
    """Check the arguments of `Flow.sample`, and make the transform; `weight` is the column of the weights."""
    if not isinstance(fraction, int | float) or isinstance(fraction, bool) or not 0 <= fraction <= 1:
        raise InvalidArgument(f"sample() takes a fraction from 0 to 1, such as 0.1, but was given {fraction!r}")
    require_seed(seed, "sample")
    if by is None and weight is not None:
        raise InvalidArgument(
            "sample() over rows that can be retracted needs by=: name columns that a row shares with its retraction, "
            "such as its id"
        )
    other = {field.name for field in schema if field.type == PANE}
    if weight is not None:
        other.add(weight)
    names = [name for name in schema.names if name not in other] if by is None else key_names(by)
    if bad := [name for name in names if name in other]:
        raise InvalidArgument(
            f"sample(by=) cannot be {bad[0]!r}, which a retraction does not share with its row: name other columns"
        )
    if not names:
        raise InvalidArgument("sample() needs a column by which it knows rows: name one or several in by=")
    return Sample(float(fraction), tuple(names), seed)


def _as_on_spark(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column in the type that Spark makes of its own; others are as they are."""
    plain = plain_type(column.type)
    return as_plain(column, plain).cast(_spark_like(plain), safe=False)


def _spark_like(kind: pa.DataType) -> pa.DataType:
    """The type with times in microseconds and decimals of 128 bits, also within others.

    >>> _spark_like(pa.struct([("t", pa.list_(pa.timestamp("s", "UTC")))]))
    StructType(struct<t: list<item: timestamp[us, tz=UTC]>>)
    """
    if pt.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pt.is_duration(kind):
        return pa.duration("us")
    if pt.is_time(kind):
        return pa.time64("us")
    if pt.is_decimal(kind) and kind.precision <= _MOST_DIGITS:
        return pa.decimal128(kind.precision, kind.scale)
    return with_inner_types(kind, _spark_like)


__all__ = ["Sample", "sample"]
