"""Damaged files of every format, by seed; run as a process of its own, it reads them and says of each what came of it.

    python damage.py <format> <first seed> <last seed> <folder>

For the format `all` it reads files of each. A line `seed <n> <format>` stands before each file is read and
`ok <n> <format>` after it, so that a crash names its seed.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
import resource
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq

import uncombine as uc
from programs.footers import damaged_footer
from uncombine.errors import UnreadableFile
from uncombine.files.reading import FileFormat, describe, read, splits

ROOM = 8 << 30
"""Memory of the process, so that a length without measure fails and does not fill the machine."""


def sample(rich: bool) -> pa.Table:
    rng = np.random.default_rng(7)
    rows = 300
    words = pa.array([f"wörd {i % 11}" * (i % 3) if i % 17 else None for i in range(rows)])
    columns: dict[str, Any] = {
        "k": pa.array(rng.integers(0, 9, rows), mask=rng.random(rows) < 0.1),
        "s": words,
        "x": rng.random(rows),
        "ts": pa.array(rng.integers(0, 10**15, rows)).cast(pa.timestamp("us", "UTC")),
        "ok": pa.array(rng.random(rows) < 0.5),
    }
    if rich:
        lists = [[str(j) for j in range(i % 4)] if i % 5 else None for i in range(rows)]
        columns |= {
            "d": words.dictionary_encode(),
            "l": pa.array(lists, pa.list_(pa.string())),
            "st": pa.array([{"a": i, "b": [f"{i}"]} if i % 7 else None for i in range(rows)]),
            "m": pa.array([[("k", i)] * (i % 3) for i in range(rows)], pa.map_(pa.string(), pa.int64())),
            "dec": pa.array([Decimal(i) / 100 for i in range(rows)], pa.decimal128(12, 2)),
            "b": pa.array([bytes([i % 256]) * (i % 5) for i in range(rows)]),
            "day": pa.array([dt.date(2016, 1, 20)] * rows),
        }
    return pa.table(columns)


def _arrow_types(table: pa.Table) -> pa.Table:
    more = {
        "ls": table["s"].cast(pa.large_string()),
        "sv": table["s"].cast(pa.string_view()),
        "bv": table["s"].cast(pa.binary()).cast(pa.binary_view()),
        "ll": table["l"].cast(pa.large_list(pa.string())),
        "dl": table["l"].cast(pa.list_(pa.dictionary(pa.int32(), pa.string()))),
        "fl": pa.array([[i, i] for i in range(table.num_rows)], pa.list_(pa.int64(), 2)),
        "n": pa.nulls(table.num_rows),
        "f": table["b"].cast(pa.binary()).cast(pa.binary()),
    }
    for name, column in more.items():
        table = table.append_column(name, column)
    return table


def _ipc(new: Callable[..., Any], compression: str | None) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        table = _arrow_types(sample(True))
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with new(str(path), table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=120)

    return write


def _feather(compression: str) -> Callable[[Path], None]:
    return lambda path: feather.write_feather(sample(True), str(path), compression=compression, chunksize=120)


def _parquet(**options: Any) -> Callable[[Path], None]:
    return lambda path: pq.write_table(sample(True), path, row_group_size=120, **options)


def _text(form: str, packed: bool) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        if form == "csv":
            sink = pa.BufferOutputStream()
            pacsv.write_csv(sample(False), sink)
            data = sink.getvalue().to_pybytes()
        else:
            data = "".join(json.dumps(row, default=str) + "\n" for row in sample(False).to_pylist()).encode()
        path.write_bytes(gzip.compress(data, mtime=0) if packed else data)

    return write


DELTAS = {
    "k": "DELTA_BINARY_PACKED", "s": "DELTA_BYTE_ARRAY", "x": "BYTE_STREAM_SPLIT", "ts": "DELTA_BINARY_PACKED",
    "b": "DELTA_BYTE_ARRAY", "ok": "RLE",
}  # fmt: skip
PARQUETS = [
    _parquet(),
    _parquet(compression="none", use_dictionary=False),
    _parquet(compression="zstd", use_dictionary=False, column_encoding=DELTAS, data_page_version="2.0"),
    _parquet(compression="gzip", dictionary_pagesize_limit=64, store_schema=False),
]
FORMATS: dict[str, tuple[str, list[Callable[[Path], None]]]] = {
    "arrow file": ("arrow", [_ipc(pa.ipc.new_file, how) for how in (None, "lz4", "zstd")]),
    "arrow stream": ("arrows", [_ipc(pa.ipc.new_stream, how) for how in (None, "lz4", "zstd")]),
    "feather": ("feather", [_feather(how) for how in ("lz4", "zstd", "uncompressed")]),
    "parquet": ("parquet", PARQUETS),
    "csv": ("csv", [_text("csv", False)]),
    "csv.gz": ("csv.gz", [_text("csv", True)]),
    "json": ("json", [_text("json", False)]),
    "json.gz": ("json.gz", [_text("json", True)]),
    "parquet footer": ("parquet", PARQUETS),
}

EXTREMES = [0, 1, -1, 2**31 - 1, -(2**31), 2**32 - 1, 2**40, 2**62, -(2**63), 255, 65_536]


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """The bytes with one to three wounds, a third of them near the ends, where formats say what they hold."""
    out = bytearray(data)
    for _ in range(int(rng.choice([1, 1, 2, 3]))):
        size = len(out)
        if size < 16:
            return bytes(out)
        place = int(rng.integers(0, size))
        if rng.random() < 0.35:
            edge = min(size, 3000)
            place = int(rng.integers(0, edge)) if rng.random() < 0.4 else size - 1 - int(rng.integers(0, edge))
        length = int(rng.integers(1, 65))
        match rng.integers(0, 8):
            case 0:
                for _ in range(int(rng.integers(1, 9))):
                    out[int(rng.integers(0, size))] ^= 1 << int(rng.integers(0, 8))
            case 1:
                out[place] ^= 1 << int(rng.integers(0, 8))
            case 2:
                del out[place:]
            case 3:
                out[place : place + length] = rng.bytes(len(out[place : place + length]))
            case 4:
                out[place : place + length] = [b"\x00", b"\xff"][int(rng.integers(0, 2))] * len(
                    out[place : place + length]
                )
            case 5:
                start = int(rng.integers(0, size))
                block = out[start : start + int(rng.integers(1, 2000))]
                out[place : place + len(block)] = block
            case 6:
                if rng.random() < 0.5:
                    del out[place : place + length]
                else:
                    out[place:place] = rng.bytes(length)
            case _:
                width, number = (4, 8)[int(rng.integers(0, 2))], EXTREMES[int(rng.integers(0, len(EXTREMES)))]
                place -= place % width
                word = (number % 2 ** (8 * width)).to_bytes(width, "little")
                out[place : place + width] = word[: len(out[place : place + width])]
    return bytes(out)


def outcome(fmt: FileFormat, path: Path, skipped: list[str]) -> list[dict[str, Any]] | None:
    """The rows of a file, proved to be sound; None if it cannot be read."""
    try:
        tables = list(read(fmt, splits(fmt, str(path)), lambda name, reason: skipped.append(reason)))
    except UnreadableFile as error:
        if str(path) in str(error):
            return None
        raise
    rows = []
    for table in tables:
        assert table.schema.equals(fmt.output), (table.schema, fmt.output)
        table.validate(full=True)
        uc.aggregate(table, n=uc.Count(), **{name: uc.Count(name) for name in table.column_names if name != "n"})
        # Times outside Python's years are no fault of the file.
        plain = [f.with_type(pa.int64()) if pa.types.is_timestamp(f.type) else f for f in table.schema]
        plain = [f.with_type(pa.int32()) if pa.types.is_date(f.type) else f for f in plain]
        rows += table.cast(pa.schema(plain)).to_pylist()
    return rows


def one(form: str, seed: int, folder: Path, schemas: dict[int, pa.Schema]) -> str:
    ending, writers = FORMATS[form]
    rng = np.random.default_rng([seed, list(FORMATS).index(form)])
    which = int(rng.integers(0, len(writers)))
    good = folder / f"good {which}.{ending}"
    if which not in schemas:
        writers[which](good)
        schemas[which] = describe(str(good)).schema
    path = folder / f"damaged.{ending}"
    path.write_bytes((damaged_footer if form == "parquet footer" else damaged)(good.read_bytes(), rng))
    chosen = "arrow" if "arrow" in form else form.replace(" ", ".").partition(".")[0]
    try:
        schema = schemas[which] if rng.random() < 0.7 else describe(str(path), chosen).schema
    except UnreadableFile:
        return "unreadable"
    columns = None if rng.random() < 0.5 else tuple(rng.choice(schema.names, min(2, len(schema)), replace=False))
    columns = None if columns is None else tuple(dict.fromkeys(map(str, columns)))
    condition = uc.col("k") >= 0 if rng.random() < 0.3 and "k" in schema.names else None
    try:
        fmt = FileFormat(chosen, schema, str(folder), columns=columns, filter=condition)
    except uc.UncombineError:
        return "refused"
    strict = outcome(fmt, path, [])
    skipped: list[str] = []
    fmt = FileFormat(chosen, schema, str(folder), columns=columns, filter=condition, on_bad_file="skip")
    lenient = outcome(fmt, path, skipped)
    assert len(skipped) == (strict is None), (strict, skipped)
    assert repr(lenient) == repr(strict or []), "the two modes differ"
    return "unreadable" if strict is None else "read"


def main(form: str, first: int, last: int, folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name in FORMATS if form == "all" else [form]:
        schemas: dict[int, pa.Schema] = {}
        for seed in range(first, last):
            print("seed", seed, name.replace(" ", "-"), flush=True)
            print("ok", seed, name.replace(" ", "-"), one(name, seed, folder, schemas), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
