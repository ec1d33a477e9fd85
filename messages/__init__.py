"""The values of messages as Arrow columns."""

from __future__ import annotations

from .formats import format_of
from .json_messages import Json
from .message_format import Decoded, MessageFormat
from .text_messages import Bytes, Text

__all__ = ["Bytes", "Decoded", "Json", "MessageFormat", "Text", "format_of"]


def __dir__() -> list[str]:
    return __all__
