"""Messages of Avro: of one schema, or each with the number of its schema in a registry.

Guarded by tests/messages/test_avro_messages.py and tests/messages/test_avro.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa

from ..errors import InvalidArgument
from .avro_decoder import AvroDecoder, columns_of
from .avro_resolution import Mismatch
from .avro_schema import AvroType, avro_type
from .message_format import Decoded, MessageFormat
from .registry import SchemaRegistry
from .subjects import require_one, subject_schema, written_schema
from .wire_header import Decoder, decoded_by_schema


@dataclass(frozen=True, init=False)
class Avro(MessageFormat):
    r"""Each message is a value of Avro: alone, or with the number of its schema in a registry.

    Fields of a record are columns; a value of another type is one column. Nested records are structs, a union with null
    is a column that may be null, and one of several types a struct with a field for each. Times, dates, decimals and
    UUIDs have their own types, also those that Debezium names.

    Parameters
    ----------
    schema
        The schema of the messages, as JSON text or as its value. With a registry each message names the schema with
        which it was written; `schema` is then the one with which all of them are read, and the newest of the subject if
        it is not given, as it is when the flow is built.
    reader_schema
        Without a registry: the schema with which messages are read, if it is another one than they were written with.
        Fields are found by their names and aliases, numbers become wider ones, and new fields have their defaults.
    registry
        The registry, if messages are in Confluent's wire format.
    subject
        The subject whose newest schema is taken; by default the name of the topic with `-value` or `-key`.
    name
        The column of values that are no records.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> fields = [{"name": "n", "type": "long"}, {"name": "who", "type": ["null", "string"]}]
    >>> format = uc.messages.Avro({"type": "record", "name": "order", "fields": fields})
    >>> format.decode(pa.array([b"\x06\x00", b"\x08\x02\x06ada"])).table.to_pylist()
    [{'n': 3, 'who': None}, {'n': 4, 'who': 'ada'}]
    """

    written: str | None
    """The schema of the messages; None with a registry."""
    read: str | None
    """The schema with which they are read; None for the newest of a subject."""
    registry: SchemaRegistry | None
    subject: str | None
    name: str
    references: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """The schemas that `read` names."""

    def __init__(
        self,
        schema: Any = None,
        *,
        reader_schema: Any = None,
        registry: SchemaRegistry | None = None,
        subject: str | None = None,
        name: str = "value",
    ) -> None:
        require_one("Avro", schema, registry, subject)
        if registry is not None and reader_schema is not None:
            raise InvalidArgument("Avro(registry=) reads with the schema in schema=: leave reader_schema= out")
        own = None if schema is None else _text(schema)
        read = own if reader_schema is None else _text(reader_schema)
        values = (None if registry is not None else own, read, registry, subject, name, ())
        for attribute, value in zip(self.__dataclass_fields__, values, strict=True):
            object.__setattr__(self, attribute, value)
        if read is not None:
            columns_of(self._reader, name)
        if registry is None and isinstance(found := _decoder(own or "", (), read or "", (), name), str):
            raise InvalidArgument(f"reader_schema= of Avro(...) does not fit schema=: {found}")

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return columns_of(self._settled._reader, self._settled.name)

    @cached_property
    def _settled(self) -> Avro:
        return self.settled()

    @property
    def _reader(self) -> AvroType:
        return _type(self.read or "", self.references)

    def settled(self, topic: str | None = None, part: str = "value") -> Avro:
        if self.read is not None:
            return self
        assert self.registry is not None
        found = subject_schema(self.registry, self.subject, topic, part, "AVRO", "Avro")
        name = part if self.name == "value" else self.name
        return _with(self, read=found.text, references=found.texts, name=name)

    def decode(self, values: pa.BinaryArray) -> Decoded:
        settled = self._settled
        if settled.registry is None:
            found = settled._decoder(settled.written or "", ())
            assert not isinstance(found, str)
            return found(values)
        return decoded_by_schema(values, settled.schema, settled._of_number)

    def _of_number(self, number: int) -> Decoder | str:
        assert self.registry is not None
        found = written_schema(self.registry, number, "AVRO")
        if isinstance(found, str):
            return found
        decoder = self._decoder(found.text, found.texts)
        return f"schema {number}: {decoder}" if isinstance(decoder, str) else decoder.read

    def _decoder(self, written: str, references: tuple[tuple[str, str], ...]) -> AvroDecoder | str:
        return _decoder(written, references, self.read or "", self.references, self.name)


def _with(format: Avro, **changes: Any) -> Avro:
    copy = object.__new__(Avro)
    for attribute in format.__dataclass_fields__:
        object.__setattr__(copy, attribute, changes.get(attribute, getattr(format, attribute)))
    return copy


def _text(schema: Any) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema)


@lru_cache(maxsize=256)
def _type(text: str, references: tuple[tuple[str, str], ...]) -> AvroType:
    return avro_type(text, [text for _, text in references])


@lru_cache(maxsize=256)
def _decoder(
    written: str, references: tuple[tuple[str, str], ...], read: str, others: tuple[tuple[str, str], ...], name: str
) -> AvroDecoder | str:
    """The decoder of two schemas, or the reason why there is none."""
    try:
        return AvroDecoder.of(_type(written, references), _type(read, others), name)
    except (Mismatch, InvalidArgument) as error:
        return str(error)


__all__ = ["Avro"]
