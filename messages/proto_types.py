"""The messages of Protobuf with each name in its place, and the Arrow types of their fields.

Guarded by tests/messages/test_protobuf.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from ..errors import InvalidArgument, nearest
from .proto_text import SCALARS, ProtoField, ProtoFile, ProtoMessage, proto_file

WRAPPERS = {
    "google.protobuf.DoubleValue": "double",
    "google.protobuf.FloatValue": "float",
    "google.protobuf.Int64Value": "int64",
    "google.protobuf.UInt64Value": "uint64",
    "google.protobuf.Int32Value": "int32",
    "google.protobuf.UInt32Value": "uint32",
    "google.protobuf.BoolValue": "bool",
    "google.protobuf.StringValue": "string",
    "google.protobuf.BytesValue": "bytes",
}
TIMESTAMP, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"

_KNOWN = (
    'syntax = "proto3"; package google.protobuf;'
    "message Timestamp { int64 seconds = 1; int32 nanos = 2; }"
    "message Duration { int64 seconds = 1; int32 nanos = 2; }"
    "message Any { string type_url = 1; bytes value = 2; }"
    "message Empty { }"
    "message FieldMask { repeated string paths = 1; }"
    + "".join(f"message {name.rpartition('.')[2]} {{ {kind} value = 1; }}" for name, kind in WRAPPERS.items())
)
"""The messages of Google's own files that are read. Struct holds itself, and is not."""

_ARROW = {
    "double": pa.float64(),
    "float": pa.float32(),
    **dict.fromkeys(("int32", "sint32", "sfixed32"), pa.int32()),
    **dict.fromkeys(("int64", "sint64", "sfixed64", "uint32", "fixed32"), pa.int64()),
    **dict.fromkeys(("uint64", "fixed64"), pa.decimal128(20, 0)),
    "bool": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
"""The types of scalars. Unsigned numbers have the next wider type, because Spark and tables have no unsigned ones."""

_ALIKE = (
    {"int32", "int64", "uint32", "uint64", "bool", "enum"},
    {"sint32", "sint64"},
    {"string", "bytes"},
    {"fixed32", "sfixed32"},
    {"fixed64", "sfixed64"},
)
"""Types of which one may be read as another."""


@dataclass(frozen=True)
class ProtoSchema:
    """All messages and enums that a file and its imports define."""

    messages: Mapping[str, ProtoMessage]
    enums: Mapping[str, Mapping[int, str]]
    file: ProtoFile = field(repr=False)

    @classmethod
    def of(cls, text: str, imports: Mapping[str, str]) -> ProtoSchema:
        """The schema of a file, with the texts of the files that it imports."""
        file, files, waiting = proto_file(text), [proto_file(_KNOWN)], list[str]()
        seen: set[str] = set()
        waiting += file.imports
        files.append(file)
        while waiting:
            name = waiting.pop()
            if name in seen or name.startswith(("google/protobuf/", "confluent/", "gogoproto/", "google/api/")):
                continue
            seen.add(name)
            if name not in imports:
                raise InvalidArgument(
                    f"a schema of Protobuf imports {name!r}, which is not there: give its text in imports="
                )
            files.append(proto_file(imports[name]))
            waiting += files[-1].imports
        messages = {name: message for one in files for name, message in one.messages.items()}
        enums = {name: numbers for one in files for name, numbers in one.enums.items()}
        for message in messages.values():
            message.fields = [_in_place(one, message.name, {*messages, *enums}) for one in message.fields]
        return cls(messages, enums, file)

    def at(self, indexes: tuple[int, ...]) -> str | None:
        """The name of the message at a place of the file: of its messages, of the messages in that one, and so on."""
        names, name = self.file.top, None
        for index in indexes:
            if index >= len(names):
                return None
            name = names[index]
            names = self.messages[name].inner
        return name

    def chosen(self, name: str | None) -> str:
        """The full name of the message that a user names; the first one of the file by default."""
        if name is None:
            if not self.file.top:
                raise InvalidArgument("a schema of Protobuf has no message")
            return self.file.top[0]
        full = name if name in self.messages else f"{self.file.package}.{name}"
        if full not in self.messages:
            own = [one for one in self.messages if not one.startswith("google.protobuf.")]
            raise InvalidArgument(f"the schema of Protobuf has no message {name!r}: {nearest(name, own)}")
        return full

    def kind_of(self, one: ProtoField) -> str:
        """The kind of a field: a scalar, "enum", or "message"."""
        return one.kind if one.kind in SCALARS else "enum" if one.kind in self.enums else "message"

    def columns(self, name: str, inside: tuple[str, ...] = ()) -> list[pa.Field]:
        """The columns of a message."""
        if name in inside:
            raise InvalidArgument(f"the message {name!r} of Protobuf holds itself, and columns have no such type")
        return [pa.field(one.name, self.arrow(one, (*inside, name))) for one in self.messages[name].fields]

    def arrow(self, one: ProtoField, inside: tuple[str, ...] = ()) -> pa.DataType:
        """The type of the column of a field."""
        if one.key:
            return pa.map_(_ARROW[one.key], self._value(one.kind, inside))
        value = self._value(one.kind, inside)
        return pa.list_(value) if one.repeated else value

    def _value(self, kind: str, inside: tuple[str, ...]) -> pa.DataType:
        if kind in self.enums:
            return pa.string()
        if kind == TIMESTAMP:
            return pa.timestamp("us", "UTC")
        if kind == DURATION:
            return pa.duration("us")
        kind = WRAPPERS.get(kind, kind)
        return _ARROW[kind] if kind in SCALARS else pa.struct(self.columns(kind, inside))

    def misfit(self, name: str, read: ProtoSchema, other: str, inside: tuple[tuple[str, str], ...] = ()) -> str:
        """The reason why messages cannot be read as another message; empty if they can."""
        own = {one.number: one for one in self.messages[name].fields}
        for field_read in read.messages[other].fields:
            one = own.get(field_read.number)
            if one is None or (name, one.name) in inside:
                continue
            kinds = {self.kind_of(one), read.kind_of(field_read)}
            if bool(one.key) != bool(field_read.key) or not (
                len(kinds) == 1 or any(kinds <= alike for alike in _ALIKE)
            ):
                return f"field {one.number} of {name} is {one.kind}, and the reader's is {field_read.kind}"
            if kinds != {"message"}:
                continue
            if why := self.misfit(one.kind, read, field_read.kind, (*inside, (name, one.name))):
                return why
        return ""


def _in_place(one: ProtoField, space: str, names: set[str]) -> ProtoField:
    """The field with the full name of its type, which is looked for from the inside out."""
    if one.kind in SCALARS:
        return one
    if one.kind.startswith("."):
        candidates = [one.kind[1:]]
    else:
        parts = space.split(".")
        candidates = [".".join((*parts[:i], one.kind)) for i in range(len(parts), -1, -1)]
    for name in candidates:
        if name in names:
            return replace(one, kind=name)
    raise InvalidArgument(f"a schema of Protobuf names a type {one.kind!r} that it does not define")


__all__ = ["DURATION", "TIMESTAMP", "WRAPPERS", "ProtoSchema"]
