"""The Arrow columns that a JSON Schema describes.

Guarded by tests/messages/test_json_schema.py.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from ..errors import InvalidArgument

_PLAIN = {
    "integer": pa.int64(),
    "number": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
}

_FORMATS = {"date-time": pa.timestamp("us", "UTC"), "date": pa.date32()}

_CONNECT = {
    **{f"int{bits}": getattr(pa, f"int{bits}")() for bits in (8, 16, 32, 64)},
    "float32": pa.float32(),
    "float64": pa.float64(),
    "bytes": pa.binary(),
}
"""The types of Kafka Connect, which are more exact than those of JSON."""

_TIMES = {
    "org.apache.kafka.connect.data.Timestamp": pa.timestamp("ms", "UTC"),
    "org.apache.kafka.connect.data.Date": pa.date32(),
    "io.debezium.time.Date": pa.date32(),
    "io.debezium.time.Timestamp": pa.timestamp("ms"),
    "io.debezium.time.MicroTimestamp": pa.timestamp("us"),
    "io.debezium.time.NanoTimestamp": pa.timestamp("ns"),
    "io.debezium.time.ZonedTimestamp": pa.timestamp("us", "UTC"),
}
"""The types that Kafka Connect and Debezium name in `title`."""


def json_columns(text: str) -> pa.Schema:
    """The columns of the objects that a JSON Schema describes; raises for a type that columns do not have.

    >>> json_columns('{"type": "object", "properties": {"n": {"type": "integer"}, "at": {"format": "date-time"}}}')
    n: int64
    at: timestamp[us, tz=UTC]
    """
    try:
        whole = json.loads(text)
    except ValueError:
        raise InvalidArgument("a JSON Schema of the registry is no JSON") from None
    kind = _type(whole, whole, "", ())
    if not pa.types.is_struct(kind) or kind.num_fields == 0:
        raise _no_column("", "is no object with properties")
    return pa.schema(list(kind))


def _type(schema: Any, whole: Any, path: str, inside: tuple[str, ...]) -> pa.DataType:
    if isinstance(schema, dict) and "$ref" in schema:
        reference = schema["$ref"]
        if reference in inside:
            raise _no_column(path, "holds itself")
        return _type(_at(whole, reference, path), whole, path, (*inside, reference))
    if not isinstance(schema, dict):
        raise _no_column(path, "has no type")
    for word in ("oneOf", "anyOf"):
        if word in schema:
            choices = [one for one in schema[word] if one != {"type": "null"}]
            if len(choices) != 1:
                raise _no_column(path, "is of one of several types")
            return _type(choices[0], whole, path, inside)
    name = _name(schema, path)
    if schema.get("title") in _TIMES:
        return _TIMES[schema["title"]]
    if schema.get("connect.type") in _CONNECT:
        return _CONNECT[schema["connect.type"]]
    if name == "string":
        return _FORMATS.get(schema.get("format", ""), pa.string())
    if name == "array":
        return pa.list_(_type(schema.get("items"), whole, f"{path}[]", inside))
    if name == "object":
        return _object(schema, whole, path, inside)
    return _PLAIN[name]


def _name(schema: dict[str, Any], path: str) -> str:
    """The type of JSON of a schema; one that only names its values is a text."""
    names = schema.get("type", "object" if "properties" in schema else None)
    if names is None and ("format" in schema or _are_texts(schema.get("enum")) or _are_texts([schema.get("const")])):
        return "string"
    several = [name for name in ([names] if isinstance(names, str) else names or []) if name != "null"]
    if len(several) != 1 or several[0] not in (*_PLAIN, "array", "object"):
        raise _no_column(path, "is of one of several types" if len(several) > 1 else "has no type")
    return str(several[0])


def _are_texts(values: Any) -> bool:
    return bool(values) and all(isinstance(value, str) for value in values if value is not None) and values != [None]


def _object(schema: dict[str, Any], whole: Any, path: str, inside: tuple[str, ...]) -> pa.DataType:
    properties = schema.get("properties")
    if properties:
        ordered = sorted(properties.items(), key=lambda pair: _index(pair[1]))
        return pa.struct([(name, _type(one, whole, f"{path}.{name}", inside)) for name, one in ordered])
    rest = schema.get("additionalProperties")
    if not isinstance(rest, dict) or not rest:
        raise _no_column(path, "is an object without properties")
    return pa.map_(pa.string(), _type(rest, whole, f"{path}{{}}", inside))


def _index(schema: Any) -> int:
    """The place of a property that Kafka Connect gives."""
    place = schema.get("connect.index", 0) if isinstance(schema, dict) else 0
    return place if isinstance(place, int) else 0


def _at(whole: Any, reference: Any, path: str) -> Any:
    """The part of a schema that a reference names."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise _no_column(path, f"refers to {reference!r}, which is another schema")
    part = whole
    for key in filter(None, reference[1:].split("/")):
        key = key.replace("~1", "/").replace("~0", "~")
        if not isinstance(part, dict) or key not in part:
            raise _no_column(path, f"refers to {reference!r}, which is not there")
        part = part[key]
    return part


def _no_column(path: str, why: str) -> InvalidArgument:
    name = repr(path.lstrip(".")) if path else "the message itself"
    return InvalidArgument(
        f"a JSON Schema of the registry has no column for {name}, which {why}: give the columns with schema="
    )


__all__ = ["json_columns"]
