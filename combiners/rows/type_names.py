"""The types of Arrow by their texts.

Guarded by tests/combiners/test_type_names.py.
"""

from __future__ import annotations

import re

import pyarrow as pa

_OF_TIME = re.compile(r"timestamp\[(\w+)(?:, tz=(.+))?\]")
_DECIMAL = re.compile(r"decimal(\d*)\((\d+), ?(-?\d+)\)")


def type_named(text: str) -> pa.DataType | None:
    """The type of Arrow with this text; None for another text.

    >>> type_named("timestamp[us, tz=UTC]"), type_named("decimal128(9, 2)"), type_named("decimal(9,2)")
    (TimestampType(timestamp[us, tz=UTC]), Decimal128Type(decimal128(9, 2)), Decimal128Type(decimal128(9, 2)))
    >>> type_named("int64"), type_named("list<item: int64>")
    (DataType(int64), None)
    """
    if found := _OF_TIME.fullmatch(text):
        return pa.timestamp(found[1], found[2])
    try:
        if found := _DECIMAL.fullmatch(text):
            kind: pa.DataType = getattr(pa, f"decimal{found[1] or 128}")(int(found[2]), int(found[3]))
            return kind
        return pa.type_for_alias(text)
    except (ValueError, AttributeError):
        return None


__all__ = ["type_named"]
