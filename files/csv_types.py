"""The types of the columns of CSV files that have none: Arrow's, but numbers that begin with a zero stay texts.

Such numbers are names, of places or articles, and 01234 is another one than 1234.

Guarded by tests/files/test_csv_types.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

_NAMES = r"^[+-]?0[0-9]+$"
"""A number that is a name."""


def csv_beginning(
    data: bytes, read: pacsv.ReadOptions, parse: pacsv.ParseOptions, convert: Mapping[str, Any]
) -> pa.Table:
    """The first rows of a file in the types that their values have.

    >>> text = b" ".join([b"zip,n", b"01234,0", b"99999,10", b""]).replace(b" ", bytes([10]))
    >>> csv_beginning(text, pacsv.ReadOptions(), pacsv.ParseOptions(), {}).schema.types
    [DataType(string), DataType(int64)]
    """

    def table(types: Mapping[str, pa.DataType]) -> pa.Table:
        return pacsv.read_csv(pa.BufferReader(data), read, parse, pacsv.ConvertOptions(column_types=types, **convert))

    first = table({})
    names = first.column_names
    kinds = {field.name: field.type for field in first.schema if names.count(field.name) == 1}
    numbers = [name for name, kind in kinds.items() if pa.types.is_integer(kind) or pa.types.is_floating(kind)]
    texts = table(dict.fromkeys(numbers, pa.string())) if numbers else first
    kept = [name for name in numbers if pc.any(pc.match_substring_regex(texts[name], _NAMES)).as_py()]
    return table(dict.fromkeys(kept, pa.string())) if kept else first


__all__ = ["csv_beginning"]
