"""The values of the columns of a combiner, from text: with commas, a JSON list, or a file; or the types of columns.

Guarded by tests/cli/test_laws.py.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from ..errors import InvalidArgument, require_column
from ..files.formats import format_of
from .file_rows import read_columns


def law_values(arguments: argparse.Namespace) -> tuple[pa.Array | pa.DataType, ...] | None:
    """The values of each column that `--values` names, or its type, in order; None if it is not said."""
    if arguments.values is None:
        if arguments.column:
            raise InvalidArgument("--column names a column of the file of --values: give --values FILE")
        return None
    return tuple(column for text in arguments.values for column in _types(text) or _columns(text, arguments))


def require_each(columns: Sequence[str], values: Sequence[pa.Array | pa.DataType], who: str) -> None:
    """Raise unless there are values for each column that a combiner reads.

    >>> require_each(["x", "t"], [pa.int64()], "mine:last")
    Traceback (most recent call last):
        ...
    uncombine.errors.InvalidArgument: mine:last reads the columns x, t, and --values has those of x alone: give ...
    """
    many = len(columns)
    if len(values) < many:
        there = ", ".join(columns[: len(values)])
        raise InvalidArgument(
            f"{who} reads the columns {', '.join(columns)}, and --values has those of {there} alone: give --values "
            f"once for each, such as {' '.join(['--values 1,2'] * many)}, or their types, such as --values "
            f"{','.join(['int64'] * many)}"
        )


def require_ready(values: Sequence[pa.Array | pa.DataType], ready: Sequence[pa.DataType]) -> None:
    """Raise for a type that has no ready-made values.

    >>> require_ready([pa.int16()], [pa.int64(), pa.string()])
    Traceback (most recent call last):
        ...
    uncombine.errors.InvalidArgument: --values names the type int16, and only int64, string have ready-made values: ...
    """
    for kind in values:
        if isinstance(kind, pa.DataType) and kind not in ready:
            raise InvalidArgument(
                f"--values names the type {kind}, and only {', '.join(map(str, ready))} have ready-made values: name "
                "one of these, or give values, such as --values 1,2"
            )


def _types(text: str) -> list[pa.DataType]:
    """The types that a text names, one for each column; none if one of its words is no type."""
    try:
        return [pa.type_for_alias(word.strip()) for word in text.split(",")]
    except ValueError:
        return []


def _columns(text: str, arguments: argparse.Namespace) -> list[pa.Array]:
    """The columns of values that one text stands for."""
    return list(map(_checked, _values(text, arguments)))


def _values(text: str, arguments: argparse.Namespace) -> list[pa.Array]:
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


__all__ = ["law_values", "require_each", "require_ready"]


def __dir__() -> list[str]:
    return __all__
