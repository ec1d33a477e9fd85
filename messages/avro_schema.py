"""Avro's schemas: their text as types, with each name in its place.

Guarded by tests/messages/test_avro.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import InvalidArgument

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")

_CONNECT = {
    ("int", "io.debezium.time.Date"): "date",
    ("int", "io.debezium.time.Time"): "time-millis",
    ("long", "io.debezium.time.MicroTime"): "time-micros",
    ("long", "io.debezium.time.Timestamp"): "local-timestamp-millis",
    ("long", "io.debezium.time.MicroTimestamp"): "local-timestamp-micros",
    ("long", "io.debezium.time.NanoTimestamp"): "local-timestamp-nanos",
}
"""The logical types that Debezium names in its own way."""

_LOGICAL = {
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    **{f"{zone}timestamp-{unit}": ("long",) for zone in ("", "local-") for unit in ("millis", "micros", "nanos")},
    "decimal": ("bytes", "fixed"),
    "uuid": ("string", "fixed"),
}
"""The logical types that are read, and the types that may have them. Others are as if they were not there."""

MISSING: Any = object()
"""In the place of the default of a field that has none."""


@dataclass(frozen=True)
class AvroField:
    """A field of a record."""

    name: str
    type: AvroType
    default: Any = MISSING
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class AvroType:
    """A type of Avro."""

    kind: str
    name: str = ""
    """The full name of a record, an enum or a fixed type."""
    logical: str = ""
    precision: int = 0
    scale: int = 0
    size: int = 0
    symbols: tuple[str, ...] = ()
    default: str | None = None
    fields: tuple[AvroField, ...] = ()
    parts: tuple[AvroType, ...] = ()
    """The branches of a union, the items of an array, or the values of a map."""
    aliases: tuple[str, ...] = field(default=(), compare=False)

    @property
    def short(self) -> str:
        """The name without its namespace; of a type without a name, its kind."""
        return self.name.rpartition(".")[2] or self.kind


def avro_type(schema: Any, references: Sequence[str] = ()) -> AvroType:
    """The type that a schema describes, as text or as the value of its JSON; `references` are schemas that it names.

    >>> avro_type('{"type": "array", "items": "long"}').parts[0].kind
    'long'
    >>> avro_type({"type": "record", "name": "shop.Order", "fields": [{"name": "n", "type": "int"}]}).short
    'Order'
    """
    reader = _Reader({})
    for text in references:
        reader.read(_json(text), "")
    return reader.read(_json(schema), "")


def _json(schema: Any) -> Any:
    if not isinstance(schema, str):
        return schema
    try:
        return json.loads(schema)
    except ValueError:
        if schema in PRIMITIVES:
            return schema
        raise InvalidArgument(f"a schema of Avro is JSON, or the name of a type, not {schema[:60]!r}") from None


class _Reader:
    """Reads the types of one schema, with the names known so far; None for a name whose type is not complete."""

    def __init__(self, named: dict[str, AvroType | None]) -> None:
        self.named = named

    def read(self, schema: Any, space: str) -> AvroType:
        if isinstance(schema, str):
            return self._reference(schema, space)
        if isinstance(schema, list):
            return self._union(schema, space)
        if not isinstance(schema, Mapping) or "type" not in schema:
            raise InvalidArgument(f"a schema of Avro has no type in {_cut(schema)}")
        kind = schema["type"]
        if kind in ("record", "error", "enum", "fixed"):
            return self._named(dict(schema), kind, space)
        if kind in ("array", "map"):
            inner = schema.get("items" if kind == "array" else "values")
            if inner is None:
                raise InvalidArgument(f"a schema of Avro lacks the type of the values of its {kind}")
            return AvroType(kind, parts=(self.read(inner, space),))
        return _with_logical(self.read(kind, space), schema)

    def _reference(self, name: str, space: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        within = f"{space}.{name}"
        full = within if "." not in name and within in self.named else name
        if full not in self.named:
            raise InvalidArgument(f"a schema of Avro names a type {name!r} that it does not define")
        known = self.named[full]
        if known is None:
            raise InvalidArgument(f"the schema of Avro {full!r} refers to itself, and columns have no such type")
        return known

    def _union(self, schema: list[Any], space: str) -> AvroType:
        branches = tuple(self.read(branch, space) for branch in schema)
        if not branches or any(branch.kind == "union" for branch in branches):
            raise InvalidArgument("a union of Avro has branches, none of which is a union")
        return AvroType("union", parts=branches)

    def _named(self, schema: dict[str, Any], kind: str, space: str) -> AvroType:
        name, own = schema.get("name"), schema.get("namespace", space)
        if not isinstance(name, str) or not name:
            raise InvalidArgument(f"a schema of Avro has no name in {_cut(schema)}")
        full = name if "." in name or not own else f"{own}.{name}"
        inside = full.rpartition(".")[0]
        aliases = tuple(schema.get("aliases", ()))
        if kind == "enum":
            symbols = tuple(schema.get("symbols", ()))
            made = AvroType("enum", full, symbols=symbols, default=schema.get("default"), aliases=aliases)
        elif kind == "fixed":
            size = schema.get("size")
            if not isinstance(size, int) or size < 0:
                raise InvalidArgument(f"the size of {full!r}, a fixed type of Avro, is no number: {size!r}")
            made = _with_logical(AvroType("fixed", full, size=size, aliases=aliases), schema)
        else:
            self.named[full] = None
            fields = tuple(self._field(one, full, inside) for one in schema.get("fields", ()))
            if len({one.name for one in fields}) < len(fields):
                raise InvalidArgument(f"the schema of Avro {full!r} has two fields of one name")
            made = AvroType("record", full, fields=fields, aliases=aliases)
        self.named[full] = made
        return made

    def _field(self, schema: Any, record: str, space: str) -> AvroField:
        if not isinstance(schema, Mapping) or not isinstance(schema.get("name"), str) or "type" not in schema:
            raise InvalidArgument(f"the schema of Avro {record!r} has a field without a name or a type")
        default = schema.get("default", MISSING)
        return AvroField(schema["name"], self.read(schema["type"], space), default, tuple(schema.get("aliases", ())))


def _with_logical(kind: AvroType, schema: Mapping[str, Any]) -> AvroType:
    """The type with its logical type, if it may have that one."""
    logical = schema.get("logicalType") or _CONNECT.get((kind.kind, schema.get("connect.name", "")), "")
    if not isinstance(logical, str) or kind.kind not in _LOGICAL.get(logical, ()):
        return kind
    if logical == "uuid" and kind.kind == "fixed" and kind.size != 16:
        return kind
    if logical != "decimal":
        return replace(kind, logical=logical)
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision or precision < 1:
        return kind
    return replace(kind, logical=logical, precision=precision, scale=scale)


def _cut(schema: Any) -> str:
    text = repr(schema)
    return text if len(text) <= 60 else f"{text[:60]}..."


__all__ = ["MISSING", "AvroField", "AvroType", "avro_type"]
