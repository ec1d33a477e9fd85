"""A sample of rows: a hash of values decides which rows are in it, so that a row and its retraction share their fate.

Guarded by tests/panes/test_sample.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..combiners.column_names import key_names
from ..combiners.rows.columns import Column
from ..combiners.rows.hashing import hash_rows, require_seed
from ..errors import InvalidArgument
from .grouping.pane_columns import PANE
from .rows.options import require_keys
from .transforms import StorableField, Transform

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
        hashes = hash_rows([Column(_of_one_unit(table[name])) for name in self.by], _OWN + self.seed)
        return table.filter(pa.array((hashes >> np.uint64(11)) * 2.0**-53 < self.fraction))

    def carrying(self, table: pa.Table, column: str) -> pa.Table:
        return self.apply(table)

    def before(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        return None if columns is None else columns | frozenset(self.by)

    def settled(self, schema: pa.Schema, storable: StorableField) -> Sample:
        require_keys(self.by, schema, "sample()")
        return self


def sample(
    fraction: float, by: object, seed: int, schema: pa.Schema, weight: str | None, arrival: Collection[str | None]
) -> Sample:
    """Check the arguments of `Flow.sample`, and make the transform.

    `weight` is the column of the weights, and `arrival` has the columns of processing times.
    """
    if not isinstance(fraction, int | float) or isinstance(fraction, bool) or not 0 <= fraction <= 1:
        raise InvalidArgument(f"sample() takes a fraction from 0 to 1, such as 0.1, but was given {fraction!r}")
    require_seed(seed, "sample")
    other = {weight, *(field.name for field in schema if field.type == PANE)}
    if by is None:
        names = [name for name in schema.names if name not in other]
        if weight is not None and (times := [name for name in names if name in arrival]):
            raise InvalidArgument(
                f"sample() would not know a row by its retraction, which has another processing time in {times[0]!r}: "
                f"give by=, or write drop({times[0]!r}) before it"
            )
    else:
        names = key_names(by)
        if bad := [name for name in names if name in other]:
            raise InvalidArgument(
                f"sample(by=) cannot be {bad[0]!r}, which a retraction does not share with its row: name other columns"
            )
    if not names:
        raise InvalidArgument("sample() needs a column by which it knows rows: name one or several in by=")
    return Sample(float(fraction), tuple(names), seed)


def _of_one_unit(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times in microseconds, which Spark makes of all units; other columns as they are."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz), safe=False)
    return column.cast(pa.duration("us"), safe=False) if pa.types.is_duration(kind) else column


__all__ = ["Sample", "sample"]
