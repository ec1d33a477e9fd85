"""Columns of folders that are in the files too: the folder's value wins, with a warning where they differ.

Spark reads such files in the same way. Guarded by tests/files/test_folder_columns.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pyarrow as pa

from ..errors import StoreUnreachable, UnreadableFile
from .conform import conform
from .file_format import FAULTS, FileFormat
from .formats import Source, open_source
from .partitions import folder_scalar, folder_values
from .paths import is_of_store, locate
from .text_files import HEAD, CsvSource, JsonSource
from .unreadable_rows import ERRORS, BadRows, shortened

COMPARED = 20
"""The most files whose columns are compared with their folders before Spark runs; the tasks compare all of them."""


def folders_of(fmt: FileFormat, path: str) -> dict[str, pa.Scalar]:
    """The columns of the schema that are in the names of the file's folders."""
    return {
        name: folder_scalar(text, fmt.schema.field(name).type, name, path)
        for name, text in folder_values(path, fmt.base).items()
        if name in fmt.schema.names
    }


def warn_of_difference(fmt: FileFormat, path: str, told: set[str]) -> None:
    """Warn of a column of the file that differs from its folder, unless it is told; such a column is told then."""
    folders = folders_of(fmt, path)
    needed = {*fmt.output.names, *(() if fmt.filter is None else fmt.filter.columns)}
    for name, folder in folders.items():
        if name not in needed or name in told:
            continue
        value = _other_value(fmt, path, name, folder)
        if value is not None and name not in told:
            told.add(name)
            warnings.warn(
                f"column {name!r} is in the names of folders and in the files, and the folders win, as in Spark: "
                f"{path} has {value} in the file and {_text(folder.as_py())} in the name of its folder. Rename the "
                "folders to read the column of the files",
                stacklevel=2,
            )


def warn_of_differences(fmt: FileFormat, paths: Sequence[str], columns: Sequence[str]) -> None:
    """Warn of the first difference in each of some columns of some files, which may be unreadable."""
    told: set[str] = set()
    form = replace(fmt, columns=tuple(name for name in columns if name in fmt.schema.names))
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(partial(_told_or_unreadable, form, told=told), paths[:COMPARED]):
            pass


def _told_or_unreadable(fmt: FileFormat, path: str, told: set[str]) -> None:
    try:
        warn_of_difference(fmt, path, told)
    except (UnreadableFile, StoreUnreachable):  # the task that reads it says so
        return


def _other_value(fmt: FileFormat, path: str, name: str, folder: pa.Scalar) -> str | None:
    """A value of a column of a file that is not that of its folder; None if there is none, or it cannot be read."""
    try:
        system, inside = locate(path, fmt.access)
        bad = BadRows(leave_out=lambda rows: None) if fmt.leaves_rows_out else ERRORS
        source = open_source(fmt.format, system, inside, fmt.options, None, bad)
        if source.schema.names.count(name) != 1:
            return None
        columns = _columns(source, name)
    except FAULTS:
        return None  # the reading of the file says so
    try:
        for column in columns:
            for value in column.unique():
                if not _same(value, folder):
                    return _text(value.as_py())
    except FAULTS as error:
        if is_of_store(path, error):
            return None
        return f"values of another type ({shortened(str(error).partition(chr(10))[0])})"
    return None


def _columns(source: Source, name: str) -> Iterator[pa.ChunkedArray]:
    if isinstance(source, CsvSource | JsonSource):
        source.wanted = source.schema
    for table in source.tables([name], None, None, None):
        yield table.column(name)


def _same(value: pa.Scalar, folder: pa.Scalar) -> bool:
    mine, other = value.as_py(), folder.as_py()
    if mine is None or other is None:
        return mine is other
    if str(mine) == str(other):
        return True
    try:
        column = pa.chunked_array([pa.array([mine], value.type)])
        return bool(conform(column, folder.type)[0].as_py() == other)
    except FAULTS:
        return False


def _text(value: object) -> str:
    return shortened(repr(value))


def may_have(source: Source, names: Collection[str]) -> bool:
    """True if an open file can have one of the columns that are in the names of its folders."""
    if not names or not isinstance(source, JsonSource):
        return any(name in source.schema.names for name in names)
    with source.system.open_input_stream(source.path, compression="detect") as stream:
        head = stream.read(HEAD)
    return any(f'"{name}"'.encode() in head for name in names)


__all__ = ["folders_of", "may_have", "warn_of_difference", "warn_of_differences"]
