"""Columns in the names of folders, such as `day=2016-01-20/user=a%20b`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from ..combiners.rows.decimal_casts import cast_exactly
from ..errors import UnreadableFile
from ..windows.times import UTC_MICROS, timestamp
from .paths import absolute, parts_of

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"

_INT = re.compile(r"[+-]?\d{1,19}")
_DOUBLE = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|NaN|[+-]?Infinity")
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?")


def folder_values(path: str, base: str) -> dict[str, str | None]:
    """The columns in the names of the folders between `base` and a file, as text; None is null.

    >>> from uncombine.files.partitions import folder_values
    >>> folder_values("file:/data/day=2016-01-20/user=a%20b/x.parquet", "/data")
    {'day': '2016-01-20', 'user': 'a b'}
    """
    here, above = parts_of(path), parts_of(absolute(base))
    prefix = above[1].rstrip("/") + "/"
    if here[0] != above[0] or not here[1].startswith(prefix):
        return {}
    values: dict[str, str | None] = {}
    for folder in here[1][len(prefix) :].split("/")[:-1]:
        name, equals, value = folder.partition("=")
        if equals and name:
            values[unquote(name)] = None if value == NULL_FOLDER else unquote(value)
    return values


def infer_types(values: Iterable[Mapping[str, str | None]]) -> dict[str, pa.DataType]:
    """The type of each column: the narrowest of int, bigint, double, date, timestamp and text that fits all values.

    >>> from uncombine.files.partitions import infer_types
    >>> infer_types([{"day": "2016-01-20", "n": "1"}, {"day": "2016-01-21", "n": "1.5"}])
    {'day': DataType(date32[day]), 'n': DataType(double)}
    """
    seen: dict[str, set[str | None]] = {}
    for row in values:
        for name, value in row.items():
            seen.setdefault(name, set()).add(value)
    return {name: _common([_type(text) for text in texts if text is not None]) for name, texts in seen.items()}


def folder_scalar(text: str | None, to: pa.DataType, name: str, path: str) -> pa.Scalar:
    """The value in the name of a folder, as a scalar of the type of its column."""
    if text is None:
        return pa.scalar(None, to)
    try:
        return _scalar(text, to)
    except (ValueError, TypeError, OverflowError, pa.ArrowException):
        raise UnreadableFile(
            f"{path}: the folder {name}={text} does not have the type of column {name!r}, {to}: "
            f"give schema= with a type that takes all folders, such as string",
            path,
        ) from None


def _scalar(text: str, to: pa.DataType) -> pa.Scalar:
    if pa.types.is_timestamp(to):
        return pa.scalar(timestamp(text), pa.int64()).cast(pa.timestamp("us")).cast(to)
    if pa.types.is_date32(to):
        return pa.scalar(_date(text), to)
    if pa.types.is_floating(to):
        return pa.scalar(float(text), pa.float64()).cast(to)
    if pa.types.is_integer(to):
        return pa.scalar(int(text), to)
    return cast_exactly(pa.scalar(text), to)


def _date(text: str) -> date:
    if not _DATE.fullmatch(text):
        raise ValueError(text)
    year, month, day = map(int, text.split("-"))
    return date(year, month, day)


def _type(text: str) -> pa.DataType:
    if _INT.fullmatch(text):
        whole = int(text)
        if -(2**31) <= whole < 2**31:
            return pa.int32()
        if -(2**63) <= whole < 2**63:
            return pa.int64()
        # Spark reads these as decimals; as doubles two different ones could be equal.
        return pa.string()
    if _DOUBLE.fullmatch(text) and not text.lstrip("+-").isdigit():
        return pa.float64()
    for pattern, read, kind in ((_DATE, _date, pa.date32()), (_TIME, _time, UTC_MICROS)):
        if pattern.fullmatch(text):
            try:
                read(text)
            except ValueError:
                return pa.string()
            return kind
    return pa.string()


def _time(text: str) -> Any:
    return datetime.fromisoformat(text)


_NUMBERS = [pa.int32(), pa.int64(), pa.float64()]
_TIMES = [pa.date32(), UTC_MICROS]


def _common(types: list[pa.DataType]) -> pa.DataType:
    for family in (_NUMBERS, _TIMES):
        if types and all(kind in family for kind in types):
            return max(types, key=family.index)
    return pa.string()
