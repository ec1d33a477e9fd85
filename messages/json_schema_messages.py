"""Messages of JSON, each with the number of its JSON Schema in a registry.

Guarded by tests/messages/test_json_schema.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from ..errors import TypeMismatch
from .json_messages import Json
from .json_schema import json_columns
from .message_format import Decoded, MessageFormat
from .registry import SchemaRegistry
from .spans.cursors import binary_of
from .subjects import require_one, subject_schema, written_schema
from .wire_header import Decoder, decoded_by_schema


@dataclass(frozen=True, init=False)
class JsonSchema(MessageFormat):
    """Each message is the number of a JSON Schema in a registry, and then an object of JSON, which `Json` reads.

    A message is not compared with its schema: it is bad if it is no object, or if a member has not the type of its
    column.

    Parameters
    ----------
    schema
        The columns. By default those that the newest schema of the subject describes, as it is when the flow is built.
    registry
        The registry.
    subject
        The subject; by default the name of the topic with `-value` or `-key`.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> registry = uc.SchemaRegistry("https://registry.example")
    >>> uc.messages.JsonSchema(pa.schema({"n": pa.int64()}), registry=registry).schema.names
    ['n']
    """

    columns: pa.Schema | None
    """The columns; None for those of the newest schema of a subject."""
    registry: SchemaRegistry
    subject: str | None

    def __init__(
        self, schema: pa.Schema | None = None, *, registry: SchemaRegistry, subject: str | None = None
    ) -> None:
        require_one("JsonSchema", schema, registry, subject)
        if schema is not None and not isinstance(schema, pa.Schema):
            raise TypeMismatch(f"schema= of JsonSchema(...) takes an Arrow schema of the columns, not {schema!r}")
        columns = None if schema is None else Json(schema).schema
        for attribute, value in zip(self.__dataclass_fields__, (columns, registry, subject), strict=True):
            object.__setattr__(self, attribute, value)

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._settled.columns

    @cached_property
    def _settled(self) -> JsonSchema:
        return self.settled()

    def settled(self, topic: str | None = None, part: str = "value") -> JsonSchema:
        if self.columns is not None:
            return self
        found = subject_schema(self.registry, self.subject, topic, part, "JSON", "JsonSchema")
        return JsonSchema(json_columns(found.text), registry=self.registry, subject=self.subject)

    def decode(self, values: pa.BinaryArray) -> Decoded:
        return decoded_by_schema(values, self.schema, self._of_number)

    def _of_number(self, number: int) -> Decoder | str:
        found = written_schema(self.registry, number, "JSON")
        if isinstance(found, str):
            return found
        format = Json(self.schema)
        return lambda messages: format.decode(binary_of(messages.data, messages.pos, messages.end))


__all__ = ["JsonSchema"]
