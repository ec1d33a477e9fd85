"""Parquet files whose values Spark would read in another way than this library does.

Guarded by tests/sparkops/scans/test_scans.py.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.types as pt

from .conform import standard
from .file_format import FileFormat
from .parquet_files import ParquetSource

_OLD_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


def otherwise(source: ParquetSource, fmt: FileFormat) -> str | None:
    """The difference from what Spark would read, as the end of a sentence about the file; None if there is none."""
    metadata = source.fragment.metadata.metadata or {}
    writer = metadata.get(b"org.apache.spark.version", b"4")
    if any(name in metadata for name in _OLD_CALENDAR) or int(writer.partition(b".")[0]) < 3:
        return "has times in the old calendar"
    has = source.schema
    spelled = Counter(name.casefold() for name in has.names)
    for name in fmt.schema.names:
        if spelled[name.casefold()] > (name in has.names):
            return f"has a column that differs from {name!r} by case alone"
        if name in has.names and not _alike(source, has.field(name), fmt.schema.field(name).type):
            return f"has {name!r} as {has.field(name).type}, and not as {fmt.schema.field(name).type}"
    return None


def _alike(source: ParquetSource, field: pa.Field, to: pa.DataType) -> bool:
    """True if Spark reads a column of a file without a cast, into this type."""
    if standard(field.type) != to or any(pt.is_null(leaf) or pt.is_float16(leaf) for leaf in _leaves(field.type)):
        return False
    if pt.is_timestamp(field.type):
        return field.type.unit != "ns" and (field.type.tz is not None or _is_int96(source, field.name))
    return not pt.is_nested(field.type) or not any(map(pt.is_timestamp, _leaves(field.type)))


def _is_int96(source: ParquetSource, name: str) -> bool:
    columns = source.fragment.metadata.schema
    places = (i for i in range(len(columns)) if columns.column(i).path == name)
    return any(columns.column(i).physical_type == "INT96" for i in places)


def _leaves(kind: pa.DataType) -> list[pa.DataType]:
    """The types without fields in a type."""
    if not pt.is_nested(kind):
        return [kind]
    return [leaf for i in range(kind.num_fields) for leaf in _leaves(kind.field(i).type)]
