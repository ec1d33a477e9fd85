"""The values of messages as Arrow columns."""

from __future__ import annotations

from .avro_messages import Avro
from .formats import format_of
from .json_messages import Json
from .message_format import Decoded, MessageFormat
from .registry import SchemaRegistry
from .text_messages import Bytes, Text

__all__ = ["Avro", "Bytes", "Decoded", "Json", "MessageFormat", "SchemaRegistry", "Text", "format_of"]


def __dir__() -> list[str]:
    return __all__
