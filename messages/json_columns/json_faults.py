"""The fault of a text of JSON that cannot be read as columns, in words.

Guarded by tests/messages/test_message_formats.py and tests/changelogs/test_changelogs_json.py.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from .json_texts import parsed
from .json_values import UNREADABLE, array_of, storable, value_of

LONGEST = 40
"""The most characters of a value that are shown."""


def fault_of(text: str | bytes, schema: pa.Schema) -> str:
    """The reason for which a text is no object of these columns.

    >>> columns = pa.schema({"id": pa.int64(), "after": pa.struct({"amount": pa.decimal128(10, 2)})})
    >>> fault_of('{"id": 1, "after": {"amount": "12,x"}}', columns)
    "member 'after.amount' is no decimal128(10, 2): '12,x'"
    >>> fault_of("[1]", columns)
    'it is no object of JSON'
    """
    try:
        value = parsed(text)
    except UNREADABLE as error:
        return f"it is no JSON: {error}"
    if not isinstance(value, dict):
        return "it is no object of JSON"
    for field in schema:
        if (wrong := _wrong(value.get(field.name), field.type, field.name)) is not None:
            path, kind, member = wrong
            shown = repr(member)
            cut = shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}..."
            return f"member {path!r} is no {kind}: {cut}"
    return "it is no such object of JSON"


def _wrong(value: Any, kind: pa.DataType, path: str) -> tuple[str, pa.DataType, Any] | None:
    """The innermost member that is not of its type, with its path; None if all are."""
    try:
        array_of(pa.array([value_of(value, kind)], storable(kind)), kind)
    except UNREADABLE:
        if pa.types.is_struct(kind) and isinstance(value, dict):
            for field in kind:
                if (inner := _wrong(value.get(field.name), field.type, f"{path}.{field.name}")) is not None:
                    return inner
        return path, kind, value
    return None


__all__ = ["fault_of"]
