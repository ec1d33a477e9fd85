"""Rows in a form that a stateful operator passes to Spark without a look at each value: one array a column, no structs.

PySpark takes an Arrow array of plain values as it is, but converts timestamps, and makes Python objects of nested
values. So structs travel as their fields, and Spark puts them together again. Guarded by
tests/sparkops/test_flat_rows.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField

from ...combiners.rows.columns import flat
from ..inputs import column
from ..spark_private import arrow_of, spark_of
from ..sql_types import passed, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import Column

_PLAIN = (
    pt.is_boolean,
    pt.is_signed_integer,
    pt.is_float32,
    pt.is_float64,
    pt.is_string,
    pt.is_large_string,
    pt.is_binary,
    pt.is_large_binary,
    pt.is_date32,
    pt.is_decimal128,
    pt.is_timestamp,
    pt.is_duration,
)


@dataclass(frozen=True)
class FlatRows:
    """Tables of a schema as columns without structs."""

    schema: pa.Schema
    """The columns of the tables, in types that Spark reads."""
    fields: tuple[StructField, ...]
    """The columns of Spark in which the tables travel."""

    @classmethod
    def of(cls, schema: pa.Schema) -> FlatRows | None:
        """The form for tables of a schema; None if a column has lists, maps or another type that is not plain.

        Raises `TypeMismatch` if Spark does not have the type of a column.
        """
        spark_schema(schema)
        none = passed(schema.empty_table())
        if not all(map(_is_flat, none.schema.types)):
            return None
        kinds = [part.type for part in _arrays(none)]
        return cls(none.schema, tuple(StructField(f"c{i}", spark_of(kind)) for i, kind in enumerate(kinds)))

    def frame(self, table: pa.Table, **more: pa.Array) -> pd.DataFrame:
        """The columns in which a table travels, and more, as columns of pandas that hold Arrow's arrays."""
        made = {f.name: part for f, part in zip(self.fields, _arrays(passed(table)), strict=True)} | more
        return pd.DataFrame({name: pd.arrays.ArrowExtensionArray(part) for name, part in made.items()}, copy=False)

    def columns(self) -> list[Column]:
        """The columns of the tables, from those in which they travel."""
        names = (field.name for field in self.fields)
        return [_whole(field.type, names).alias(field.name) for field in self.schema]


def _arrays(table: pa.Table) -> list[pa.Array]:
    """The columns of a table, and those of its structs."""
    return [part for given in table.columns for part in _parts(flat(given))]


def _is_flat(kind: pa.DataType) -> bool:
    if pt.is_struct(kind):
        return kind.num_fields > 0 and all(_is_flat(field.type) for field in kind)
    return any(is_plain(kind) for is_plain in _PLAIN)


def _parts(array: pa.Array) -> Iterator[pa.Array]:
    """The arrays in which one array travels."""
    kind = array.type
    if pt.is_struct(kind):
        yield array.is_valid()
        for part in array.flatten():
            yield from _parts(part)
    elif pt.is_timestamp(kind) and kind.tz is not None:
        yield array.cast(pa.int64())
    else:
        yield array.cast(arrow_of(spark_of(kind)))


def _whole(kind: pa.DataType, names: Iterator[str]) -> Column:
    """The column that travelled in the next columns of these names."""
    given = column(next(names))
    if pt.is_struct(kind):
        parts = [_whole(field.type, names).alias(field.name) for field in kind]
        return F.when(given, F.struct(*parts))
    return F.timestamp_micros(given) if pt.is_timestamp(kind) and kind.tz is not None else given


__all__ = ["FlatRows"]
