"""Casts of columns to the types that all files have in common; a cast that would change a value is refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from ..combiners.rows.decimal_casts import cast_exactly
from ..combiners.rows.plain_types import as_plain, decoded_inside, plain_type
from ..windows.times import UTC_MICROS

_ZONED = r"[T ]\d{2}.*(Z|[+-]\d{2}(:?\d{2})?)$"
_TIME = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:?\d{2})?$"
_TOO_FINE = r"(\.\d{6})\d+"


def standard(kind: pa.DataType) -> pa.DataType:
    """The type to which a column of a file is read.

    Instants are microseconds UTC, dates are days. Texts and lists have the types of Spark: not large, not encoded.
    A type that extends another, such as that of UUIDs, is the other one.

    >>> import pyarrow as pa
    >>> from uncombine.files.conform import standard
    >>> standard(pa.timestamp("ns")), standard(pa.dictionary(pa.int8(), pa.large_string()))
    (TimestampType(timestamp[us, tz=UTC]), DataType(string))
    """
    if pt.is_timestamp(kind):
        return UTC_MICROS
    if pt.is_date64(kind):
        return pa.date32()
    if pt.is_dictionary(kind):
        return standard(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return standard(kind.storage_type)
    if pt.is_large_string(kind) or pt.is_string_view(kind) or pt.is_null(kind):
        return pa.string()
    if pt.is_large_binary(kind) or pt.is_binary_view(kind):
        return pa.binary()
    if pt.is_float16(kind):
        return pa.float32()
    if pt.is_struct(kind):
        return pa.struct([field.with_type(standard(field.type)) for field in kind])
    if pt.is_map(kind):
        return pa.map_(standard(kind.key_type), standard(kind.item_type))
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(standard(kind.value_type)))
    return kind


def standard_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of the tables that are read from files of this schema."""
    return pa.schema([pa.field(field.name, standard(field.type), field.nullable) for field in schema])


def untyped(fields: Iterable[pa.Field], above: str = "") -> Iterator[str]:
    """The fields, by their paths, whose types are not known, since they are null wherever they were looked at.

    >>> import pyarrow as pa
    >>> from uncombine.files.conform import untyped
    >>> list(untyped(pa.schema({"a": pa.null(), "b": pa.struct({"c": pa.list_(pa.null()), "d": pa.int64()})})))
    ['a', 'b.c']
    """
    for field in fields:
        kind, path = field.type, f"{above}{field.name}"
        while pt.is_list(kind):
            kind = kind.value_type
        if pt.is_null(kind):
            yield path
        elif pt.is_struct(kind):
            yield from untyped(kind, f"{path}.")


def conform(column: pa.ChunkedArray, to: pa.DataType) -> pa.ChunkedArray:
    """Cast the column to the type `to`; raise an Arrow error if that would change a value or its meaning."""
    kind = column.type
    if kind == to:
        return column
    if pt.is_dictionary(kind):
        return conform(as_plain(column, plain_type(kind.value_type)), to)
    if isinstance(kind, pa.BaseExtensionType):
        return conform(pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type), to)
    if pt.is_timestamp(kind) and pt.is_timestamp(to):
        return _instants(column, to)
    if pt.is_integer(kind) and (pt.is_integer(to) or pt.is_floating(to)):
        return column.cast(to)
    if pt.is_floating(kind) and pt.is_floating(to):
        return _narrowed(column, to)
    if not _alike(kind, to):
        raise pa.ArrowTypeError("the types hold different kinds of values")
    return cast_exactly(decoded_inside(column), to)


def _alike(kind: pa.DataType, to: pa.DataType) -> bool:
    """True if a safe cast of Arrow between the types keeps the meaning of the values."""
    families = (
        lambda t: pt.is_string(t) or pt.is_large_string(t) or pt.is_string_view(t),
        lambda t: pt.is_binary(t) or pt.is_large_binary(t) or pt.is_binary_view(t) or pt.is_fixed_size_binary(t),
        pt.is_date,
        pt.is_time,
        pt.is_duration,
        pt.is_decimal,
        lambda t: pt.is_list(t) or pt.is_large_list(t) or pt.is_fixed_size_list(t),
        pt.is_struct,
        pt.is_map,
    )
    whole = pt.is_integer(kind) and pt.is_decimal(to)
    return pt.is_null(kind) or whole or any(of(kind) and of(to) for of in families)


def _narrowed(column: pa.ChunkedArray, to: pa.DataType) -> pa.ChunkedArray:
    """Cast floats to another width; raise for a value that does not fit, which Arrow's cast rounds."""
    cast = column.cast(to)
    if to.bit_width < column.type.bit_width:
        same = pc.or_(pc.equal(cast.cast(column.type), column), pc.is_nan(column))
        if not pc.all(same, min_count=0).as_py():
            raise pa.ArrowInvalid("values would be rounded")
    return cast


def _instants(column: pa.ChunkedArray, to: pa.DataType) -> pa.ChunkedArray:
    if column.type.unit == "ns" and to.unit != "ns" and len(column):
        # Arrow's cast drops digits, which moves times before 1970 to later ones.
        whole = column.cast(pa.int64())
        if (pc.min(whole).as_py() or 0) < 0:
            rest = pc.subtract(whole, pc.multiply(pc.divide(whole, 1000), 1000))
            whole = pc.subtract(whole, pc.if_else(pc.less(rest, 0), pc.add(rest, 1000), rest))
            column = whole.cast(column.type)
        return column.cast(pa.timestamp(to.unit, column.type.tz), safe=False).cast(to)
    return column.cast(to)


def from_text(column: pa.ChunkedArray, to: pa.DataType) -> pa.ChunkedArray:
    """Parse texts of CSV and JSON. An instant without a zone is UTC; digits after the sixth are dropped."""
    if not pt.is_timestamp(to):
        return cast_exactly(column, to)
    for kind in (pa.timestamp("us"), UTC_MICROS):
        try:
            return column.cast(kind).cast(to)
        except pa.ArrowInvalid:
            continue
    column = pc.replace_substring_regex(column, _TOO_FINE, r"\1")
    zoned, none = pc.match_substring_regex(column, _ZONED), pa.scalar(None, pa.string())
    plain = pc.if_else(zoned, none, column).cast(pa.timestamp("us")).cast(to)
    return pc.coalesce(plain, pc.if_else(zoned, column, none).cast(UTC_MICROS).cast(to))


def with_times(table: pa.Table) -> pa.Schema:
    """The schema of the table, in which a column of texts has the type of instants if all its texts are instants."""
    fields = []
    for field, column in zip(table.schema, table.columns, strict=True):
        times = pt.is_string(field.type) and pc.all(pc.match_substring_regex(column, _TIME)).as_py()
        fields.append(field.with_type(UTC_MICROS) if times else field)
    return pa.schema(fields)
