"""The format that a user names: by a word, by the columns of JSON, or itself.

Guarded by tests/messages/test_message_formats.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ..errors import InvalidArgument, TypeMismatch, nearest
from .json_messages import Json
from .message_format import MessageFormat
from .text_messages import Bytes, Text

_WORDS: dict[str, Callable[[str], MessageFormat]] = {"string": Text, "text": Text, "binary": Bytes, "bytes": Bytes}


def format_of(value: Any, what: str = "value=", name: str = "value") -> MessageFormat:
    """The format of messages for the text "string" or "binary", the columns of JSON, or a format.

    `what` names the argument in errors, and `name` is the column of texts and bytes.

    >>> import pyarrow as pa, uncombine as uc
    >>> uc.messages.format_of("string", "key=", "key")
    Text(name='key')
    >>> uc.messages.format_of(pa.schema({"n": pa.int64()})).schema.names
    ['n']
    """
    if isinstance(value, MessageFormat):
        return value
    if isinstance(value, pa.Schema):
        return Json(value)
    if not isinstance(value, str):
        raise TypeMismatch(
            f"{what} takes 'string', 'binary', an Arrow schema of JSON, or a format such as uc.messages.Avro(...), not "
            f"{value!r}"
        )
    if value not in _WORDS:
        raise InvalidArgument(f"{what} knows no format {value!r}: {nearest(value, _WORDS)}")
    return _WORDS[value](name)


__all__ = ["format_of"]
