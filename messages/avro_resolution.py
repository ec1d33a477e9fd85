"""Readers for the type that was written and the type that is read, by Avro's rules of resolution.

Numbers become wider ones, texts bytes and bytes texts. A field that was not written has the reader's default, and one
that is not read is skipped. A union is resolved by the branch that a message has, so that a message is bad only if its
own branch does not fit.

Guarded by tests/messages/test_avro.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument
from .avro_nodes import (
    AsDecimal,
    Items,
    Member,
    Node,
    Nulls,
    Numbers,
    Record,
    Span,
    Symbols,
    Unfit,
    Union,
    as_binary,
    as_nothing,
    as_uuid,
    booleans,
    doubles,
    floats,
)
from .avro_schema import MISSING, AvroField, AvroType
from .avro_types import arrow_type, default_value, union_value
from .spans.cursors import Cursors, Fault, texts_of_spans

_TAKES: dict[str, Callable[[Cursors], np.ndarray]] = {
    "boolean": booleans,
    "int": Cursors.ints,
    "long": Cursors.longs,
    "float": floats,
    "double": doubles,
}
_WIDER = {
    "boolean": ("boolean",),
    "int": ("int", "long", "float", "double"),
    "long": ("long", "float", "double"),
    "float": ("float", "double"),
    "double": ("double",),
}
_DTYPES = {"boolean": np.bool_, "int": np.int32, "long": np.int64, "float": np.float32, "double": np.float64}

_PER_SECOND = {"millis": 1000, "micros": 1_000_000, "nanos": 1_000_000_000}
_LIMITS = {"time-millis": 86_400_000, "time-micros": 86_400_000_000}


class Mismatch(Exception):
    """Values of one type cannot be read as another one; the message says why."""


def reader_of(written: AvroType, read: AvroType) -> Node:
    """The reader of values; raises `Mismatch` where no value can be read."""
    if written.kind == "union":
        branches = tuple(_tried(branch, read) for branch in written.parts)
        if all(isinstance(node, Unfit) for node in branches):
            raise Mismatch(branches[0].why if isinstance(branches[0], Unfit) else "")
        return Union(branches, arrow_type(read))
    if read.kind == "union":
        return _into_union(written, read)
    if read.kind == "null" and written.kind == "null":
        return Nulls(pa.null())
    if read.kind in _DTYPES and read.kind in _WIDER.get(written.kind, ()):
        return _numbers(written, read)
    if written.kind != read.kind and {written.kind, read.kind} != {"string", "bytes"}:
        raise _mismatch(written, read)
    if read.kind == "record":
        return _record(written, read)
    if read.kind == "enum":
        names = (one if one in read.symbols else read.default for one in written.symbols)
        return Symbols(tuple(names))
    if read.kind in ("array", "map"):
        _require_bytes(written.parts[0], written.kind)
        key = Span(texts_of_spans) if read.kind == "map" else None
        return Items(reader_of(written.parts[0], read.parts[0]), arrow_type(read), key)
    return _span(written, read)


def _tried(written: AvroType, read: AvroType) -> Node:
    try:
        return reader_of(written, read)
    except Mismatch as error:
        return Unfit(arrow_type(read), str(error))


def _mismatch(written: AvroType, read: AvroType, why: str = "") -> Mismatch:
    return Mismatch(f"{_words(written)} was written, and the reader's schema has {_words(read)}{why}")


def _words(kind: AvroType) -> str:
    if kind.logical == "decimal":
        return f"decimal({kind.precision}, {kind.scale})"
    return kind.logical or " ".join(filter(None, (kind.kind, kind.name)))


def _into_union(written: AvroType, read: AvroType) -> Node:
    """The first branch of the reader that takes the values: one of the same type, or else a wider one."""
    one, kind = union_value(read), arrow_type(read)
    if written.kind == "null":
        if any(branch.kind == "null" for branch in read.parts):
            return Nulls(kind)
        raise _mismatch(written, read)
    branches = [branch for branch in read.parts if branch.kind != "null"]
    order = sorted(range(len(branches)), key=lambda i: _distance(written, branches[i]))
    for i in order:
        try:
            if one is not None:
                return reader_of(written, one if len(branches) > 1 else branches[i])
            return Member(reader_of(written, branches[i]), i, kind)
        except Mismatch:
            continue
    raise _mismatch(written, read)


def _distance(written: AvroType, read: AvroType) -> tuple[bool, bool, bool]:
    return written.kind != read.kind, written.name != read.name, written.short != read.short


def _record(written: AvroType, read: AvroType) -> Record:
    """The fields that were written, in order, each at the place of the reader's field."""
    places: dict[str, int] = {}
    for place, field in enumerate(read.fields):
        names = [one.name for one in written.fields]
        known = next((name for name in (field.name, *field.aliases) if name in names), None)
        if known is not None:
            places.setdefault(known, place)
    fields = tuple((_field(one, read, places), places.get(one.name)) for one in written.fields)
    filled = set(places.values())
    defaults = tuple(None if i in filled else _default(one, read) for i, one in enumerate(read.fields))
    return Record(fields, arrow_type(read), defaults)


def _field(field: AvroField, read: AvroType, places: dict[str, int]) -> Node:
    if field.name not in places:
        return skipping(field.type)
    try:
        return reader_of(field.type, read.fields[places[field.name]].type)
    except Mismatch as error:
        raise Mismatch(f"field {field.name!r}: {error}") from None


def _default(field: AvroField, read: AvroType) -> pa.Scalar:
    kind = arrow_type(field.type)
    if field.default is MISSING:
        raise Mismatch(f"field {field.name!r} was not written, and the reader's schema has no default for it")
    return pa.array([default_value(field.default, field.type)], kind)[0]


def skipping(written: AvroType) -> Node:
    """The reader of values that are not needed."""
    if written.kind == "null":
        return Nulls(pa.null())
    if written.kind in _TAKES:
        return Numbers(_TAKES[written.kind], _nothing)
    if written.kind == "record":
        return Record(tuple((skipping(one.type), None) for one in written.fields), pa.struct([]), ())
    if written.kind == "union":
        return Union(tuple(skipping(branch) for branch in written.parts), pa.null())
    if written.kind == "enum":
        return Symbols(written.symbols)
    if written.kind in ("array", "map"):
        _require_bytes(written.parts[0], written.kind)
        inner, key = skipping(written.parts[0]), Span(as_nothing) if written.kind == "map" else None
        return Items(inner, None, key)
    return Span(as_nothing, written.size if written.kind == "fixed" else None)


def _nothing(c: Cursors, values: np.ndarray) -> pa.Array:
    return pa.nulls(len(values))


def _require_bytes(item: AvroType, what: str) -> None:
    """Raise if items may have no bytes, of which a short message could say that it has a billion."""
    if _least_bytes(item) == 0:
        raise InvalidArgument(f"a schema of Avro has a type {what!r} of values without any bytes, which is not read")


def _least_bytes(kind: AvroType) -> int:
    if kind.kind == "null":
        return 0
    if kind.kind == "fixed":
        return kind.size
    return sum(_least_bytes(one.type) for one in kind.fields) if kind.kind == "record" else 1


def _numbers(written: AvroType, read: AvroType) -> Node:
    """Numbers, which become wider ones, or times."""
    take, kind = _TAKES[written.kind], arrow_type(read)
    if not read.logical:
        return Numbers(take, partial(_wide, _DTYPES[read.kind]))
    if written.kind not in ("int", "long"):
        raise _mismatch(written, read)
    one, other = written.logical.rpartition("-"), read.logical.rpartition("-")
    factor = 1
    if written.logical and one != other:
        if not one[0].endswith("timestamp") or one[0] != other[0]:
            raise _mismatch(written, read)
        factor = _PER_SECOND[other[2]] // _PER_SECOND[one[2]]
        if not factor:
            raise _mismatch(written, read, ", which is less exact")
    return Numbers(take, partial(_times, kind, factor, _LIMITS.get(read.logical, 0)))


def _wide(kind: type, c: Cursors, values: np.ndarray) -> pa.Array:
    return pa.array(values.astype(kind, copy=False))


def _times(kind: pa.DataType, factor: int, limit: int, c: Cursors, values: np.ndarray) -> pa.Array:
    if factor > 1:
        far = np.abs(values.astype(np.float64)) * factor >= 2.0**63
        c.fail(far, Fault.TIME)
        values = np.where(far, 0, values) * factor
    if limit:
        out = (values < 0) | (values >= limit)
        c.fail(out, Fault.TIME)
        values = np.where(out, 0, values)
    return pa.array(values.astype(np.int32 if kind.bit_width == 32 else np.int64, copy=False)).view(kind)


def _span(written: AvroType, read: AvroType) -> Node:
    """Texts, bytes, and decimals and UUIDs in them."""
    size = written.size if written.kind == "fixed" else None
    if size is not None and size != read.size:
        raise _mismatch(written, read, f" of {read.size} bytes and not {size}")
    if "decimal" in (written.logical, read.logical):
        same = (written.precision, written.scale) == (read.precision, read.scale)
        if written.logical == read.logical and not same:
            raise _mismatch(written, read)
        if read.logical == "decimal":
            if written.kind == "string":
                raise _mismatch(written, read)
            return Span(AsDecimal(arrow_type(read)), size)
    if read.logical == "uuid" and size is not None:
        return Span(as_uuid, size)
    return Span(texts_of_spans if read.kind == "string" else as_binary, size)


__all__ = ["Mismatch", "reader_of", "skipping"]
