"""Rows in a form that a stateful operator passes to Spark without a look at each value: one array a column, no structs.

PySpark takes an Arrow array of plain values as it is, but converts timestamps, and makes Python objects of nested
values. So structs travel as their fields, and Spark puts them together again. Guarded by
tests/sparkops/routes/test_flat_rows.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType, StructField

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


BITS = 62
"""So many bits of small numbers are in one column."""


Few: TypeAlias = Mapping[tuple[str, ...], Sequence[str] | Sequence[int]]
"""By the names of a column and of the fields down to a plain one, the few values that it has, beside null."""


@dataclass(frozen=True)
class FlatRows:
    """Tables of a schema as columns, of which those with few values are together in one."""

    schema: pa.Schema
    """The columns of the tables, in types that Spark reads."""
    small: tuple[StructField, ...]
    """The columns of small numbers: where structs and booleans are not null, where booleans are true, and the numbers
    of values that are one of a few."""
    values: tuple[StructField, ...]
    """The columns of all other values."""
    few: Few

    @classmethod
    def of(cls, schema: pa.Schema, few: Few = MappingProxyType({})) -> FlatRows | None:
        """The form for tables of a schema; None if a column has lists, maps or another type that is not plain.

        Raises `TypeMismatch` if Spark does not have the type of a column.
        """
        spark_schema(schema)
        none = passed(schema.empty_table())
        if not all(map(_is_flat, none.schema.types)):
            return None
        kinds = [values.type for values in _values(none, few)]
        small = tuple(StructField(f"b{i}", LongType()) for i in range(len(_joined(none, few))))
        values = tuple(StructField(f"c{i}", spark_of(kind)) for i, kind in enumerate(kinds))
        return cls(schema=none.schema, small=small, values=values, few=few)

    @property
    def fields(self) -> tuple[StructField, ...]:
        """The columns of Spark in which the tables travel."""
        return (*self.small, *self.values)

    def frame(self, table: pa.Table, **more: pa.Array) -> pd.DataFrame:
        """The columns in which a table travels, and more, as columns of pandas that hold Arrow's arrays."""
        table = passed(table)
        arrays = (*_joined(table, self.few), *_values(table, self.few))
        made = {f.name: part for f, part in zip(self.fields, arrays, strict=True)} | more
        return pd.DataFrame({name: pd.arrays.ArrowExtensionArray(part) for name, part in made.items()}, copy=False)

    def columns(self) -> list[Column]:
        """The columns of the tables, from those in which they travel."""
        flat_columns = _FlatColumns(self)
        return [flat_columns.column((field.name,), field.type).alias(field.name) for field in self.schema]


def _is_flat(kind: pa.DataType) -> bool:
    if pt.is_struct(kind):
        return kind.num_fields > 0 and all(_is_flat(field.type) for field in kind)
    return any(is_plain(kind) for is_plain in _PLAIN)


def _arrays(table: pa.Table) -> Iterator[tuple[tuple[str, ...], pa.Array]]:
    """The columns of a table, and those of its structs, each struct before its own; with the names down to each."""
    for name, values in zip(table.column_names, table.columns, strict=True):
        yield from _with_parts((name,), flat(values))


def _with_parts(path: tuple[str, ...], array: pa.Array) -> Iterator[tuple[tuple[str, ...], pa.Array]]:
    yield path, array
    if pt.is_struct(array.type):
        for field, part in zip(array.type, array.flatten(), strict=True):
            yield from _with_parts((*path, field.name), part)


def _joined(table: pa.Table, few: Few) -> list[pa.Array]:
    """The small numbers of a table side by side, many in one number."""
    joined: list[np.ndarray] = []
    at = BITS
    for width, numbers in _small(table, few):
        if at + width > BITS:
            joined.append(np.zeros(table.num_rows, np.int64))
            at = 0
        joined[-1] |= np.left_shift(numbers, at, dtype=np.int64)
        at += width
    return [pa.array(numbers) for numbers in joined]


def _small(table: pa.Table, few: Few) -> Iterator[tuple[int, np.ndarray | int]]:
    """The small numbers of a table, or one for all rows, each with the bits that it takes."""
    for path, array in _arrays(table):
        if pt.is_struct(array.type) or pt.is_boolean(array.type):
            yield 1, _bits(array.is_valid()) if array.null_count else 1
        if pt.is_boolean(array.type):
            yield 1, _bits(array)
        if path in few:
            numbers = _numbers(array, few[path])
            if few[path]:
                yield len(few[path]).bit_length(), numbers


def _bits(where: pa.BooleanArray) -> np.ndarray:
    return np.asarray(where.cast(pa.int8()).fill_null(0))


def _numbers(array: pa.Array, few: Sequence[object]) -> np.ndarray | int:
    """The number of each value among a few, from 1 on; 0 for null."""
    if array.null_count == len(array):
        return 0
    places = pc.index_in(array, value_set=pa.array(few, array.type))
    if places.null_count != array.null_count:
        raise ValueError(f"{set(array.drop_null().unique().to_pylist()) - set(few)} are none of {few}")
    return np.asarray(places.fill_null(-1)) + 1


def _values(table: pa.Table, few: Few) -> Iterator[pa.Array]:
    """The arrays of all other values."""
    for path, array in _arrays(table):
        kind = array.type
        if not pt.is_struct(kind) and not pt.is_boolean(kind) and path not in few:
            zoned = pt.is_timestamp(kind) and kind.tz is not None
            yield array.cast(pa.int64() if zoned else arrow_of(spark_of(kind)))


class _FlatColumns:
    """The columns of a flat row, read in their order."""

    def __init__(self, form: FlatRows) -> None:
        self._small, self._values, self._few = iter(form.small), iter(form.values), form.few
        self._at = BITS

    def column(self, path: tuple[str, ...], kind: pa.DataType) -> Column:
        """The next column, which is of this type."""
        if pt.is_struct(kind):
            is_there = self._next(1)(1)
            parts = (self.column((*path, field.name), field.type).alias(field.name) for field in kind)
            return F.when(is_there, F.struct(*parts))
        if pt.is_boolean(kind):
            return F.when(self._next(1)(1), self._next(1)(1))
        if path in self._few:
            # A value that is none of them would be lost: `frame` looks for one.
            return self._one_of(self._few[path]).cast(spark_of(kind))
        value = column(next(self._values).name)
        return F.timestamp_micros(value) if pt.is_timestamp(kind) and kind.tz is not None else value

    def _one_of(self, few: Sequence[object]) -> Column:
        choice = F.lit(None)
        if few:
            is_number = self._next(len(few).bit_length())
            for number, value in enumerate(few, 1):
                choice = F.when(is_number(number), value).otherwise(choice)
        return choice

    def _next(self, width: int) -> Callable[[int], Column]:
        """A function that gives where the next small number is equal to another."""
        if self._at + width > BITS:
            self._joined, self._at = column(next(self._small).name), 0
        joined, at = self._joined, self._at
        self._at += width
        return lambda number: joined.bitwiseAND(F.lit((1 << width) - 1 << at)) == F.lit(number << at)


__all__ = ["FlatRows"]
