"""The values of messages as Arrow columns."""

from __future__ import annotations

from .avro_messages import Avro
from .csv_messages import Csv
from .formats import format_of
from .json_messages import Json
from .json_schema_messages import JsonSchema
from .message_format import Decoded, MessageFormat
from .proto_messages import Protobuf
from .registry import SchemaRegistry
from .text_messages import Bytes, Text

__all__ = [
    "Avro",
    "Bytes",
    "Csv",
    "Decoded",
    "Json",
    "JsonSchema",
    "MessageFormat",
    "Protobuf",
    "SchemaRegistry",
    "Text",
    "format_of",
]


def __dir__() -> list[str]:
    return __all__
