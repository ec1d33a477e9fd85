"""The rows that a command gives: a table on the terminal, JSON for programs, or a file.

Guarded by tests/cli/test_row_output.py.
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pyarrow.types as pt
from pyarrow.feather import write_feather

from ..errors import InvalidArgument, require_column
from ..files.formats import format_of
from ..files.paths import STORE_FAULTS, absolute, info_of, locate, parts_of, require_no_secret, unreachable
from ..panes.showing import shown_rows
from ..tables.renames import replaced
from .conditions import condition_of
from .failures import Failed
from .parser import Parser, count_of
from .row_texts import csv_text, json_lines

SHOWN = 50
"""The most rows that are shown on a terminal, if --limit is not said."""

_ENDINGS = ".parquet, .arrow, .csv or .json"


def add_output(parser: Parser) -> None:
    """The options that say where rows go."""
    parser.add_argument(
        "--limit",
        type=count_of,
        metavar="N",
        help=f"the most rows that are given (default: {SHOWN}, and of --json and --output all)",
    )
    parser.add_argument(
        "--sort",
        action="append",
        default=[],
        metavar="COLUMN",
        help="sort the rows, such as --sort 'total desc' with the largest first; may be repeated",
    )
    parser.add_argument(
        "--having",
        action="append",
        default=[],
        metavar="CONDITION",
        help="give only rows of the result for which it is true, such as 'total>100'; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object a row, of all rows")
    parser.add_argument("--output", metavar="FILE", help=f"write the rows into a new file: {_ENDINGS} (also .csv.gz)")
    parser.add_argument("--overwrite", action="store_true", help="write files, and a table, that are there already")


def check_output(
    arguments: argparse.Namespace, others: Mapping[str, str | None] = MappingProxyType({}), table: bool = False
) -> None:
    """Raise if the file of --output cannot be written, or one of other options, before anything is read.

    `table` is true if a table is written that can be overwritten, too.
    """
    files = {"--output": arguments.output, **others}
    if arguments.overwrite and not table and not any(files.values()):
        raise InvalidArgument(f"--overwrite is for files that are written: give {' or '.join(files)} FILE")
    for option, named in files.items():
        if named is not None:
            _check_file(named, option, arguments.overwrite)


def _check_file(path: str, option: str, overwrite: bool) -> None:
    """Raise if the file that an option names cannot be written."""
    require_no_secret([path])
    if _form(path) is None:
        raise InvalidArgument(f"{option} writes a file that ends with {_ENDINGS}, and {path!r} does not")
    there = info_of(absolute(path)).type
    if there == pafs.FileType.Directory:
        raise InvalidArgument(f"{option} names a file, and {path!r} is a folder: write {path.rstrip('/')}/rows.parquet")
    if there != pafs.FileType.NotFound and not overwrite:
        raise InvalidArgument(f"{path!r} is there already: give --overwrite, or another name")
    address, inside = parts_of(absolute(path))
    if not address and not Path(inside).parent.is_dir():
        raise InvalidArgument(f"there is no folder {str(Path(inside).parent)!r} for {path!r}: make it first")


def give(rows: pa.Table, arguments: argparse.Namespace, notes: Sequence[str] = ()) -> None:
    """Write the rows into the file that --output names, or print them; `notes` are for people."""
    rows = _sorted(_having(rows, arguments.having), arguments.sort)
    if arguments.output is not None:
        check_output(arguments)  # another may have written it meanwhile
        rows = rows.slice(0, arguments.limit)
        write_file(rows, arguments.output)
        some = f"{rows.num_rows:,} row{'s' * (rows.num_rows != 1)}"
        print(f"wrote {some} into {arguments.output}", file=sys.stderr)
    elif arguments.json:
        for line in json_lines(rows.slice(0, arguments.limit)):
            print(line)
    else:
        print(shown_rows(_short(rows), SHOWN if arguments.limit is None else arguments.limit).text())
    sys.stdout.flush()
    for note in notes:
        print(f"uncombine: {note}", file=sys.stderr)


def check_rows(arguments: argparse.Namespace, schema: pa.Schema) -> None:
    """Raise for columns of --sort and --having that rows with these columns do not have."""
    for text in arguments.sort:
        _order(text, schema.names)
    condition_of(arguments.having, schema, option="--having")


def _having(rows: pa.Table, texts: Sequence[str]) -> pa.Table:
    """The rows for which the conditions are true.

    >>> _having(pa.table({"n": [1, 5, None]}), ["n>2"])["n"].to_pylist()
    [5]
    """
    condition = condition_of(texts, rows.schema, option="--having")
    return rows if condition is None else rows.filter(condition.evaluate(rows))


def _sorted(rows: pa.Table, texts: Sequence[str]) -> pa.Table:
    """The rows in the order that --sort says; those without a value come last.

    >>> _sorted(pa.table({"n": [1, None, 3]}), ["n desc"])["n"].to_pylist()
    [3, 1, None]
    """
    if not texts:
        return rows
    orders = [_order(text, rows.column_names) for text in texts]
    for name, _ in orders:
        if pt.is_nested(rows.schema.field(name).type):
            raise InvalidArgument(f"--sort {name!r} is a column of {rows.schema.field(name).type}: sort by another one")
    plain = [
        pc.dictionary_decode(rows[name]) if pt.is_dictionary(rows[name].type) else rows[name] for name, _ in orders
    ]
    keys = [(str(place), order) for place, (_, order) in enumerate(orders)]
    columns = pa.table(plain, names=[name for name, _ in keys])
    return rows.take(pc.sort_indices(columns, sort_keys=keys))


def _order(text: str, names: Sequence[str]) -> tuple[str, str]:
    """The column and the order that --sort names.

    >>> _order("total desc", ["total"]), _order("total", ["total"])
    (('total', 'descending'), ('total', 'ascending'))
    """
    name, _, word = text.rpartition(" ")
    order = {"asc": "ascending", "desc": "descending"}.get(word.casefold())
    name, order = (text, "ascending") if order is None or text in names else (name.strip(), order)
    require_column(name, names, "--sort")
    return name, order


def _short(rows: pa.Table) -> pa.Table:
    """Panes without the columns that say no more than others do, for the width of a terminal."""
    names = rows.column_names
    redundant = {"event_time"} if "window_end" in names else set()
    if "processing_time" in names and rows["processing_time"].null_count == rows.num_rows:
        redundant.add("processing_time")
    return rows.select([name for name in names if name not in redundant])


def write_file(rows: pa.Table, path: str) -> None:
    """Write rows into a file in the format of its ending; a reader never sees a part of it.

    >>> import tempfile, pyarrow as pa
    >>> path = f"{tempfile.mkdtemp()}/rows.csv"
    >>> write_file(pa.table({"n": [1, 2]}), path)
    >>> Path(path).read_text().split()
    ['n', '1', '2']
    """
    place = absolute(path)
    system, inside = locate(place)
    data = _written(rows, path)
    try:
        if parts_of(place)[0]:
            with system.open_output_stream(inside) as out:
                out.write(data)
        else:
            target = Path(inside).resolve()  # a link goes on to name it
            with replaced(target, "uncombine") as file:
                if target.exists():
                    os.fchmod(file.fileno(), target.stat().st_mode)
                file.write(data)
    except STORE_FAULTS as error:
        if parts_of(place)[0]:
            raise unreachable(path, error) from None
        raise Failed(f"{path!r} cannot be written: {getattr(error, 'strerror', None) or error}") from None


def _written(rows: pa.Table, path: str) -> bytes | pa.Buffer:
    """The bytes of a file with these rows."""
    form, sink = _form(path), pa.BufferOutputStream()
    if form in _OF_TEXT:
        data = _OF_TEXT[form](rows).encode()
        return gzip.compress(data) if path.lower().endswith(".gz") else data
    if form == "parquet":
        pq.write_table(rows, sink)
    else:
        write_feather(rows, sink)
    return sink.getvalue()


_OF_TEXT: Mapping[str | None, Callable[[pa.Table], str]] = {
    "csv": csv_text,
    "json": lambda rows: "".join(f"{line}\n" for line in json_lines(rows)),
}


def _form(path: str) -> str | None:
    """The format of a file that is written; None if its ending names none."""
    name = path.lower().removesuffix(".gz")
    form = format_of(f".{name.rpartition('.')[2]}")
    return form if name == path.lower() or form in _OF_TEXT else None


__all__ = ["add_output", "check_output", "check_rows", "give", "write_file"]


def __dir__() -> list[str]:
    return __all__
