"""Texts of JSON that anybody may have written: which of them are text at all, and values of them one by one.

A text is judged by itself, so that it is good or bad whatever texts came with it.

Guarded by tests/changelogs/test_changelogs_fuzz.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

MAX_DEPTH = 500
"""The levels of nesting in a text. Python's reader ends at a number of levels that depends on its caller."""

LONGEST_NUMBER = 400
"""The digits of a whole number that is read. No column has room for a longer one."""

_QUOTED = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
"""A text within JSON, or the rest after a quote that has no partner."""

_HAS_NEGATIVE_ZERO = re.compile(r"-0\s*[,\]}]")

_BRACKETS = {ord("{"): 1, ord("["): 1, ord("}"): -1, ord("]"): -1}
_STEPS = np.array([_BRACKETS.get(byte, 0) for byte in range(256)], np.int64)


@dataclass(frozen=True)
class LongNumber:
    """Stands for a whole number that is longer than any column has room for; among fractions it is an infinity."""

    nearest: float


class _NegativeZero(int):
    """The whole number -0, whose sign counts among fractions."""

    def __str__(self) -> str:
        return "-0"


def parsed(text: str | bytes, whole: Callable[[str], Any] | None = None) -> Any:
    """The value of a text, with fractions as texts and whole numbers as `whole` makes them; may raise `UNREADABLE`.

    >>> parsed('{"x": 1, "y": 1.50}')
    {'x': 1, 'y': '1.50'}
    """
    if is_deep(text):
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
    if isinstance(text, str):
        text = text.removeprefix("\ufeff")
    if whole is None and _HAS_NEGATIVE_ZERO.search(text if isinstance(text, str) else text.decode(errors="replace")):
        whole = _whole
    try:
        return json.loads(text, parse_float=str, parse_int=whole)
    except (json.JSONDecodeError, UnicodeError):
        raise
    except ValueError:  # Python reads no whole number of some thousand digits
        return json.loads(text, parse_float=str, parse_int=_whole)


def _whole(digits: str) -> int | LongNumber:
    if digits == "-0":
        return _NegativeZero()
    return int(digits) if len(digits) <= LONGEST_NUMBER else LongNumber(float(digits))


def is_deep(text: str | bytes) -> bool:
    """True if a text has more than `MAX_DEPTH` objects and lists inside each other.

    >>> is_deep("[" * 501 + "]" * 501), is_deep('["' + "[" * 501 + '"]')
    (True, False)
    """
    if len(text) <= MAX_DEPTH:
        return False
    shown = text if isinstance(text, str) else text.decode(errors="replace")
    if shown.count("{") + shown.count("[") <= MAX_DEPTH:
        return False
    outside = _QUOTED.sub("", shown).encode("ascii", "replace")
    return int(np.cumsum(_STEPS[np.frombuffer(outside, np.uint8)]).max(initial=0)) > MAX_DEPTH


def deep(texts: pa.Array) -> np.ndarray:
    """A mask of the texts, with offsets, that are nested too deep. Texts with few brackets cost little."""
    mask = np.zeros(len(texts), np.bool_)
    _, places, data = texts.buffers()
    if data is None or len(texts) == 0:
        return mask
    kind = np.int64 if texts.type in (pa.large_string(), pa.large_binary()) else np.int32
    ends = np.frombuffer(places, kind)[texts.offset : texts.offset + len(texts) + 1]
    if int(np.diff(ends).max()) <= MAX_DEPTH:
        return mask
    inside = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
    openers = np.flatnonzero((inside & 0xDF) == ord("["))  # both [ and {
    counts = np.diff(np.searchsorted(openers, ends - ends[0]))
    for place in np.flatnonzero(counts > MAX_DEPTH):  # few: long lists of objects, and those with bad intent
        text = texts[int(place)]
        mask[place] = text.is_valid and is_deep(text.as_buffer().to_pybytes())
    return mask


def is_utf8(texts: pa.Array) -> bool:
    r"""True if all texts are text. Spark gives a column of bytes the type of texts without a look at them.

    >>> bad = pa.array([b"a", b"\xff"])
    >>> is_utf8(bad), is_utf8(bad.view(pa.string())), is_utf8(pa.array(["é"]))
    (False, False, True)
    """
    try:
        if pa.types.is_binary(texts.type) or pa.types.is_large_binary(texts.type):
            texts.cast(pa.string())
        else:
            texts.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def utf8_of(texts: pa.Array) -> pa.Array:
    """The texts, with null in place of those that are no text."""
    if is_utf8(texts):
        return texts.cast(pa.string())
    out = list[str | None]()
    for one in texts:  # one by one, to find those that are none
        try:
            out.append(one.as_buffer().to_pybytes().decode() if one.is_valid else None)
        except UnicodeDecodeError:
            out.append(None)
    return pa.array(out, pa.string())


def plain_text(text: str) -> str:
    """The text, if it can be written; raises for half a surrogate pair, which JSON can name but no file can have."""
    if not text.isascii():
        text.encode()
    return text


def shown(error: Exception) -> str:
    """The text of an error about a message, which may have any value of the message in it: short, and fit to print."""
    text = str(error).encode("ascii", "backslashreplace").decode() if not str(error).isprintable() else str(error)
    return text if len(text) <= 200 else f"{text[:200]}..."


__all__ = ["MAX_DEPTH", "LongNumber", "deep", "is_deep", "is_utf8", "parsed", "plain_text", "shown", "utf8_of"]
