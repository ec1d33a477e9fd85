"""The values of the columns of a combiner, from text: numbers with commas, a JSON list, or a file.

Guarded by tests/cli/test_laws.py.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from ..errors import InvalidArgument, require_column
from ..files.formats import format_of
from .file_rows import read_columns


def law_values(arguments: argparse.Namespace) -> tuple[pa.Array, ...] | None:
    """The values of each column that `--values` names, in order; None if it is not said."""
    if arguments.values is None:
        if arguments.column:
            raise InvalidArgument("--column names a column of the file of --values: give --values FILE")
        return None
    columns = [column for text in arguments.values for column in _columns(text, arguments)]
    return tuple(map(_checked, columns))


def _columns(text: str, arguments: argparse.Namespace) -> list[pa.Array]:
    """The columns that one text stands for."""
    if text.lstrip().startswith(("[", "{")):
        return [_array(_json(text), text)]
    if arguments.format or format_of(text) is not None or (text and Path(text).exists()):
        table = read_columns(argparse.Namespace(**{**vars(arguments), "file": text}))
        names = arguments.column or table.column_names
        if len(table.column_names) > 1 and not arguments.column:
            raise InvalidArgument(
                f"{text!r} has the columns {', '.join(names)}: name those that the combiner reads, in their order, as "
                f"in --column {names[0]}"
            )
        for name in names:
            require_column(name, table.column_names, "--column")
        return [table[name].combine_chunks() for name in names]
    return [_of_commas(text)]


def _json(text: str) -> list[Any]:
    try:
        values = json.loads(text)
    except ValueError as error:
        raise InvalidArgument(f"--values {text!r} is no JSON: {error}") from None
    if not isinstance(values, list):
        raise InvalidArgument(f"--values takes a JSON list, such as '[1, 2.5, 3]', but was given {text!r}")
    return values


def _array(values: list[Any], text: str) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise InvalidArgument(f"--values {text!r} has no values of one type: {error}") from None


def _of_commas(text: str) -> pa.Array:
    """The values of a line of CSV, in the type that a column of CSV with these values has."""
    try:
        values = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error as error:
        raise InvalidArgument(f"--values {text!r} is no line of CSV: {error}") from None
    if not values:
        return pa.array([], pa.null())
    lines = io.StringIO()
    csv.writer(lines, quoting=csv.QUOTE_ALL).writerows([value] for value in values)
    options = pa_csv.ReadOptions(column_names=["values"])
    return pa_csv.read_csv(io.BytesIO(lines.getvalue().encode()), options)["values"].combine_chunks()


def _checked(values: pa.Array) -> pa.Array:
    if values.null_count == len(values):
        raise InvalidArgument("--values has no value: give some, such as --values 1,2,3")
    return values


__all__ = ["law_values"]


def __dir__() -> list[str]:
    return __all__
