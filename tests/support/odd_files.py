"""Files as other systems write them: one column in many layouts, which all hold the same values."""

from __future__ import annotations

import datetime as dt
import io
import json
import math
import random
import string
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pyarrow.types as pt

START = 1_453_291_200_000_000  # noon of 2016-01-20
TIME = pa.timestamp("us", "UTC")
FORMATS = ("parquet", "arrow", "arrows", "feather", "csv", "json")
NAN = float("nan")
DAY = dt.date(2016, 1, 20)
NOON = dt.datetime(2016, 1, 20, 12, tzinfo=dt.UTC)
EARLY = dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Kind:
    """The values of a column: the type in which they are read, and the values without null."""

    type: pa.DataType
    values: Sequence[Any]
    formats: Sequence[str] = FORMATS
    folder: bool = False
    """True if the values can be the names of folders."""


BINARY = ("parquet", "arrow", "arrows", "feather")
TEXTS = ["a", "b", "é", "user 1", "user 10", "", "x" * 40]
POINT = pa.struct([("a", pa.int32()), ("b", pa.string())])
PLACE = pa.struct([("a", pa.float64()), ("b", pa.string())])
MONEY = [Decimal("0.00"), Decimal("1.50"), Decimal("-1.50"), Decimal("12345.67")]

KEYS: dict[str, Kind] = {
    "text": Kind(pa.string(), TEXTS),
    "ids": Kind(pa.string(), [f"id-{n:05d}" for n in range(6)], folder=True),
    "bytes": Kind(pa.binary(), [b"a", b"\x00", b"", b"abcdefghij"], BINARY),
    "hashes": Kind(pa.binary(), [bytes([n] * 16) for n in range(5)], BINARY),
    "long": Kind(pa.int64(), [0, 1, -1, 2, 100], folder=True),
    "int": Kind(pa.int32(), [0, 1, -1, 2, 100], folder=True),
    "float": Kind(pa.float64(), [0.0, -0.0, NAN, 1.5, -1.5, math.inf], folder=True),
    "single": Kind(pa.float32(), [0.0, -0.0, NAN, 1.5, -1.5, -math.inf]),
    "decimal": Kind(pa.decimal128(10, 2), MONEY, (*BINARY, "csv")),
    "wide decimal": Kind(pa.decimal128(38, 6), [Decimal(f"{m:.6f}") for m in MONEY], (*BINARY, "csv")),
    "date": Kind(pa.date32(), [DAY, DAY + dt.timedelta(1), dt.date(1969, 12, 31), dt.date(1582, 1, 1)], folder=True),
    "instant": Kind(TIME, [NOON, NOON.replace(hour=0), NOON + dt.timedelta(seconds=1), EARLY]),
    "bool": Kind(pa.bool_(), [True, False]),
    "struct": Kind(POINT, [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": ""}], BINARY),
    "place": Kind(PLACE, [{"a": a, "b": b} for a in (0.0, -0.0, NAN, 1.5) for b in ("x", None)], BINARY),
}

VALUES: dict[str, Kind] = {
    **KEYS,
    "texts": Kind(pa.list_(pa.string()), [[], ["a", None], ["a", "a", "é"]], BINARY),
    "map": Kind(pa.map_(pa.string(), pa.string()), [[], [("a", "x")], [("b", None), ("a", "x")]], BINARY),
    "deep": Kind(
        pa.struct([("l", pa.list_(POINT)), ("f", pa.float32())]),
        [{"l": [{"a": 1, "b": "x"}, None], "f": -0.0}, {"l": None, "f": 0.5}, {"l": [], "f": None}],
        BINARY,
    ),
    "half": Kind(pa.float32(), [0.0, -0.0, 0.5, NAN]),
}


def drawn_values(r: random.Random, kind: Kind, count: int, format: str) -> list[Any]:
    """Values and nulls; JSON has no NaN and no infinity."""
    values = [v for v in kind.values if format != "json" or not isinstance(v, float) or math.isfinite(v)]
    some = r.sample(values, r.randint(1, len(values)))
    nulls = r.choice([0, 0.1, 0.4])
    return [None if r.random() < nulls else r.choice(some) for _ in range(count)]


def laid_out(r: random.Random, values: list[Any], kind: pa.DataType, format: str) -> pa.Array:
    """The values as a column of a file, in a layout of which there are many."""
    plain = pa.array(values, kind)
    for _ in range(20):
        try:
            found = _layout(r, plain)
            found.validate(full=True)
            if format == "parquet":
                pq.write_table(pa.table([found], names=["x"]), io.BytesIO())
            return found
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, OSError):
            continue
    return plain


def _layout(r: random.Random, plain: pa.Array) -> pa.Array:
    kind = plain.type
    if pt.is_nested(kind):
        plain = _nested(r, plain)
        return _coded(r, plain) if r.random() < 0.2 else plain
    if r.random() < 0.5:
        other = r.choice(_others(kind, plain))
        plain = plain.cast(other)
    return _coded(r, plain) if r.random() < 0.5 else plain


def _others(kind: pa.DataType, plain: pa.Array) -> list[pa.DataType]:
    """Types whose values are read as this one; some do not take all values."""
    if pt.is_string(kind):
        return [pa.large_string(), pa.string_view()]
    if pt.is_binary(kind):
        lengths = {len(v) for v in plain.to_pylist() if v}
        return [pa.large_binary(), pa.binary_view(), *[pa.binary(n) for n in lengths if len(lengths) == 1 and n]]
    if pt.is_integer(kind):
        return [t for t in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.int64()) if t != kind]
    if pt.is_floating(kind):
        return [pa.float16(), pa.float32(), pa.float64()]
    if pt.is_decimal(kind):
        p, s = kind.precision, kind.scale
        return [
            pa.decimal32(9, 2), pa.decimal64(15, s), pa.decimal128(38, s), pa.decimal256(p, s), pa.decimal256(70, s),
            pa.decimal128(20, s + 2), pa.decimal64(12, 2),
        ]  # fmt: skip
    if pt.is_date(kind):
        return [pa.date64()]
    if pt.is_timestamp(kind):
        zones = [None, "UTC", "Europe/Berlin", "+05:30"]
        return [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in zones]
    return [kind]


def _coded(r: random.Random, plain: pa.Array) -> pa.Array:
    """A dictionary: in any order, with values that no row has, with a value twice, with null among its values."""
    first: dict[str, int] = {}
    for i, value in enumerate(plain.to_pylist()):
        first.setdefault(repr(value), i)
    chosen = r.sample(list(first.values()), len(first))
    if r.random() < 0.5:
        chosen = [i for i in chosen if plain[i].is_valid]
    if r.random() < 0.3 and chosen:
        chosen.append(r.choice(chosen))  # Arrow changes the values of dictionaries of halves that it concatenates
    values = plain.take(pa.array(chosen, pa.int64()))
    places: dict[str, list[int]] = {}
    for i, value in enumerate(values.to_pylist()):
        places.setdefault(repr(value), []).append(i)
    null = places.get("None", [])
    found = []
    for value in plain.to_pylist():
        if value is None:
            found.append(r.choice([None, *null]))
        else:
            found.append(r.choice(places[repr(value)]))
    index = r.choice([pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.int64(), pa.uint32()])
    return pa.DictionaryArray.from_arrays(pa.array(found, index), values, ordered=r.random() < 0.3)


def _nested(r: random.Random, plain: pa.Array) -> pa.Array:
    kind = plain.type
    if pt.is_struct(kind):
        parts = [_layout(r, plain.field(i)) for i in range(kind.num_fields)]
        fields = [pa.field(f.name, part.type) for f, part in zip(kind, parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=plain.is_null())
    nulls = plain.is_null() if plain.null_count else None
    if pt.is_map(kind):
        items = _layout(r, plain.items)
        return pa.MapArray.from_arrays(plain.offsets, plain.keys, items, mask=nulls)
    values = _layout(r, plain.values)
    if r.random() < 0.5:
        return pa.LargeListArray.from_arrays(plain.offsets.cast(pa.int64()), values, mask=nulls)
    return pa.ListArray.from_arrays(plain.offsets, values, mask=nulls)


def write(r: random.Random, table: pa.Table, path: Path, format: str) -> Path:
    """A file of a format, cut into parts in a random way."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.with_name(f"{path.name}.{format}")
    size = r.choice([1, 7, 1000])
    match format:
        case "parquet":
            options: dict[str, Any] = {
                "row_group_size": size,
                "version": r.choice(["1.0", "2.4", "2.6"]),
                "data_page_version": r.choice(["1.0", "2.0"]),
                "use_dictionary": r.choice([True, True, False]),
                "store_schema": r.choice([True, True, False]),
                "write_statistics": r.choice([True, False]),
                "compression": r.choice(["snappy", "zstd", "none"]),
            }
            try:
                pq.write_table(table, file, **options)
            except pa.ArrowNotImplementedError:  # views cannot be cut
                pq.write_table(table, file, **{**options, "row_group_size": None})
        case "arrow":
            with pa.ipc.new_file(str(file), table.schema) as writer:
                writer.write_table(table, max_chunksize=size)
        case "arrows":
            deltas = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=r.random() < 0.5)
            with pa.ipc.new_stream(str(file), table.schema, options=deltas) as writer:
                for start in range(0, table.num_rows, size):
                    writer.write_table(_recoded(r, table.slice(start, size)))
        case "feather":
            feather.write_feather(table, str(file), compression=r.choice(["zstd", "lz4"]))
        case "csv":
            file.write_text(_csv(table), encoding="utf8")
        case _:
            rows = [_line(r, row) for row in table.to_pylist()]
            file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")
    return file


def _recoded(r: random.Random, table: pa.Table) -> pa.Table:
    """The rows with other dictionaries of the same values, as each batch of a stream may have its own.

    Arrow's writer takes dictionaries that differ in the sign of a zero for equal and writes the first alone, so that
    those with floats stay.
    """
    for i, column in enumerate(table.columns):
        kind = column.type
        if pt.is_dictionary(kind) and not (pt.is_nested(kind.value_type) or pt.is_floating(kind.value_type)):
            [chunk] = column.chunks
            used = chunk.indices.unique().drop_null()
            used = used.take(pa.array(r.sample(range(len(used)), len(used)), pa.int64()))
            places = pc.index_in(chunk.indices, used).cast(kind.index_type)
            coded = pa.DictionaryArray.from_arrays(places, chunk.dictionary.take(used), ordered=kind.ordered)
            table = table.set_column(i, table.field(i), coded)
    return table


def _csv(table: pa.Table) -> str:
    """Lines in which a null is nothing and a text has quotes, as it may be empty."""
    lines = [table.column_names, *zip(*table.to_pydict().values(), strict=True)]
    return "".join(",".join(map(_cell, line)) + "\n" for line in lines)


def _cell(value: Any) -> str:
    text = _text(value)
    return "" if text is None else f'"{text}"' if isinstance(value, str) else str(text)


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=value.tzinfo or dt.UTC).isoformat()
    return value if value is None else str(value)


def _line(r: random.Random, row: dict[str, Any]) -> dict[str, Any]:
    """A line without some of its nulls."""
    line = {name: _text(v) if isinstance(v, dt.date) else v for name, v in row.items()}
    return {name: v for name, v in line.items() if v is not None or r.random() < 0.5}


def written_files(
    r: random.Random, rows: Sequence[dict[str, Any]], schema: pa.Schema, folder: Path, format: str, by: str | None
) -> list[list[dict[str, Any]]]:
    """Write the rows to files of their own layouts; the rows of each file.

    With `by` the values of this column are the names of folders.
    """
    parts: dict[Any, list[dict[str, Any]]] = {}
    count = r.choice([1, 2, 4])
    for row in rows:
        key = (r.randrange(count), repr(row[by]) if by else "")
        parts.setdefault(key, []).append(row)
    if r.random() < 0.3 and format != "json" and by is None:
        parts["empty", ""] = []
    for i, given in enumerate(parts.values()):
        columns = {
            field.name: laid_out(r, [row[field.name] for row in given], field.type, format)
            for field in schema
            if field.name != by
        }
        names = r.sample(list(columns), len(columns))
        # A column that is null in all rows may not be there.
        if format != "csv":
            names = [n for n in names if r.random() < 0.7 or n == "ts" or columns[n].null_count < len(columns[n])]
        table = pa.table({name: columns[name] for name in names})
        chosen = "".join(r.choices(string.ascii_lowercase, k=4))
        name = f"{by}={folder_name(given[0][by])}/" if by else ""
        write(r, table, folder / f"{name}{i}{chosen}", format)
    return list(parts.values())


def odd_folder(seed: int, above: Path) -> Path:
    """A folder whose name may be a pattern, beside one that such a pattern matches, whose file nobody can read.

    Links to nothing that are hidden, and links in the folder that lead to other hidden things, are no files of it.
    """
    r = random.Random(f"folder {seed}")
    name, other = r.choice(
        [("in", "on"), ("a*b", "a b"), ("in [1]", "in 1"), ("q{x,y}", "qx"), ("v?", "v1"), ("[!a]", "b")]
    )
    folder, beside = above / name, above / other
    for one in (folder, beside):
        one.mkdir(parents=True)
    for ending in FORMATS:
        (beside / f"z.{ending}").write_bytes(b"nothing that can be read")
    if r.random() < 0.5:
        (folder / ".#lock").symlink_to("nobody@nowhere")
        (folder / "_kept").symlink_to(beside)
    return folder


def folder_name(value: Any) -> str:
    """The name of a folder for a value."""
    if value is None:
        return "__HIVE_DEFAULT_PARTITION__"
    return quote("Infinity" if value == math.inf else "NaN" if value != value else str(value), safe="")


def plain(value: Any, zeros: bool = False) -> Any:
    """A value that is equal where values are the same to the last bit; with `zeros` both zeros are one."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value + 0.0 if zeros else value)
    if isinstance(value, dict):
        return tuple((name, plain(part, zeros)) for name, part in value.items())
    if isinstance(value, list | tuple):
        return tuple(plain(part, zeros) for part in value)
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat()
    return value
