"""Methods of texts as columns of Spark, where both have the same values.

Spark compares bytes and counts code points, as Arrow does. Small and capital letters, white space and regular
expressions are those of Java, so they stay with Arrow, as do offsets from the end. Guarded by
tests/sparkops/routes/test_native_expressions.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812

from ...combiners.expressions.text import Named

if TYPE_CHECKING:
    from pyspark.sql import Column

_MOST = 2**31 - 1
"""Spark's numbers of characters have 32 bits."""


def text_method(op: str, text: Column, args: Sequence[Any]) -> Column | None:
    """Spark's column for a method of texts with its arguments; None if its values could be others."""
    named = {arg.name: arg.value for arg in args if isinstance(arg, Named)}
    plain = [arg for arg in args if not isinstance(arg, Named)]
    return _METHODS[op](text, *plain, **named) if op in _METHODS else None


def joined_texts(texts: Sequence[Any], separator: str = "") -> Column:
    """The texts one after the other; null if one of them is."""
    parts = [part for text in texts for part in (F.lit(separator), text)]
    return F.concat(*(parts[1:] if separator else texts))


def _stripped(function: Callable[..., Column]) -> Callable[..., Column | None]:
    return lambda text, characters=None: None if characters is None else function(text, F.lit(characters))


def _contains(text: Column, pattern: str, literal: bool = False) -> Column | None:
    return text.contains(F.lit(pattern)) if literal else None


def _replaced(text: Column, pattern: str, value: str, literal: bool = False) -> Column | None:
    return F.replace(text, F.lit(pattern), F.lit(value)) if literal else None


def _slice(text: Column, offset: int, length: int = _MOST) -> Column | None:
    return F.substring(text, offset + 1, length) if offset >= 0 else None


def _part(text: Column, by: str, index: int) -> Column | None:
    if index < 0 or r"\E" in by:
        return None
    return F.get(F.split(text, rf"\Q{by}\E", -1), F.lit(index))


_METHODS: Mapping[str, Callable[..., Column | None]] = {
    "str.contains": _contains,
    "str.starts_with": lambda text, prefix: text.startswith(F.lit(prefix)),
    "str.ends_with": lambda text, suffix: text.endswith(F.lit(suffix)),
    "str.replace_all": _replaced,
    "str.strip_chars": _stripped(F.btrim),
    "str.strip_chars_start": _stripped(F.ltrim),
    "str.strip_chars_end": _stripped(F.rtrim),
    "str.slice": _slice,
    "str.split_part": _part,
    "str.len_chars": lambda text: F.length(text).cast("bigint"),
    "str.len_bytes": lambda text: F.octet_length(text).cast("bigint"),
}
