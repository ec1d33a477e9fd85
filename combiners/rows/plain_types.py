"""Columns as the plain types of Arrow: text, bytes and lists that are neither large nor views, decimals of 128 bits.

Large and view types hold the same values in other layouts. Combiners and keys use one layout of each, so that equal
values compare as equal, and states and results have the same type for every layout of the input. Of dictionaries only
those of texts stay, since others take no less memory. Their indices are wide enough for the values of several together.
Those inside lists, structs and maps are decoded, since Arrow cannot join or cast all of them there.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as pt

from ...errors import OutOfRange

_UNLIKE = frozenset(
    kind.id
    for kind in (
        pa.large_string(), pa.string_view(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int8(), pa.int8())
    )
)  # fmt: skip
"""Types without fields that are not plain, or may not be."""


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The plain type with the same values as this type.

    >>> import pyarrow as pa
    >>> plain_type(pa.large_list(pa.string_view())), plain_type(pa.binary_view()), plain_type(pa.int64())
    (ListType(list<item: string>), DataType(binary), DataType(int64))
    """
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if kind.num_fields == 0 and kind.id not in _UNLIKE:
        if pt.is_decimal(kind) and kind.bit_width < 128:  # Arrow cannot sort them, nor make dictionaries of them
            return pa.decimal128(kind.precision, kind.scale)
        return kind
    if pt.is_large_string(kind) or pt.is_string_view(kind):
        return pa.string()
    if pt.is_large_binary(kind) or pt.is_binary_view(kind):
        return pa.binary()
    if pt.is_dictionary(kind):
        value = plain_type(kind.value_type)
        return pa.dictionary(pa.int32(), value) if value == kind.value_type and is_text(value) else value
    return with_inner_types(kind, _inner_type)


def with_inner_types(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """A list, struct or map with the types within it changed; lists are not large. Other types are as they are.

    >>> import pyarrow as pa
    >>> with_inner_types(pa.large_list(pa.int8()), lambda inner: pa.int64())
    ListType(list<item: int64>)
    """

    def changed(field: pa.Field) -> pa.Field:
        return field.with_type(change(field.type))

    if pt.is_list(kind) or pt.is_large_list(kind):
        return pa.list_(changed(kind.value_field))
    if pt.is_fixed_size_list(kind):
        return pa.list_(changed(kind.value_field), kind.list_size)
    if pt.is_struct(kind):
        return pa.struct([changed(field) for field in kind])
    if pt.is_map(kind):
        return pa.map_(changed(kind.key_field), changed(kind.item_field), kind.keys_sorted)
    return kind


def is_text(kind: pa.DataType) -> bool:
    """True if values of a type are strings or bytes that Arrow stores one after the other."""
    return any(
        is_kind(kind)
        for is_kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    )


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(plain_type(field.type))


def _inner_type(kind: pa.DataType) -> pa.DataType:
    plain = plain_type(kind)
    return plain.value_type if pt.is_dictionary(plain) else plain


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with plain types."""
    if all(plain_type(kind) is kind for kind in schema.types):
        return schema
    return pa.schema([_plain_field(field) for field in schema], metadata=schema.metadata)


def plain_table(table: pa.Table) -> pa.Table:
    """The table with plain types; a column of text of more than 2 GiB needs several chunks."""
    schema = plain_schema(table.schema)
    if schema.equals(table.schema) and not any(map(_has_null_value, table.columns)):
        return table
    with text_room:
        return pa.table([as_plain(*pair) for pair in zip(table.columns, schema.types, strict=True)], schema=schema)


def as_plain(column: pa.Array | pa.ChunkedArray, to: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """The column in its plain type; a dictionary has no null among its values, since Arrow cannot join such ones."""
    column = decoded_inside(column)
    if not pt.is_dictionary(column.type) or not (_is_uncastable(column.type.value_type) or _has_null_value(column)):
        return column.cast(to)
    if isinstance(column, pa.Array):
        column = decoded(column)
    else:
        column = pa.chunked_array([decoded(chunk) for chunk in column.chunks or [pa.nulls(0, column.type)]])
    return column.dictionary_encode().cast(to) if pt.is_dictionary(to) else column.cast(to)


def _has_null_value(column: pa.Array | pa.ChunkedArray) -> bool:
    """True for a dictionary that has null among its values."""
    chunks = [column] if isinstance(column, pa.Array) else column.chunks
    return pt.is_dictionary(column.type) and any(chunk.dictionary.null_count for chunk in chunks)


def decoded(column: pa.DictionaryArray) -> pa.Array:
    """The values of a dictionary; those of views are plain, since Arrow cannot decode them.

    >>> import pyarrow as pa
    >>> decoded(pa.DictionaryArray.from_arrays([0, None], pa.array(["a"], pa.string_view()))).to_pylist()
    ['a', None]
    """
    kind = column.type.value_type
    if _is_uncastable(kind):
        values = decoded_inside(column.dictionary).cast(plain_type(kind))
        column = pa.DictionaryArray.from_arrays(column.indices, values, safe=False)
    return column.dictionary_decode()


_INSIDE = (pt.is_struct, pt.is_list, pt.is_large_list, pt.is_fixed_size_list, pt.is_map)
"""The types inside which dictionaries are decoded."""


def decoded_inside(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Lists, structs and maps without dictionaries inside; any other column as it is.

    >>> import pyarrow as pa
    >>> lists = pa.ListArray.from_arrays([0, 2], pa.array(["a", "a"]).dictionary_encode())
    >>> decoded_inside(lists).type
    ListType(list<item: string>)
    """
    if not pt.is_nested(column.type) or not _has_dictionary(column.type):
        return column
    if isinstance(column, pa.Array):
        return _decoded_inside(column)
    chunks = column.chunks or [pa.nulls(0, column.type)]
    return pa.chunked_array([_decoded_inside(chunk) for chunk in chunks])


def _decoded_inside(array: pa.Array) -> pa.Array:
    kind = array.type
    if pt.is_dictionary(kind):
        return _decoded_inside(decoded(array))
    if not _has_dictionary(kind):
        return array
    if pt.is_struct(kind):
        parts = [_decoded_inside(array.field(i)) for i in range(kind.num_fields)]
        fields = [field.with_type(part.type) for field, part in zip(kind, parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=array.is_null())
    values = _decoded_inside(array.values)  # of the whole memory of which the array may be a slice
    if pt.is_map(kind):
        to = pa.map_(*values.type, kind.keys_sorted)
    else:
        value = kind.value_field.with_type(values.type)
        to = pa.list_(value, kind.list_size) if pt.is_fixed_size_list(kind) else pa.list_(value)
        to = pa.large_list(value) if pt.is_large_list(kind) else to
    own = array.buffers()[: 1 if pt.is_fixed_size_list(kind) else 2]
    return pa.Array.from_buffers(to, len(array), own, offset=array.offset, children=[values])


def _has_dictionary(kind: pa.DataType) -> bool:
    """True for a dictionary, and for lists, structs and maps that have one inside."""
    if not any(is_kind(kind) for is_kind in _INSIDE):
        return bool(pt.is_dictionary(kind))
    return any(_has_dictionary(kind.field(i).type) for i in range(kind.num_fields))


def _is_view(kind: pa.DataType) -> bool:
    return bool(pt.is_string_view(kind) or pt.is_binary_view(kind))


def _is_uncastable(kind: pa.DataType) -> bool:
    """True for values of a dictionary that Arrow cannot cast, or cannot all decode.

    Intervals of pandas have an extension type.
    """
    return _is_view(kind) or isinstance(kind, pa.BaseExtensionType) or pt.is_nested(kind)


_OVERFLOWS = ("overflow", "capacity", "cannot contain more than", "not in range: -2147483648")


class _TextRoom:
    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, pa.ArrowInvalid | pa.ArrowCapacityError):
            return
        reason = str(error).partition("\n")[0]
        if any(words in reason for words in _OVERFLOWS):
            raise OutOfRange(
                "the values of one column of keys, state or results take more than 2 GiB (or 2**31 elements), which "
                f"Arrow's column cannot hold: take fewer groups at a time, or a combiner that keeps less ({reason})"
            ) from None


text_room = _TextRoom()
"""Raises `OutOfRange` instead of Arrow's error for a column too long for its 32-bit offsets."""
