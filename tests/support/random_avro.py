"""Random schemas of Avro with values, and the rows that are expected of them."""

from __future__ import annotations

import io
import random
import string
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import numpy as np
import pyarrow as pa

from uncombine.messages.avro_schema import AvroType
from uncombine.messages.avro_types import member_names, union_value

WORDS = ["", "a", "é🙂", "long " * 20, "__debezium_unavailable_value", "\x00"]
LEAVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
LOGICAL: list[dict[str, Any]] = [
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "string", "logicalType": "uuid"},
    {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10},
    {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
]


class AvroDraw:
    """Draws schemas and values; no name is used twice."""

    def __init__(self, r: random.Random) -> None:
        self.r, self.count = r, 0

    def name(self) -> str:
        self.count += 1
        return f"{self.r.choice(string.ascii_lowercase)}{self.count}"

    def record(self, depth: int = 2) -> dict[str, Any]:
        fields = [{"name": self.name(), "type": self.type(depth - 1)} for _ in range(self.r.randrange(1, 6))]
        return {"type": "record", "name": self.name(), "namespace": self.r.choice(["a.b", "c"]), "fields": fields}

    def type(self, depth: int) -> Any:
        draw = self.r.random()
        if depth <= 0 or draw < 0.4:
            return self.leaf()
        if draw < 0.55:
            return self.r.choice([["null", self.value(depth - 1)], [self.value(depth - 1), "null"]])
        if draw < 0.65:
            return self.union(depth - 1)
        if draw < 0.75:
            return {"type": "array", "items": self.value(depth - 1)}
        if draw < 0.85:
            return {"type": "map", "values": self.value(depth - 1)}
        return self.record(depth)

    def value(self, depth: int) -> Any:
        """A type that is no union, and whose values have bytes."""
        while True:
            kind = self.type(depth)
            if not isinstance(kind, list) and kind != "null" and _has_bytes(kind):
                return kind

    def union(self, depth: int) -> Any:
        branches = [
            {"type": "string"},
            self.record(depth),
            {"type": "array", "items": "int"},
            "boolean",
            "long",
            "null",
        ]
        return self.r.sample(branches, self.r.randrange(2, 5))

    def leaf(self) -> Any:
        draw = self.r.random()
        if draw < 0.6:
            return self.r.choice(LEAVES)
        if draw < 0.8:
            return self.r.choice(LOGICAL)
        if draw < 0.9:
            return {"type": "enum", "name": self.name(), "symbols": ["A", "B", "C"]}
        return {"type": "fixed", "name": self.name(), "size": self.r.choice([1, 4, 20])}

    def of(self, kind: AvroType) -> tuple[Any, Any]:
        """A value as fastavro writes it, and as a column has it, with whole numbers for times."""
        r = self.r
        if kind.kind == "null":
            return None, None
        if kind.kind == "boolean":
            return (one := r.random() < 0.5), one
        if kind.logical.startswith("time-"):
            return (one := r.randrange(86_400_000)), one
        if kind.kind in ("int", "long"):
            most = 31 if kind.kind == "int" else 63
            one = r.choice([0, -1, 2**most - 1, -(2**most), r.getrandbits(r.randrange(1, most)) * r.choice([1, -1])])
            return one, one
        if kind.kind in ("float", "double"):
            one = r.choice([0.0, -0.0, float("inf"), float("nan"), r.random() * 1000])
            return one, repr(float(np.float32(one)) if kind.kind == "float" else one)
        if kind.logical == "decimal":
            digits = r.randrange(10 ** r.randrange(1, kind.precision + 1)) * r.choice([1, -1])
            return (one := Decimal(digits).scaleb(-kind.scale)), one
        if kind.logical == "uuid":
            text = str(UUID(int=r.getrandbits(128)))
            return text, text
        if kind.kind in ("bytes", "fixed"):
            raw = r.randbytes(kind.size if kind.kind == "fixed" else r.randrange(12))
            return raw, raw
        if kind.kind == "string":
            return (one := r.choice(WORDS)), one
        if kind.kind == "enum":
            return (one := r.choice(kind.symbols)), one
        if kind.kind == "union":
            return self._of_union(kind)
        if kind.kind == "array":
            items = [self.of(kind.parts[0]) for _ in range(r.choice([0, 0, 1, 2, 5]))]
            return [one for one, _ in items], [other for _, other in items]
        if kind.kind == "map":
            pairs = {f"{r.choice(WORDS)}{i}": self.of(kind.parts[0]) for i in range(r.choice([0, 0, 1, 3]))}
            return {k: one for k, (one, _) in pairs.items()}, [(k, other) for k, (_, other) in pairs.items()]
        fields = {field.name: self.of(field.type) for field in kind.fields}
        return {k: one for k, (one, _) in fields.items()}, {k: other for k, (_, other) in fields.items()}

    def _of_union(self, kind: AvroType) -> tuple[Any, Any]:
        branch = self.r.choice(kind.parts)
        one, other = self.of(branch)
        if branch.kind == "null" or union_value(kind) is not None:
            return one, other
        names = member_names(kind)
        place = [part for part in kind.parts if part.kind != "null"].index(branch)
        return (branch.name or branch.kind, one), {n: other if i == place else None for i, n in enumerate(names)}


def _has_bytes(kind: Any) -> bool:
    if isinstance(kind, dict) and kind["type"] == "record":
        return any(field["type"] != "null" for field in kind["fields"])
    return True


def expected(kind: AvroType, value: Any) -> Any:
    """The value of a column for one that fastavro reads without logical types."""
    if kind.kind == "union":
        branch = _branch(kind, value)
        inner = expected(branch, value[1] if isinstance(value, tuple) else value)
        if branch.kind == "null" or union_value(kind) is not None:
            return inner
        place = [part for part in kind.parts if part.kind != "null"].index(branch)
        return {name: inner if i == place else None for i, name in enumerate(member_names(kind))}
    if kind.kind == "record":
        return {field.name: expected(field.type, value[field.name]) for field in kind.fields}
    if kind.kind == "array":
        return [expected(kind.parts[0], one) for one in value]
    if kind.kind == "map":
        return [(key, expected(kind.parts[0], one)) for key, one in value.items()]
    if kind.logical == "decimal":
        return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-kind.scale)
    return repr(value) if kind.kind in ("float", "double") else value


_KINDS = {"null": type(None), "boolean": bool, "long": int, "int": int, "string": str, "array": list, "record": tuple}


def _branch(kind: AvroType, value: Any) -> AvroType:
    """The branch of a value; the drawn unions have one for each type of Python."""
    others = [part for part in kind.parts if part.kind != "null"]
    if value is None or len(others) == 1:
        return others[0] if value is not None else AvroType("null")
    return next(part for part in others if type(value) is _KINDS[part.kind])


def without_logical(schema: Any) -> Any:
    """The schema without logical types."""
    if isinstance(schema, dict):
        return {key: without_logical(one) for key, one in schema.items() if key != "logicalType"}
    return [without_logical(one) for one in schema] if isinstance(schema, list) else schema


def avro_message(schema: Any, value: Any) -> bytes:
    """A value as fastavro writes it."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table, with plain values."""
    columns = [plain(column) for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def plain(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column, with whole numbers for times and texts for fractions."""
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    kind, there = column.type, column.is_valid().to_pylist()
    if pa.types.is_struct(kind):
        fields = [plain(field) for field in column.flatten()]
        rows = [dict(zip(kind.names, row, strict=True)) for row in zip(*fields, strict=True)] or [{}] * len(column)
        return [row if ok else None for row, ok in zip(rows, there, strict=True)]
    if pa.types.is_map(kind) or pa.types.is_list(kind):
        if pa.types.is_map(kind):
            inside: list[Any] = list(zip(plain(column.keys), plain(column.items), strict=True))
        else:
            inside = plain(column.values)
        ends = column.offsets.to_pylist()
        return [inside[a:b] if ok else None for a, b, ok in zip(ends[:-1], ends[1:], there, strict=True)]
    if pa.types.is_temporal(kind):
        return column.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
    if pa.types.is_floating(kind):
        return [None if one is None else repr(one) for one in column.to_pylist()]
    return column.to_pylist()
