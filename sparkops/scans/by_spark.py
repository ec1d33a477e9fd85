"""Parquet files that Spark itself reads, where nothing but Spark sees their rows.

Queries 2 and 3 of NEXMark, which filter 2 million events, take 1.2 to 1.5 times as long where our tasks read them.

Guarded by tests/sparkops/routes/test_native_rows.py.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from ...files.file_format import FAULTS
from ...files.links import require_inside
from ...files.listing import lost_links
from ..files_input import FilesInput
from ..inputs import DataFrameInput
from ..sql_types import spark_schema
from .faster import CHECKED, require_settings, sizes_if_alike

_NOT_PLAIN = set("*?[]{}\\%#:= ")
"""Characters of paths that have a meaning in the patterns, addresses and folders of Spark."""


def by_spark(input: FilesInput, columns: frozenset[str]) -> DataFrameInput | None:
    """These columns of files as a DataFrame of Spark; None if it could have other rows, or of too many files."""
    fmt = replace(input.format, schema=pa.schema([field for field in input.schema if field.name in columns]))
    if fmt.format != "parquet" or input.streaming or fmt.filter is not None or fmt.on_bad_file != "error":
        return None
    if any(path.address for path in input.paths):  # Spark may lack a jar, and credentials
        return None
    try:
        require_settings(input.spark)
        files = input.list_files_now()
        paths = [file.path.removeprefix("file:") for file in files]
        if not 0 < len(files) <= CHECKED or any(_NOT_PLAIN & set(path) for path in paths):
            return None
        for path in [*paths, *lost_links(input.listed_here())]:
            require_inside(path, input.format.paths)
        if 0 in sizes_if_alike(paths, fmt):
            return None
        # Without an option of its own a DataFrame that is cached stands in for one of the same files after a change.
        reader = input.spark.read.schema(spark_schema(fmt.schema)).option("uncombine.listed", hash(tuple(files)))
        df = reader.parquet(*(file.path for file in files))
    except FAULTS:
        return None  # Spark would read other values, or the tasks say what is wrong with a file
    named = ", ".join(path.words for path in input.paths)
    made = DataFrameInput(df, text=f"parquet files at {named}, read by Spark itself", files=False)
    return made if made.schema.types == fmt.schema.types else None


__all__ = ["by_spark"]
