"""Casts of columns to the types that all files have in common; a cast that would change a value is refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from ..combiners.expressions.time_kernels import replace_time_zone
from ..combiners.expressions.times import cast_time
from ..combiners.rows.decimal_casts import cast_exactly
from ..combiners.rows.plain_types import as_plain, decoded_inside, plain_type
from ..errors import TypeMismatch
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


def clocks_of(schema: pa.Schema) -> dict[str, str]:
    """The zones by whose clocks texts are read, by columns; raises for a time within a struct or a list.

    >>> import pyarrow as pa
    >>> clocks_of(pa.schema({"at": pa.timestamp("us", "Europe/Berlin"), "then": pa.timestamp("us", "UTC")}))
    {'at': 'Europe/Berlin'}
    """
    for field in schema:
        if (zone := _zone_inside(field.type)) is not None:
            raise TypeMismatch(
                f"column {field.name!r} of schema= has times of {zone} within it, and texts there are read as UTC: "
                "give pa.timestamp('us', 'UTC'), and compute x.dt.replace_time_zone() of it"
            )
    zones = {field.name: field.type.tz for field in schema if pt.is_timestamp(field.type)}
    return {name: zone for name, zone in zones.items() if zone not in (None, "UTC")}


def on_their_clocks(schema: pa.Schema, clocks: Mapping[str, str]) -> pa.Schema:
    """The schema with the zones of its instants."""
    return pa.schema(
        [
            f.with_type(pa.timestamp(f.type.unit, clocks[f.name]))
            if f.name in clocks and pt.is_timestamp(f.type)
            else f
            for f in schema
        ]
    )


def _zone_inside(kind: pa.DataType) -> str | None:
    """The zone of a time within a nested type that is not UTC."""
    for place in range(kind.num_fields):
        inner = kind.field(place).type
        if pt.is_timestamp(inner) and inner.tz not in (None, "UTC"):
            return str(inner.tz)
        if (zone := _zone_inside(inner)) is not None:
            return zone
    return None


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


def from_text(column: pa.ChunkedArray, to: pa.DataType, formats: Sequence[str | object] = ()) -> pa.ChunkedArray:
    """Parse texts of CSV and JSON. An instant without a zone is by the clocks of its type; without any, it is UTC.

    Digits after the sixth are dropped. `formats` has the formats of instants, of which the first that fits counts.
    """
    if not pt.is_timestamp(to):
        return cast_exactly(column, to)
    if formats:
        return _by_formats(column, to, formats)
    with suppress(pa.ArrowInvalid):
        return on_clocks(column, column.cast(pa.timestamp("us")), to)
    with suppress(pa.ArrowInvalid):
        return column.cast(UTC_MICROS).cast(to)
    column = pc.replace_substring_regex(column, _TOO_FINE, r"\1")
    zoned, none = pc.match_substring_regex(column, _ZONED), pa.scalar(None, pa.string())
    plain = pc.if_else(zoned, none, column)
    times = on_clocks(plain, plain.cast(pa.timestamp("us")), to)
    return pc.coalesce(times, pc.if_else(zoned, column, none).cast(UTC_MICROS).cast(to))


def _by_formats(column: pa.ChunkedArray, to: pa.DataType, formats: Sequence[str | object]) -> pa.ChunkedArray:
    """Parse texts by formats; raises for a text that fits none, and for a day that the calendar does not have."""
    times = pa.chunked_array([pa.nulls(len(column), to)])
    for form in formats:
        read = cast_time(column, form if isinstance(form, str) else "")
        if not isinstance(form, str):
            zoned = pc.match_substring_regex(column, _ZONED)
            read = pc.if_else(zoned, read.cast(to), _on_clocks(read, to))
        else:
            read = read.cast(to) if "%z" in form else _on_clocks(read, to)
        times = pc.coalesce(times, read)
    _require_times(column, times)
    return times


def on_clocks(texts: pa.ChunkedArray, times: pa.ChunkedArray, to: pa.DataType) -> pa.ChunkedArray:
    """Times without a zone as those of a type, by its clocks; raises for one of the texts that these skip."""
    found = _on_clocks(times, to)
    _require_times(texts, found)
    return found


def _on_clocks(times: pa.ChunkedArray, to: pa.DataType) -> pa.ChunkedArray:
    if to.tz in (None, "UTC"):
        return times.cast(to)
    placed = replace_time_zone(times, to.tz).cast(to)
    return pa.chunked_array([placed]) if isinstance(times, pa.ChunkedArray) else placed


def _require_times(texts: pa.ChunkedArray, times: pa.ChunkedArray) -> None:
    if times.null_count > texts.null_count:
        wrong = texts.filter(pc.and_(texts.is_valid(), times.is_null()))
        raise pa.ArrowInvalid(f"Failed to parse string: '{wrong[0]}' as a scalar of type {times.type}")


def with_times(table: pa.Table) -> pa.Schema:
    """The schema of the table, in which a column of texts has the type of instants if all its texts are instants."""
    fields = []
    for field, column in zip(table.schema, table.columns, strict=True):
        times = pt.is_string(field.type) and pc.all(pc.match_substring_regex(column, _TIME)).as_py()
        fields.append(field.with_type(UTC_MICROS) if times else field)
    return pa.schema(fields)
