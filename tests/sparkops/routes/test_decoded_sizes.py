"""Files whose rows take far more memory than the file: all of them are read, a bounded number of bytes at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from programs import program
from seeds import seeds

import uncombine as uc
from uncombine.combiners.rows.decoded_sizes import cut, fixed_bytes
from uncombine.files import csv_text, parquet_files, reading, text_files
from uncombine.files.reading import describe, read, splits
from uncombine.sparkops import pieces

LONG = "x" * 2200
SCRIPT = program("reading_memory")


def failed(path: str, reason: str) -> None:
    raise AssertionError((path, reason))


def texts(count: int, *values: str) -> pa.Array:
    """A column that repeats its values."""
    return pa.DictionaryArray.from_arrays(pa.array(np.arange(count) % len(values), pa.int32()), pa.array(values))


def overflowing(count: int, others: int) -> pa.Array:
    """A long text in most rows, and so many short ones that a writer gives up its dictionary near the end."""
    rng = np.random.default_rng(0)
    codes = np.zeros(count, np.int32)
    codes[rng.choice(count, others, replace=False)] = np.arange(1, others + 1)
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array([LONG, *(f"{i:09}" for i in range(others))]))


def lists(count: int) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(np.arange(0, count + 1, 5), pa.int32()), texts(count, LONG, "b"))


DELTA = {"use_dictionary": False, "column_encoding": {"k": "PLAIN", "text": "DELTA_BYTE_ARRAY"}}
KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "dictionary": (lambda count: texts(count, LONG), {}),
    "dictionary given up": (lambda count: overflowing(count, 90_000 * count // 500_000), {}),
    "delta": (lambda count: texts(count, LONG + "a", LONG + "b").cast(pa.string()), DELTA),
    "lists": (lists, {}),
    "long at the end": (lambda count: pa.chunked_array([texts(count // 2, "a"), texts(count // 2, "a", LONG)]), {}),
    "fixed width": (lambda count: texts(count, LONG).cast(pa.binary()).cast(pa.binary(2200)).dictionary_encode(), {}),
}


def write(path: Path, column: pa.Array | pa.ChunkedArray, **options: Any) -> pa.Table:
    table = pa.table({"k": np.arange(len(column)) % 7, "text": column})
    pq.write_table(table, path, row_group_size=1 << 20, store_schema=False, **options)
    return table


@pytest.mark.weekly
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("on_bad_file", ["error", "skip"])
def test_what_repeats_is_read_whole_in_bounded_tables(
    tmp_path: Path, kind: str, on_bad_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, options = KINDS[kind]
    if kind == "dictionary given up":
        options = {"dictionary_pagesize_limit": 10_000}
    path = tmp_path / "x.parquet"
    table = write(path, make(5_000), **options)
    expected = table.set_column(1, "text", pa.chunked_array([pa.array(table["text"].to_pylist())])).to_pylist()
    for module, name, value in (
        (reading, "BYTES", 200_000), (reading, "SPLIT_BYTES", 1_000_000), (parquet_files, "UNSURE", 100),
        (parquet_files, "BATCH_BYTES", 100_000), (parquet_files, "AT_ONCE_BYTES", 400_000),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    decoded = []
    original = reading._next

    def watched(*arguments: Any) -> Any:
        table = original(*arguments)
        if table is not None:
            decoded.append(table.nbytes)
        return table

    monkeypatch.setattr(reading, "_next", watched)
    fmt = describe(str(path), on_bad_file=on_bad_file)
    got = list(read(fmt, splits(fmt, str(path)), failed))
    assert max(part.nbytes for part in got) <= 200_000 + 2200 * 5
    assert max(decoded) <= 400_000
    assert pa.concat_tables(got).cast(pa.schema({"k": pa.int64(), "text": got[0].schema.types[1]})).to_pylist() == [
        row if kind != "fixed width" else {**row, "text": row["text"]} for row in expected
    ]


def peak_of(path: Path, on_bad_file: str = "error") -> dict[str, Any]:
    command = [sys.executable, str(SCRIPT), str(path), on_bad_file]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.weekly
def test_the_memory_of_a_small_file_of_long_rows(tmp_path: Path) -> None:
    """1,000,000 rows of 2.2 kB are a file of 231 kB, and more than Arrow holds in one column of text."""
    path = tmp_path / "x.parquet"
    write(path, texts(1_000_000, LONG))
    assert path.stat().st_size < 300_000
    found = peak_of(path, "skip")
    assert (found["rows"], found["size"], found["skipped"]) == (1_000_000, 2_200_000_000, [])
    assert found["largest"] <= pieces.PIECE_BYTES
    assert found["peak"] < 2 * pieces.PIECE_BYTES


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_the_memory_of_every_kind_of_column(tmp_path: Path, kind: str) -> None:
    make, options = KINDS[kind]
    path = tmp_path / "x.parquet"
    table = write(path, make(500_000), **options)
    found = peak_of(path)
    assert found["rows"] == table.num_rows
    assert found["size"] > pieces.PIECE_BYTES
    assert found["largest"] <= pieces.PIECE_BYTES
    assert found["peak"] < (3 if kind == "delta" else 2) * pieces.PIECE_BYTES


# Other formats


def test_dictionaries_and_views_of_arrow_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BYTES", 200_000)
    plain = texts(5_000, LONG, "é").cast(pa.string())
    columns = {"dictionary": texts(5_000, LONG, "é"), "large": plain.cast(pa.large_string()), "plain": plain}
    columns["view"] = plain.cast(pa.string_view())
    for name, column in columns.items():
        path = tmp_path / f"{name}.arrow"
        table = pa.table({"s": column, "n": range(5_000)})
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
        fmt = describe(str(path))
        got = list(read(fmt, splits(fmt, str(path)), failed))
        assert max(part.nbytes for part in got) <= 200_000
        assert pa.concat_tables(got).to_pydict() == {"s": plain.to_pylist(), "n": list(range(5_000))}


def test_csv_rows_longer_than_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "BLOCK", 100)
    monkeypatch.setattr(text_files, "HEAD", 60)
    for name in ("b", "b" * 500):
        values = [*map(str, range(60)), LONG, "z", LONG * 3, "y"]
        path = tmp_path / f"{len(name)}.csv"
        path.write_text(f"a,{name}\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values)))
        fmt = describe(str(path), schema=pa.schema({"a": pa.int64(), name: pa.string()}), on_bad_file="skip")
        got = pa.concat_tables(read(fmt, splits(fmt, str(path)), failed))
        assert got.to_pydict() == {"a": list(range(64)), name: values}
        assert describe(str(path)).schema.names == ["a", name]


def test_lines_beyond_all_measure_are_the_files_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "BLOCK", 100)
    monkeypatch.setattr(text_files, "LONGEST", 1000)
    monkeypatch.setattr(csv_text, "LONGEST", 1000)
    for ending, text in (("csv", f"a\n{LONG}\n"), ("json", f'{{"a": "{LONG}"}}\n')):
        path = tmp_path / f"x.{ending}"
        path.write_text(text)
        fmt = describe(str(path), schema=pa.schema({"a": pa.string()}))
        with pytest.raises(uc.UncombineError, match=r"cannot be read"):
            list(read(fmt, splits(fmt, str(path)), failed))


def test_short_json_lines_of_many_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "PARSED", 50_000)
    path = tmp_path / "x.json"
    path.write_text("{}\n" * 500 + '{"c7": 1}\n')
    fmt = describe(str(path), schema=pa.schema({f"c{i}": pa.int64() for i in range(100)}))
    sizes = []
    original = reading._next
    monkeypatch.setattr(reading, "_next", lambda *args: sizes.append(table := original(*args)) or table)
    got = pa.concat_tables(read(fmt, splits(fmt, str(path)), failed))
    assert (got.num_rows, got["c7"].to_pylist()[-1], got["c7"].null_count) == (501, 1, 500)
    assert max(table.num_rows for table in sizes if table is not None) <= 63


@pytest.mark.parametrize(
    "options", [{"delimiter": "ab"}, {"encoding": "none such"}, {"skip_rows": "x"}, {"null_values": [1]}]
)
def test_values_of_csv_options_are_checked_when_built(options: dict[str, Any]) -> None:
    with pytest.raises(uc.UncombineError, match="an option of the file format 'csv' has a value"):
        describe("/nowhere", "csv", pa.schema({"k": "int64"}), options=options)


# Cutting


@pytest.mark.parametrize("seed", seeds(20))
def test_cuts_keep_the_bound_and_the_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 60))
    words = ["", "é", "a" * 50, None, "b" * 300]
    plain = pa.array([words[i] for i in rng.integers(0, 5, count)])
    sizes = rng.integers(0, 4, count)
    nested = [[words[i] for i in rng.integers(0, 5, size)] or None for size in sizes]
    columns = {
        "dictionary": plain.dictionary_encode(),
        "view": plain.cast(pa.string_view()),
        "large": plain.cast(pa.large_string()),
        "lists": pa.array(nested, pa.list_(pa.string())),
        "encoded lists": pa.array(nested, pa.list_(pa.string())).cast(pa.list_(pa.dictionary(pa.int32(), pa.string()))),
        "struct": pa.StructArray.from_arrays([plain.dictionary_encode(), plain], ["a", "b"]),
        "map": pa.array([[("k", word) for word in words or []] for words in nested], pa.map_("string", "string")),
        "list view": pa.array(nested, pa.list_view(pa.string())),
        "fixed": pa.array([[i, i] for i in range(count)], pa.list_(pa.int64(), 2)),
        "number": pa.array(range(count)),
    }
    names = list(rng.choice(list(columns), 3, replace=False))
    lead = int(rng.integers(0, count))
    table = pa.table({name: columns[name] for name in names}).slice(lead)
    fixed = sum(fixed_bytes(column.type) for column in table.columns)
    rows, size = int(rng.integers(1, 40)), int(rng.integers(1, 3000))
    parts = list(cut(table, fixed, rows, size))
    assert [row for part in parts for row in part.to_pylist()] == table.to_pylist()

    def weight(part: pa.Table) -> int:
        def of(value: Any) -> int:
            if isinstance(value, str):
                return len(value.encode())
            if isinstance(value, dict):
                return sum(map(of, value.values()))
            if isinstance(value, list | tuple):
                return sum(map(of, value))
            return 0

        return sum(of(row) for row in part.to_pylist()) + fixed * part.num_rows

    for part in parts:
        assert part.num_rows == 1 or (part.num_rows <= rows and weight(part) <= size)


def test_pieces_keep_their_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE_BYTES", 10_000)
    tables = [pa.table({"s": ["a" * size] * 5}) for size in (10, 800, 900, 5000, 1)]
    found = list(pieces.pieces(tables))
    assert pa.concat_tables(found).equals(pa.concat_tables(tables))
    assert max(piece.nbytes for piece in found) <= 10_000
