"""Equality of two columns of Spark: null equals null, NaN equals NaN, and floats are equal within a tolerance.

Guarded by tests/sparkops/comparison/test_spark_comparison.py.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import functions as F  # noqa: N812

if TYPE_CHECKING:
    from pyspark.sql import Column


def same_values(one: Column, other: Column, kind: pa.DataType, tolerance: float) -> Column:
    """True where two columns of one type have the same value, as `equal_values` says it of arrays."""
    if not tolerance or not _has_floats(kind):
        return one.eqNullSafe(other)
    if pt.is_floating(kind):
        return one.eqNullSafe(other) | F.coalesce(_near(one, other, tolerance), F.lit(False))
    inner = _same_lists if pt.is_list(kind) else _same_structs
    both = one.isNotNull() & other.isNotNull()
    return (one.isNull() & other.isNull()) | (both & F.coalesce(inner(one, other, kind, tolerance), F.lit(False)))


def _near(one: Column, other: Column, tolerance: float) -> Column:
    x, y = one.cast("double"), other.cast("double")
    infinite = F.lit(float("inf"))  # to Spark, NaN is greater
    largest = F.greatest(F.lit(1.0), F.abs(x), F.abs(y))
    return (F.abs(x) < infinite) & (F.abs(y) < infinite) & (F.abs(x - y) <= F.lit(tolerance) * largest)


def _same_lists(one: Column, other: Column, kind: pa.DataType, tolerance: float) -> Column:
    same = partial(same_values, kind=kind.value_type, tolerance=tolerance)
    parts = F.zip_with(one, other, lambda x, y: same(x, y))
    return (F.size(one) == F.size(other)) & F.forall(parts, lambda part: part)


def _same_structs(one: Column, other: Column, kind: pa.DataType, tolerance: float) -> Column:
    out = F.lit(True)
    for part in kind:
        out &= same_values(one.getField(part.name), other.getField(part.name), part.type, tolerance)
    return out


def _has_floats(kind: pa.DataType) -> bool:
    return pt.is_floating(kind) or any(_has_floats(kind.field(place).type) for place in range(kind.num_fields))


__all__ = ["same_values"]
