"""Rows as plain values for the programs that read them: JSON, one object a row, and CSV.

Guarded by tests/cli/test_row_output.py.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

_PART = 10_000
"""The rows that are turned into values of Python at a time."""


def json_lines(table: pa.Table) -> Iterator[str]:
    """A JSON object for each row; a float that JSON does not have is null.

    >>> list(json_lines(pa.table({"n": [1, 2], "x": [0.5, float("nan")]})))
    ['{"n": 1, "x": 0.5}', '{"n": 2, "x": null}']
    """
    for values in _rows(table):
        yield json.dumps(dict(zip(table.column_names, map(plain, values), strict=True)), ensure_ascii=False)


def csv_text(table: pa.Table) -> str:
    r"""The rows as CSV with a line of names; null is empty, and a list or a struct is its JSON.

    >>> csv_text(pa.table({"name": ["a, b", None], "n": [[1, 2], []]}))
    'name,n\n"a, b","[1, 2]"\n,[]\n'
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.column_names)
    nested = [pt.is_nested(kind) for kind in table.schema.types]
    for values in _rows(table):
        writer.writerow(
            json.dumps(plain(value), ensure_ascii=False) if deep and value is not None else _text(value)
            for value, deep in zip(values, nested, strict=True)
        )
    return out.getvalue()


def plain(value: Any) -> Any:
    """A value in the form in which JSON has it.

    >>> from datetime import UTC
    >>> plain({"at": datetime(2024, 5, 1, tzinfo=UTC), "took": timedelta(minutes=1)})
    {'at': '2024-05-01T00:00:00Z', 'took': '0:01:00'}
    """
    match value:
        case dict():
            return {str(name): plain(part) for name, part in value.items()}
        case list() | tuple():
            return [plain(part) for part in value]
        case float():
            return value if math.isfinite(value) else None
        case None | bool() | int() | str():
            return value
        case _:
            return _text(value)


def _text(value: Any) -> Any:
    """A value of which CSV has the text; others are as they are."""
    match value:
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date() | time():
            return value.isoformat()
        case bool():
            return str(value).lower()
        case timedelta() | Decimal():
            return str(value)
        case bytes():
            return value.hex()
        case _:
            return value


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    for start in range(0, table.num_rows, _PART):
        part = table.slice(start, _PART)
        # A loop over rows, because JSON and CSV are written value by value.
        yield from zip(*(column.to_pylist() for column in part.columns), strict=True)


__all__ = ["csv_text", "json_lines", "plain"]


def __dir__() -> list[str]:
    return __all__
