"""Messages of Protobuf: of one type, or each with the number of its schema in a registry.

Guarded by tests/messages/test_protobuf.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial

import numpy as np
import pyarrow as pa

from ..errors import InvalidArgument, TypeMismatch
from .message_format import Decoded, MessageFormat, decoded
from .proto_columns import MessageReader
from .proto_types import ProtoSchema
from .registry import SchemaRegistry
from .spans.cursors import WORDS, Cursors, Fault
from .subjects import require_one, subject_schema, written_schema
from .wire_header import Decoder, Part, decoded_by_schema, together

AT_ONCE = 32_768
"""The messages that are read at once, whose columns fit into the caches of a processor."""

DEEPEST = 100
"""The most messages inside each other that a message names."""

Texts = tuple[tuple[str, str], ...]


@dataclass(frozen=True, init=False)
class Protobuf(MessageFormat):
    r"""Each message is one of Protobuf: alone, or with the number of its schema in a registry.

    Fields are columns, also those that a message leaves out: a field of proto3 without `optional` has its default then,
    and one of a `oneof`, an `optional` one and a message are null. Messages are structs, `Timestamp` and `Duration` are
    times in microseconds, and wrappers columns that may be null. Enums are the names of their values. Unsigned numbers
    have the next wider type. A message that holds itself is refused.

    Parameters
    ----------
    schema
        The text of the `.proto` file, in proto3 or proto2. With a registry it is the one with which all messages are
        read, and the newest of the subject if it is not given, as it is when the flow is built.
    message
        The name of the message; by default the first one of the file.
    imports
        The texts of other files by the names by which `schema` imports them. Google's own are known.
    registry
        The registry, if messages are in Confluent's wire format.
    subject
        The subject whose newest schema is taken; by default the name of the topic with `-value` or `-key`.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> fields = "int64 n = 1; optional string who = 2;"
    >>> format = uc.messages.Protobuf(f'syntax = "proto3"; message Order {{ {fields} }}')
    >>> format.decode(pa.array([b"\x08\x03", b"\x08\x04\x12\x03ada"])).table.to_pylist()
    [{'n': 3, 'who': None}, {'n': 4, 'who': 'ada'}]
    """

    text: str | None
    """The file with which messages are read; None for the newest of a subject."""
    message: str | None
    imports: Texts = field(repr=False)
    registry: SchemaRegistry | None
    subject: str | None

    def __init__(
        self,
        schema: str | None = None,
        message: str | None = None,
        *,
        imports: Mapping[str, str] | None = None,
        registry: SchemaRegistry | None = None,
        subject: str | None = None,
    ) -> None:
        require_one("Protobuf", schema, registry, subject)
        if schema is not None and not isinstance(schema, str):
            raise TypeMismatch(f"schema= of Protobuf(...) takes the text of a file, not a {type(schema).__name__}")
        values = (schema, message, tuple((imports or {}).items()), registry, subject)
        for attribute, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, attribute, value)
        if schema is not None:
            _ = self.schema

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        reader = self._settled._reader
        return pa.schema(reader.schema.columns(reader.name))

    @cached_property
    def _settled(self) -> Protobuf:
        return self.settled()

    @property
    def _reader(self) -> MessageReader:
        return _reader(self.text or "", self.imports, self.message)

    def settled(self, topic: str | None = None, part: str = "value") -> Protobuf:
        if self.text is not None:
            return self
        assert self.registry is not None
        found = subject_schema(self.registry, self.subject, topic, part, "PROTOBUF", "Protobuf")
        return Protobuf(found.text, self.message, imports=dict(found.texts), registry=self.registry)

    def decode(self, values: pa.BinaryArray) -> Decoded:
        settled = self._settled
        if settled.registry is None:
            return _decoded(settled._reader, Cursors.of(values))
        return decoded_by_schema(values, settled.schema, settled._of_number)

    def _of_number(self, number: int) -> Decoder | str:
        assert self.registry is not None
        found = written_schema(self.registry, number, "PROTOBUF")
        if isinstance(found, str):
            return found
        try:
            written = _schema(found.text, found.texts)
        except InvalidArgument as error:
            return f"schema {number}: {error}"
        return partial(_indexed, written, self._reader)


@lru_cache(maxsize=256)
def _schema(text: str, imports: Texts) -> ProtoSchema:
    return ProtoSchema.of(text, dict(imports))


@lru_cache(maxsize=256)
def _reader(text: str, imports: Texts, message: str | None) -> MessageReader:
    schema = _schema(text, imports)
    name = schema.chosen(message)
    if not schema.columns(name):
        raise InvalidArgument(f"the message {name!r} of Protobuf has no fields, and so no columns")
    return MessageReader(schema, name)


def _decoded(reader: MessageReader, cursors: Cursors) -> Decoded:
    """The rows of messages without a header."""
    schema = pa.schema(reader.schema.columns(reader.name))
    tables, faults = [schema.empty_table()], [np.zeros(0, np.int8)]
    for first in range(0, len(cursors), AT_ONCE):
        part = cursors.slice(first, AT_ONCE)
        tables.append(pa.table(reader(part), schema=schema))
        faults.append(part.fault)
    fault = np.concatenate(faults)
    return decoded(pa.concat_tables(tables), fault != 0, [WORDS[Fault(code)] for code in fault[fault != 0]])


def _indexed(written: ProtoSchema, reader: MessageReader, cursors: Cursors) -> Decoded:
    """The rows of messages that begin with the place of their type in its file, of which a zero is the first one."""
    counts = cursors.longs()
    cursors.fail((counts < 0) | (counts > DEEPEST), Fault.LENGTH)
    parts = list[Part]()
    for count in np.unique(counts[cursors.fault == 0]):
        some = np.flatnonzero((counts == count) & (cursors.fault == 0))
        inner = cursors.part(some)
        paths = np.stack([inner.longs() for _ in range(count)], 1) if count else np.zeros((len(some), 1), np.int64)
        cursors.put(some, inner)
        for path in np.unique(paths[inner.fault == 0], axis=0):
            own = some[(paths == path).all(axis=1) & (inner.fault == 0)]
            wrong = _misfit(written, reader, tuple(int(one) for one in path))
            parts.append((own, wrong or _decoded(reader, cursors.part(own))))
    for code in np.unique(cursors.fault):
        if code:
            parts.append((np.flatnonzero(cursors.fault == code), WORDS[Fault(code)]))
    return together(parts, pa.schema(reader.schema.columns(reader.name)), len(cursors))


def _misfit(written: ProtoSchema, reader: MessageReader, path: tuple[int, ...]) -> str:
    """The reason why messages of a type are not those that are read; empty if they are."""
    name = written.at(path)
    if name is None:
        return "its schema has no message at the place that it names"
    if name.rpartition(".")[2] != reader.name.rpartition(".")[2]:
        return f"it is a {name}, and not a {reader.name}, which message= names"
    return written.misfit(name, reader.schema, reader.name)


__all__ = ["Protobuf"]
