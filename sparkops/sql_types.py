"""Types of Spark from types of Arrow and back, and the rows of Arrow tables as those of Spark."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql.types import DataType, StructField, StructType

from ..combiners import Combiner
from ..combiners.combiner import Bound
from ..errors import InvalidArgument, TypeMismatch, UnknownColumn
from .spark_private import arrow_of, spark_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AnySchema: TypeAlias = "DataFrame | StructType | pa.Schema | str"
"""The types of columns: a DataFrame, its schema, an Arrow schema, or text such as "score bigint"."""


_DIGITS = 38
"""The most digits of a decimal of Spark."""


def spark_type(kind: pa.DataType, what: str) -> DataType:
    """Spark's type for an Arrow type; the error names `what` if there is none."""
    try:
        if pa.types.is_decimal(kind) and kind.precision > _DIGITS:
            raise TypeError
        return spark_of(kind)
    except TypeError:
        raise TypeMismatch(f"{what} is {kind} in Arrow, but Spark has no such type: cast it") from None


def arrow_type(kind: DataType, what: str) -> pa.DataType:
    """The Arrow type for a type of Spark, timestamps in UTC; the error names `what` if there is none."""
    try:
        return arrow_of(kind)
    except TypeError:
        raise TypeMismatch(f"{what} is {kind.simpleString()}, which Spark cannot pass as Arrow: cast it") from None


def spark_schema(schema: AnySchema) -> StructType:
    """The Spark schema for any form of `AnySchema`."""
    schema = getattr(schema, "schema", schema)
    if isinstance(schema, StructType):
        return schema
    if isinstance(schema, pa.Schema):
        return StructType([StructField(f.name, spark_type(f.type, f"column {f.name!r}")) for f in schema])
    if isinstance(schema, str):
        try:
            return StructType.fromDDL(schema)
        except Exception as error:
            if type(error).__name__ not in ("ParseException", "PySparkParseException"):
                raise
            raise InvalidArgument(
                f"schema= takes text such as 'user string, score bigint', but is {schema!r}"
            ) from None
    raise InvalidArgument(f"schema= takes df.schema or text such as 'user string, score bigint', but is {schema!r}")


def bind(who: str, combiner: Combiner, schema: AnySchema | None) -> Bound:
    """Bind the combiner to the Arrow types in which Spark passes its input columns.

    Columns that the combiner does not read are ignored, so they may have any type.
    """
    require_combiner(who, combiner)
    try:
        combiner.bind(pa.schema([]))
    except UnknownColumn as error:
        if schema is None:
            raise InvalidArgument(
                f"{who}({combiner!r}) needs the type of {error.column!r} before it sees any data: "
                f"give it df.schema, or text such as schema='{error.column} bigint'"
            ) from None
    fields: list[pa.Field] = []
    strange: dict[str, TypeMismatch] = {}
    for field in StructType([]) if schema is None else spark_schema(schema):
        try:
            fields.append(pa.field(field.name, arrow_type(field.dataType, f"column {field.name!r}")))
        except TypeMismatch as error:
            strange[field.name] = error
    try:
        return combiner.bind(combiner.bind(pa.schema(fields)).schema)
    except UnknownColumn as error:
        if error.column in strange:
            raise strange[error.column] from None
        raise


def require_combiner(who: str, combiner: object) -> None:
    """Raise `InvalidArgument` for all but a combiner."""
    if not isinstance(combiner, Combiner):
        raise InvalidArgument(f"{who} takes a combiner such as Sum('score'), but was given {combiner!r}")


def conform(array: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """The column as one array of exactly this type, since Spark names inner fields of types in its own way."""
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else pa.concat_arrays(array.chunks)
    return array if array.type.equals(kind) else array.cast(kind)


def passed(table: pa.Table) -> pa.Table:
    """The table in types that Spark reads: it has timestamps of one unit, decimals of one width, and no lists or
    bytes of a fixed size.

    >>> import pyarrow as pa
    >>> passed(pa.table({"at": pa.array([5], pa.timestamp("s"))})).schema.field("at").type
    TimestampType(timestamp[us])
    """
    for at, field in enumerate(table.schema):
        if (kind := _passed(field.type)) == field.type:
            continue
        try:
            column = table.column(at).cast(kind)
        except pa.ArrowInvalid as error:
            raise TypeMismatch(
                f"column {field.name!r} is {field.type}, which Spark has as {kind}: {error}: cast it before"
            ) from None
        table = table.set_column(at, field.name, column)
    return table


@cache
def _passed(kind: pa.DataType) -> pa.DataType:
    return kind if _is_read(kind) else arrow_of(spark_of(kind))


def _is_read(kind: pa.DataType) -> bool:
    """True if Spark reads values of the type."""
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return bool(kind.unit == "us")
    if pa.types.is_time64(kind):
        return bool(kind.unit == "ns")
    if pa.types.is_decimal(kind):
        return bool(pa.types.is_decimal128(kind))
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_fixed_size_list(kind):
        return False
    return all(_is_read(kind.field(i).type) for i in range(kind.num_fields))


def input_fields(bound: Bound) -> StructType:
    """The input columns of a bound combiner as a Spark schema."""
    return StructType([StructField(f.name, spark_type(f.type, f"column {f.name!r}")) for f in bound.schema])


def ddl(schema: StructType) -> str:
    """The text of a schema, such as "score bigint", which `spark_schema` reads.

    >>> ddl(spark_schema(pa.schema({"score": pa.int64(), "a b": pa.list_(pa.string())})))
    'score bigint, `a b` array<string>'
    """
    names = [f.name if f.name.isidentifier() and f.name.isascii() else f"`{f.name.replace('`', '``')}`" for f in schema]
    return ", ".join(f"{name} {f.dataType.simpleString()}" for name, f in zip(names, schema, strict=True))


def spark_struct(fields: Iterable[pa.Field], what: str) -> StructType:
    """A struct of Arrow fields as Spark's type."""
    return StructType([StructField(f.name, spark_type(f.type, f"{f.name!r} of {what}")) for f in fields])


def dataframe_of(spark: SparkSession, table: pa.Table, schema: StructType | None = None) -> DataFrame:
    """All rows of a table as a DataFrame. Spark itself reads them up to the first chunk without rows."""
    full = [_copied(batch) for batch in table.to_batches() if batch.num_rows]
    if not full:  # Spark takes no struct with times that has no chunk at all
        full = [pa.RecordBatch.from_arrays([pa.nulls(0, kind) for kind in table.schema.types], schema=table.schema)]
    return spark.createDataFrame(pa.Table.from_batches(full, table.schema), schema)


def _copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with copies of columns of lists that are slices, which Spark does not take if they have nulls."""
    if not any(column.offset and pa.types.is_nested(column.type) for column in batch.columns):
        return batch
    places = pa.array(np.arange(batch.num_rows))
    columns = [column.take(places) if pa.types.is_nested(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def scalar(result: pa.Scalar) -> Any:
    """A result as an Arrow UDF must return it: Spark cannot read a null with a type."""
    return result if result.is_valid else None
