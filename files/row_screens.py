"""Rows of which a look at their text shows that they cannot be read, so that a file of bad rows is not read row by row.

A screen is for speed alone: what it lets through is tried by Arrow, and what it refuses Arrow refuses too. Each knows
the commonest faults: a row of another length, a text or a fraction in the place of a whole number, no JSON at all.

Guarded by tests/files/test_row_screens.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from ..combiners.rows.decimal_casts import far_in, far_pattern
from .unreadable_rows import TextRow

_INTEGER = r"^[ \t]*(-?[0-9]+|0[xX][0-9a-fA-F]+)[ \t]*$"
_TIME = r"^[-+0-9TZ:., \t]*$"


def _pattern(kind: pa.DataType, point: str) -> str | None:
    """A pattern that all texts of a type have in CSV; None if their text says too little."""
    if pt.is_integer(kind):
        return _INTEGER
    if pt.is_floating(kind) or pt.is_decimal(kind):
        return rf"^[-+0-9einfatyINFATYE.{re.escape(point)} \t]*$"
    return _TIME if pt.is_temporal(kind) and not pt.is_duration(kind) else None


def screened_csv(
    rows: Sequence[TextRow], raw: Callable[[bytes, Callable[[Any], str]], pa.Table], kinds: pa.Schema, point: str
) -> np.ndarray:
    """A mask of rows of CSV with too many or too few values, or with a value that is none of its type.

    `raw` reads the rows with their values as bytes, and hands those of another length to a function.
    """
    bad = np.zeros(len(rows), np.bool_)
    odd: list[int] = []

    def skip(row: Any) -> str:
        odd.append(row.number - 1)
        return "skip"

    data = b"\n".join([*(row.text for row in rows), b""])
    is_text = _is_utf8(data)
    if not is_text:  # Arrow shows rows of another length as text
        data = data.decode("latin-1").encode()
    table = raw(data, skip)
    bad[odd] = True
    places = np.flatnonzero(~bad)
    if table.num_rows != len(places):
        return bad & False  # a row is several for Arrow, so that nothing is certain
    for field in kinds:
        values = table.column(field.name)
        if pt.is_string(field.type):
            wrong = np.zeros(len(values), np.bool_) if is_text else _no_text(values)
        elif (pattern := _pattern(field.type, point)) is not None:
            wrong = np.asarray(pc.invert(pc.match_substring_regex(values, pattern)).fill_null(False))
        else:
            continue
        bad[places[wrong]] = True
    return bad


def _no_text(values: pa.ChunkedArray) -> np.ndarray:
    """A mask of bytes that are no UTF-8, each of which is a letter of Latin-1 here."""
    wrong = np.asarray(pc.match_substring_regex(values, r"[^\x00-\x7f]").fill_null(False)).copy()
    for place in np.flatnonzero(wrong):  # a loop over those beyond ASCII, since Arrow checks all or none
        wrong[place] = not _is_utf8(values[int(place)].as_py().decode().encode("latin-1"))
    return wrong


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class _Whole(str):
    """A whole number as JSON has it."""


class _Fraction:
    """A number that is not whole."""


_FRACTION = _Fraction()


def screened_json(rows: Sequence[TextRow], kinds: pa.Schema) -> np.ndarray:
    """A mask of lines that are no JSON object, or have a value that is none of its type."""
    checks = {field.name: check for field in kinds if (check := _check_of(field.type)) is not None}
    return np.fromiter((_is_no_row(row.text, checks) for row in rows), np.bool_, len(rows))


def _is_no_row(text: bytes, checks: dict[str, Callable[[Any], bool]]) -> bool:
    try:
        value = _READ(text.decode("utf-8", "surrogateescape"))
    except RecursionError:
        return False
    except ValueError as error:
        # Arrow takes also Inf, a mark of the order of bytes, and several objects in a line.
        return b"Inf" not in text and not text.startswith(b"\xef\xbb\xbf") and "Extra data" not in str(error)
    if not isinstance(value, dict):
        return value is not None
    return any(name in value and value[name] is not None and not check(value[name]) for name, check in checks.items())


_READ = json.JSONDecoder(strict=False, parse_float=lambda text: _FRACTION, parse_int=_Whole).decode


def _check_of(kind: pa.DataType) -> Callable[[Any], bool] | None:
    """True for the values of JSON that may be of a type; None if their text says too little."""
    if pt.is_integer(kind):
        bits = kind.bit_width
        least, most = (0, 2**bits - 1) if pt.is_unsigned_integer(kind) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return lambda value: isinstance(value, _Whole) and len(value) <= 20 and least <= int(value) <= most
    if pt.is_floating(kind):
        return lambda value: isinstance(value, _Whole | _Fraction | float)
    if pt.is_boolean(kind):
        return lambda value: isinstance(value, bool)
    if pt.is_string(kind) or pt.is_timestamp(kind) or pt.is_date(kind):
        return _is_text
    if pt.is_struct(kind) or pt.is_list(kind):
        return lambda value: isinstance(value, dict if pt.is_struct(kind) else list)
    return None


def _is_text(value: Any) -> bool:
    if not isinstance(value, str) or isinstance(value, _Whole):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # bytes that are no UTF-8, or half a surrogate pair
        return False
    return True


def far_decimals(block: bytes, fields: list[pa.Field]) -> bool:
    """True if a decimal in lines of JSON has more digits after its point than Arrow's parser takes without danger."""
    kinds = {field.name: field.type for field in fields}
    far = far_in(kinds.values())
    if far is None or not far.search(block):
        return False
    lines = (line for line in block.split(b"\n") if far.search(line))
    try:
        return any(_is_far(json.loads(line, parse_float=str, parse_int=str), kinds) for line in lines)
    except ValueError:  # no JSON, so that nobody knows where it is
        return True


def _is_far(value: Any, kind: Any) -> bool:
    if isinstance(kind, dict):
        return isinstance(value, dict) and any(_is_far(value.get(name), inner) for name, inner in kind.items())
    if pt.is_struct(kind):
        return _is_far(value, {field.name: field.type for field in kind})
    if isinstance(value, list):
        return pt.is_nested(kind) and any(_is_far(item, kind.field(0).type) for item in value)
    return pt.is_decimal(kind) and isinstance(value, str) and re.search(far_pattern(kind), value) is not None


def depth(block: bytes) -> int:
    """The deepest nesting of values, with the brackets in texts."""
    data = np.frombuffer(block, np.uint8)
    # [ and { differ in one bit, and so do ] and }.
    opens, closes = (data & 0xDF) == ord("["), (data & 0xDF) == ord("]")
    return int(np.cumsum(opens.astype(np.int32) - closes).max(initial=0))


__all__ = ["depth", "far_decimals", "screened_csv", "screened_json"]
