"""The columns of the data files of a Delta table as those of the table: by physical names, with nulls for added fields.

Guarded by tests/lakehouse/test_delta_formats.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from ..combiners.rows.columns import flat
from ..combiners.rows.plain_types import decoded_inside
from ..errors import InvalidArgument
from ..files.conform import conform, from_text

_PHYSICAL = "delta.columnMapping.physicalName"


@dataclass(frozen=True)
class Node:
    """The name of a column or a field in data files, and the fields within it."""

    physical: str
    inner: Mapping[str, Node]
    """The fields of a struct by their names; of a list "element", of a map "key" and "value"."""


def nodes_of(schema: Mapping[str, Any]) -> dict[str, Node]:
    """The columns of a schema as the log of a table has it, by their names."""
    return {
        field["name"]: Node(field.get("metadata", {}).get(_PHYSICAL, field["name"]), _inner(field["type"]))
        for field in schema["fields"]
    }


def _inner(kind: Any) -> dict[str, Node]:
    if not isinstance(kind, Mapping):
        return {}
    if kind["type"] == "struct":
        return nodes_of(kind)
    parts = {"array": {"element": "elementType"}, "map": {"key": "keyType", "value": "valueType"}}[kind["type"]]
    return {name: Node(name, _inner(kind[part])) for name, part in parts.items()}


def column_of(column: pa.ChunkedArray, node: Node, to: pa.DataType) -> pa.ChunkedArray:
    """A column of a file in its type; raises an Arrow error if a value would change."""
    if not pt.is_nested(to):
        return conform(column, to)
    array = flat(decoded_inside(column))
    return pa.chunked_array([_fitted(array, node, to)], to)


def _fitted(array: pa.Array, node: Node, to: pa.DataType) -> pa.Array:
    kind = array.type
    if pt.is_struct(to) and pt.is_struct(kind):
        own = {kind.field(place).name: place for place in range(kind.num_fields)}
        children = []
        for field in to:
            inner = node.inner[field.name]
            if inner.physical in own:
                child = array.flatten()[own[inner.physical]]  # with the nulls of the struct itself
                children.append(_fitted(child, inner, field.type))
            else:
                children.append(pa.nulls(len(array), field.type))
        if not children:
            return array.cast(to)
        fields = [field.with_nullable(True) for field in to]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null()).cast(to)
    if pt.is_map(to) and pt.is_map(kind):
        keys = _fitted(array.keys, node.inner["key"], to.key_type)
        items = _fitted(array.items, node.inner["value"], to.item_type)
        made = pa.MapArray.from_arrays(_offsets(array), keys, items)
        return _nulled(made, array).cast(to)
    if pt.is_list(to) and (pt.is_list(kind) or pt.is_large_list(kind)):
        values = _fitted(array.values, node.inner["element"], to.value_type)
        made = pa.ListArray.from_arrays(_offsets(array).cast(pa.int32()), values)
        return _nulled(made, array).cast(to)
    return flat(conform(pa.chunked_array([array]), to))


def _offsets(array: pa.Array) -> pa.Array:
    return array.offsets


def _nulled(made: pa.Array, array: pa.Array) -> pa.Array:
    return pc.if_else(array.is_valid(), made, pa.scalar(None, made.type)) if array.null_count else made


def partition_column(text: str | None, to: pa.DataType, count: int) -> pa.Array:
    """A column that has one value in all rows of a file, from the text that the log has; an empty one is null."""
    if text is None or text == "":
        return pa.nulls(count, to)
    if pt.is_binary(to):
        raise pa.ArrowNotImplementedError("a partition by bytes")
    plain = pa.chunked_array([pa.array([text], pa.string())])
    value = plain if pt.is_string(to) else from_text(plain, to)
    return pa.repeat(value[0], count)


def check_mapping(mode: str, table: str) -> None:
    """Raise if columns are found in files by numbers alone."""
    if mode not in ("none", "name"):
        raise InvalidArgument(
            f"{table} maps its columns by {mode!r}, and uc.TableChanges reads those that are mapped by name: read the "
            "table by Spark"
        )


def same_columns(known: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> str | None:
    """The first column that is known and is not in a new schema, or is of another type there; None if all are."""
    there = {field["name"]: field for field in new}
    for field in known:
        other = there.get(field["name"])
        if other is None or not _same(field, other):
            return str(field["name"])
    return None


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    physical = [field.get("metadata", {}).get(_PHYSICAL, field["name"]) for field in (one, other)]
    return physical[0] == physical[1] and _same_type(one["type"], other["type"])


def _same_type(one: Any, other: Any) -> bool:
    """True if all fields of a type are in another, which may have more of them."""
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return bool(one == other)
    if one["type"] != other["type"]:
        return False
    if one["type"] == "struct":
        return same_columns(one["fields"], other["fields"]) is None
    return all(_same_type(one[part], other[part]) for part in ("elementType", "keyType", "valueType") if part in one)


__all__ = ["Node", "check_mapping", "column_of", "nodes_of", "partition_column", "same_columns"]
