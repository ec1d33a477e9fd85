"""The least event time of a data file, from statistics, from the name of a folder, or from the column itself.

Guarded by tests/files/test_least_times.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from ..combiners.rows.columns import flat
from ..windows import time_column
from .file_format import FAULTS, FileFormat, Split, unreadable
from .folder_columns import folders_of
from .links import require_inside
from .parquet_files import ParquetSource
from .paths import locate
from .reading import read


def least_time(form: FileFormat, column: str, path: str) -> int | None:
    r"""The least time in a column of a file, in microseconds; None if it has none. Raises if it cannot be read.

    The statistics of Parquet files have it. Of other files, and of those without, the column is read.

    >>> import pathlib, tempfile
    >>> from uncombine.files.reading import describe
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("ts,n\n1970-01-01T00:00:03Z,1\n1970-01-01T00:00:02Z,1\n")
    >>> least_time(describe(str(path)), "ts", str(path))
    2000000
    """
    try:
        times = [least for array in _candidates(form, column, path) if (least := _least(array)) is not None]
    except FAULTS as error:
        raise unreadable(path, error) from None
    return min(times, default=None)


def _candidates(form: FileFormat, column: str, path: str) -> Iterator[pa.Array]:
    """Values of the column, among which is the least of its times."""
    if (folder := folders_of(form, path).get(column)) is not None:
        yield pa.array([folder.as_py()], folder.type)
        return
    require_inside(path, form.paths)
    if form.format == "parquet":
        least = ParquetSource(*locate(path, form.access)).least(column)
        # A time that no row may have hides the least time of its row group.
        if least is not None and time_column(least)[1].all():
            yield least
            return
    plain = replace(form, columns=(column,), filter=None, on_bad_file="error", coded=frozenset())
    for table in read(plain, [Split(path)], lambda *_: None):
        yield flat(table[column])


def _least(values: pa.Array) -> int | None:
    times, valid = time_column(values)
    return int(times[valid].min()) if valid.any() else None


__all__ = ["least_time"]
