"""Data files as Arrow tables, against pyarrow and pandas reading the same files."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import itertools
import json
import pickle
import re
import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncombine as uc
from uncombine.errors import UnreadableFile
from uncombine.files import parquet_files, reading
from uncombine.files import paths as where
from uncombine.files.listing import list_files
from uncombine.files.reading import FileFormat, Split, describe, read, splits

UTC_MICROS = pa.timestamp("us", "UTC")


def sample(rows: int = 1000, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "k": pa.array(random.integers(0, 50, rows), mask=random.random(rows) < 0.1),
            "ts": pa.array(random.integers(0, 10**15, rows)).cast(UTC_MICROS),
            "x": random.random(rows),
            "name": pa.array([f"n {i % 7}" for i in range(rows)]),
            "ok": pa.array(random.random(rows) < 0.5),
            "day": pa.array(random.integers(0, 20_000, rows), pa.int32()).cast(pa.date32()),
        }
    )


SAMPLE = sample()


def write(table: pa.Table, path: Path) -> Path:
    """A file as its ending says, written by pyarrow or pandas and compressed by Python."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ending = path.name.partition(".")[2]
    if ending == "parquet":
        pq.write_table(table, path, row_group_size=100)
    elif ending in ("arrow", "arrows"):
        new = pa.ipc.new_file if ending == "arrow" else pa.ipc.new_stream
        with new(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=100)
    elif ending == "feather":
        pa.feather.write_feather(table, str(path), compression="zstd")
    else:
        sink = pa.BufferOutputStream()
        if ending.startswith("csv"):
            pacsv.write_csv(table, sink)
        else:
            sink.write("".join(json.dumps(row, default=str) + "\n" for row in table.to_pylist()).encode())
        data = sink.getvalue().to_pybytes()
        if ending.endswith(".gz"):
            data = gzip.compress(data)
        elif ending.endswith(".bz2"):
            data = bz2.compress(data)
        elif ending.endswith(".zst"):
            data = pa.compress(data, codec="zstd", asbytes=True)
        path.write_bytes(data)
    return path


def failed(path: str, reason: str) -> None:
    raise AssertionError((path, reason))


def joined(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    """Tables without columns keep their rows here."""
    if len(schema):
        return pa.concat_tables(tables) if tables else schema.empty_table()
    return pa.table({"": pa.nulls(sum(table.num_rows for table in tables))}).select([])


def rows_of(fmt: FileFormat, *files: Path | str, cut: int = 128 << 20, bad: Any = failed) -> pa.Table:
    """All rows of the files, through a pickled format and Spark's way to write paths."""
    fmt = pickle.loads(pickle.dumps(fmt))
    parts = [part for file in files for part in splits(fmt, f"file:{file}", cut)]
    tables = list(read(fmt, parts, bad))
    assert all(table.schema.equals(fmt.output) for table in tables)
    return joined(tables, fmt.output)


def same(left: pa.Table, right: pa.Table) -> None:
    assert left.schema.names == right.schema.names
    assert left.schema.types == right.schema.types
    assert left.equals(right) or left.to_pylist() == right.to_pylist()


ENDINGS = [
    "parquet", "arrow", "arrows", "feather", "csv", "csv.gz", "csv.bz2", "csv.zst", "json", "jsonl.gz", "ndjson.zst",
]  # fmt: skip


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_gives_what_was_written(tmp_path: Path, ending: str) -> None:
    table = sample()
    file = write(table, tmp_path / f"a b%20c.{ending}")
    fmt = describe(tmp_path, schema=table.schema)
    assert fmt.base == str(tmp_path)
    same(rows_of(fmt, file), table)


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_inferred_reads_back(tmp_path: Path, ending: str) -> None:
    table = sample()
    file = write(table, tmp_path / f"x.{ending}")
    fmt = describe(str(file))
    kinds = dict(zip(fmt.schema.names, fmt.schema.types, strict=True))
    assert kinds["ts"] == UTC_MICROS
    assert (kinds["k"], kinds["x"], kinds["name"], kinds["ok"]) == (pa.int64(), pa.float64(), pa.string(), pa.bool_())
    got = rows_of(fmt, file)
    same(got.select(["k", "ts", "name", "ok"]), table.select(["k", "ts", "name", "ok"]))


@pytest.mark.parametrize("ending", ["parquet", "arrow", "arrows", "csv", "json"])
@pytest.mark.parametrize("columns", [("name", "k"), ("x",), ()])
def test_columns_and_a_filter(tmp_path: Path, ending: str, columns: tuple[str, ...]) -> None:
    table = sample()
    file = write(table, tmp_path / f"x.{ending}")
    condition = (uc.col("k") < 7) & (uc.col("name") != "n 3") | uc.col("k").is_null()
    fmt = describe(str(file), schema=table.schema, columns=columns, filter=condition)
    frame = table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    expected = frame[((frame.k < 7).fillna(False) & (frame.name != "n 3")) | frame.k.isna()]
    got = rows_of(fmt, file)
    assert got.num_rows == len(expected) > 0
    assert got.schema.names == list(columns)
    if "name" in columns:
        assert got["name"].to_pylist() == list(expected.name)


@pytest.fixture(scope="module")
def sorted_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = pa.table(
        {
            "n": pa.array(range(1000), pa.int16()),
            "ts": pa.array(range(1000)).cast(pa.timestamp("us")),
            "s": [f"{i:04}" for i in range(1000)],
            "x": [float("nan") if i % 2 else 5.0 for i in range(1000)],
        }
    )
    return write(table, tmp_path_factory.mktemp("sorted") / "x.parquet")


AT = dt.datetime(1970, 1, 1, 0, 0, 0, 500, dt.UTC)
N, TS, S, X = uc.col("n"), uc.col("ts"), uc.col("s"), uc.col("x")


@pytest.mark.parametrize(
    ("condition", "rows", "least_groups"),
    [
        (N < 150, 150, 2),
        (N <= 99, 100, 1),
        (N == 250, 1, 1),
        (N > 10**9, 0, 10),
        ((N > 700) & (N + 0 < 800), 99, 3),
        ((N < 100) | (S >= "0900"), 200, 2),
        ((N >= 700) & (S < "0800"), 100, 1),
        (N.isin([5, 990]), 2, 2),
        (TS >= AT, 500, 5),
        (X != 5.0, 500, 10),
        (~(N < 150), 850, 10),
        (N < 0, 0, 0),
    ],
)
def test_row_groups_that_cannot_fit_are_not_read(
    sorted_file: Path, condition: Any, rows: int, least_groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_rows = 0
    original = reading._whole_table

    def counted(fmt: Any, path: Any, table: pa.Table, *rest: Any) -> pa.Table:
        nonlocal read_rows
        read_rows += table.num_rows
        return original(fmt, path, table, *rest)

    monkeypatch.setattr(reading, "_whole_table", counted)
    fmt = describe(str(sorted_file), filter=condition)
    assert rows_of(fmt, sorted_file).num_rows == rows
    assert read_rows == 100 * least_groups


@given(st.integers(1, 60_000), st.sampled_from(["parquet", "arrow"]))
def test_any_cut_reads_each_row_once(shared: dict[str, Path], at_most: int, ending: str) -> None:
    file = shared[ending]
    fmt = describe(str(file))
    parts = splits(fmt, str(file), at_most)
    assert parts == [Split(str(file))] or (parts[0].first, parts[-1].last) == (0, 10)
    same(pa.concat_tables(read(fmt, parts, failed)), SAMPLE)
    alone = [t for part in parts for t in read(fmt, [part], failed)]
    same(pa.concat_tables(alone), SAMPLE)


@given(st.lists(st.integers(0, 10), max_size=6), st.sampled_from(["parquet", "arrow"]))
def test_any_row_groups(shared: dict[str, Path], cuts: list[int], ending: str) -> None:
    edges = sorted({0, 10, *cuts})
    parts = [Split(str(shared[ending]), a, b) for a, b in itertools.pairwise(edges)]
    same(pa.concat_tables(read(describe(str(shared[ending])), parts, failed)), SAMPLE)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("shared")
    return {ending: write(sample(), folder / f"x.{ending}") for ending in ("parquet", "arrow")}


def test_cuts_are_about_the_size_asked_for(shared: dict[str, Path]) -> None:
    size = shared["parquet"].stat().st_size
    fmt = describe(str(shared["parquet"]))
    assert len(splits(fmt, str(shared["parquet"]), size)) == 1
    assert 2 <= len(splits(fmt, str(shared["parquet"]), size // 2)) <= 3
    assert [(part.first, part.last) for part in splits(fmt, str(shared["parquet"]), 1)] == [
        (i, i + 1) for i in range(10)
    ]
    with pytest.raises(uc.UncombineError, match="at_most_bytes must be at least 1"):
        splits(fmt, str(shared["parquet"]), 0)


def test_tables_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "ROWS", 250)
    file = write(sample(), tmp_path / "x.parquet")
    fmt = describe(str(file))
    sizes = [t.num_rows for t in read(fmt, [Split(str(file))] * 2, failed)]
    assert sum(sizes) == 2000
    assert max(sizes) <= 250
    assert len(sizes) <= 11
    monkeypatch.setattr(reading, "BYTES", 4000)
    assert max(t.nbytes for t in read(fmt, [Split(str(file))], failed)) <= 4400


# Schemas that differ


def two(tmp_path: Path, first: pa.Table, second: pa.Table, **options: Any) -> pa.Table:
    files = [write(first, tmp_path / "a.parquet"), write(second, tmp_path / "b.parquet")]
    return rows_of(describe(tmp_path, **options), *files)


def test_order_and_extra_columns_do_not_matter(tmp_path: Path) -> None:
    first, second = pa.table({"k": [1], "v": [2]}), pa.table({"more": ["x"], "v": [4], "k": [3]})
    assert two(tmp_path, first, second).to_pydict() == {"k": [1, 3], "v": [2, 4]}


def test_a_missing_column(tmp_path: Path) -> None:
    first, second = pa.table({"k": [1], "v": [2]}), pa.table({"k": [3]})
    with pytest.raises(UnreadableFile, match=r"b\.parquet has no column 'v'.*on_missing_column='null'") as caught:
        two(tmp_path, first, second)
    assert caught.value.path == f"file:{tmp_path}/b.parquet"
    assert two(tmp_path, first, second, on_missing_column="null")["v"].to_pylist() == [2, None]
    assert two(tmp_path, first, second, columns=["k"])["k"].to_pylist() == [1, 3]
    nulls = two(tmp_path, first, second, on_missing_column="null", columns=["k"], filter=uc.col("v").is_null())
    assert nulls.to_pydict() == {"k": [3]}


@pytest.mark.parametrize("version", ["1.0", "2.4", "2.6"])
@pytest.mark.parametrize("kind", [pa.string(), pa.list_(pa.string()), pa.int64()], ids=str)
def test_parquet_files_without_rows(tmp_path: Path, version: Any, kind: pa.DataType) -> None:
    """Such a file has a row group without rows, whose column is said to be in a dictionary by version 1.0."""
    first, second = pa.table({"v": pa.array([], kind)}), pa.table({"v": pa.nulls(2, kind)})
    for name, table in (("a", first), ("b", second)):
        pq.write_table(table, tmp_path / f"{name}.parquet", version=version)
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    assert rows_of(describe(tmp_path), *files)["v"].to_pylist() == [None, None]


def test_a_dictionary_of_views(tmp_path: Path) -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.uint8()), pa.array(["a", "b"], pa.string_view()))
    file = write(pa.table({"v": column}), tmp_path / "x.arrow")
    assert rows_of(describe(str(file)), file)["v"].to_pylist() == ["a", None, "b"]


@pytest.mark.parametrize("ending", ["arrow", "arrows"])
def test_dictionaries_of_views_inside_others(tmp_path: Path, ending: str) -> None:
    """Polars writes its categories so."""
    coded = pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.uint32()), pa.array(["a", "b"], pa.string_view()))
    lists, structs = pa.LargeListArray.from_arrays([0, 2, 3], coded), pa.StructArray.from_arrays([coded], ["a"])
    file = write(pa.table({"v": lists, "s": structs.slice(1)}), tmp_path / f"x.{ending}")
    found = rows_of(describe(str(file)), file)
    assert found["v"].to_pylist() == [["a", None], ["b"]]
    assert found["s"].to_pylist() == [{"a": None}, {"a": "b"}]


@pytest.mark.parametrize("store_schema", [True, False])
@pytest.mark.parametrize("kind", [pa.uuid(), pa.json_(pa.large_string())])
def test_types_that_extend_others(tmp_path: Path, kind: pa.BaseExtensionType, store_schema: bool) -> None:
    """Other writers name UUIDs in the file's own schema alone."""
    values = [b"sixteen letters.", None] if kind == pa.uuid() else ['{"a": 1}', None]
    lists = pa.ListArray.from_arrays([0, 2], pa.array(values, kind))
    pq.write_table(pa.table({"v": pa.array(values, kind)}), tmp_path / "v.parquet", store_schema=store_schema)
    pq.write_table(pa.table({"v": lists}), tmp_path / "lists.parquet", store_schema=store_schema)
    for name, wanted in (("v", values), ("lists", [values])):
        file = tmp_path / f"{name}.parquet"
        assert rows_of(describe(str(file)), file)["v"].to_pylist() == wanted


@pytest.mark.parametrize(
    ("has", "values", "to", "fits"),
    [
        (pa.int32(), [1, None], pa.int64(), True),
        (pa.int64(), [1, None], pa.int32(), True),
        (pa.int64(), [2**40], pa.int32(), False),
        (pa.int64(), [-1], pa.uint8(), False),
        (pa.float32(), [0.5], pa.float64(), True),
        (pa.float64(), [0.5, float("nan"), float("inf"), None], pa.float32(), True),
        (pa.float64(), [0.1], pa.float32(), False),
        (pa.int64(), [2**53], pa.float64(), True),
        (pa.int64(), [2**53 + 1], pa.float64(), False),
        (pa.float64(), [1.0], pa.int64(), False),
        (pa.string(), ["1"], pa.int64(), False),
        (pa.int64(), [1], pa.string(), False),
        (pa.bool_(), [True], pa.int64(), False),
        (pa.int64(), [1], UTC_MICROS, False),
        (pa.large_string(), ["a"], pa.string(), True),
        (pa.dictionary(pa.int8(), pa.string()), ["a", None], pa.string(), True),
        (pa.null(), [None], pa.float64(), True),
        (pa.decimal128(5, 2), [Decimal("1.25")], pa.decimal128(10, 3), True),
        (pa.decimal128(5, 2), [Decimal("1.25")], pa.decimal128(10, 1), False),
        (pa.list_(pa.int32()), [[1, None], None], pa.list_(pa.int64()), True),
        (pa.date64(), [dt.date(2016, 1, 20)], pa.date32(), True),
    ],
)
def test_other_types(tmp_path: Path, has: pa.DataType, values: list[Any], to: pa.DataType, fits: bool) -> None:
    file = write(pa.table({"v": pa.array(values, has)}), tmp_path / "x.arrow")
    fmt = describe(str(file), schema=pa.schema({"v": to}))
    if fits:
        got = rows_of(fmt, file)["v"]
        assert got.type == to
        assert got.to_pylist() == pytest.approx(values, nan_ok=True) if pa.types.is_floating(to) else values
    else:
        with pytest.raises(UnreadableFile) as caught:
            rows_of(fmt, file)
        message = str(caught.value)
        assert all(text in message for text in (str(file), "'v'", f"is {has}", f"as {to}", "schema="))


# Instants


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize("kind", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_instants_of_any_unit_and_zone(tmp_path: Path, ending: str, kind: str, zone: str | None) -> None:
    numbers = [0, 1, 1_453_291_226_123, -1, -1_999, None]
    column = pa.array(numbers, pa.int64()).cast(pa.timestamp(kind)).cast(pa.timestamp(kind, zone))
    expected = [None if n is None else n * {"s": 10**6, "ms": 1000, "us": 1}[kind] if kind != "ns" else n // 1000
                for n in numbers]  # fmt: skip
    file = write(pa.table({"ts": column}), tmp_path / f"x.{ending}")
    got = rows_of(describe(str(file)), file)["ts"]
    assert got.type == UTC_MICROS
    assert got.cast(pa.int64()).to_pylist() == expected


def test_instants_of_96_bits(tmp_path: Path) -> None:
    times = [dt.datetime(2016, 1, 20, 12, 0, 26, 123456), dt.datetime(1500, 1, 1), dt.datetime(9999, 1, 1), None]
    file = tmp_path / "x.parquet"
    pq.write_table(pa.table({"ts": pa.array(times, pa.timestamp("us"))}), file, use_deprecated_int96_timestamps=True)
    assert pq.ParquetFile(file).schema.column(0).physical_type == "INT96"
    got = rows_of(describe(str(file)), file)["ts"]
    assert got.to_pylist() == [time and time.replace(tzinfo=dt.UTC) for time in times]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_instants_in_text(tmp_path: Path, form: str) -> None:
    texts = {
        "2016-01-20T12:00:26": "2016-01-20T12:00:26",
        "2016-01-20 12:00:26.5": "2016-01-20T12:00:26.5",
        "2016-01-20T12:00:26Z": "2016-01-20T12:00:26",
        "2016-01-20T12:00:26+01:00": "2016-01-20T11:00:26",
        "2016-01-20 12:00:26.123456-0130": "2016-01-20T13:30:26.123456",
        "2016-01-20T12:00:26.123456789Z": "2016-01-20T12:00:26.123456",
        "2016-01-20": "2016-01-20",
    }
    for chosen in (list(texts), list(texts)[:2], list(texts)[2:5]):
        lines = ["ts", *chosen] if form == "csv" else [f'{{"ts": "{text}"}}' for text in chosen]
        file = tmp_path / f"x.{form}"
        file.write_text("\n".join(lines))
        got = rows_of(describe(str(file), schema=pa.schema({"ts": pa.timestamp("us")})), file)
        assert got["ts"].type == UTC_MICROS
        assert got["ts"].cast(pa.timestamp("us")).to_pylist() == [dt.datetime.fromisoformat(texts[t]) for t in chosen]


# Folders


def test_folders_are_columns(tmp_path: Path) -> None:
    table = sample(100)
    root = tmp_path / "year=1999"
    for day in ("2016-01-20", "2016-01-21"):
        for k in ("a%20b", "c%2Fd", "__HIVE_DEFAULT_PARTITION__"):
            write(table, root / f"when={day}" / f"who={k}" / "x.parquet")
    (root / "_SUCCESS").touch()
    (root / ".x.parquet.crc").write_bytes(b"\1\2")
    (root / "_temporary").mkdir()
    (root / "_temporary" / "y.parquet").write_bytes(b"half")
    fmt = describe(root)
    assert fmt.base == str(root)
    assert fmt.schema.field("when").type == pa.date32()
    assert fmt.schema.names == [*table.schema.names, "when", "who"]
    files = list_files([str(root)])
    assert len(files) == 6
    got = rows_of(fmt, *files).group_by(["when", "who"]).aggregate([([], "count_all")])
    found = {(row["when"], row["who"]): row["count_all"] for row in got.to_pylist()}
    days = [dt.date(2016, 1, 20), dt.date(2016, 1, 21)]
    assert found == {(day, who): 100 for day in days for who in ("a b", "c/d", None)}


def test_folders_as_pandas_reads_them(tmp_path: Path) -> None:
    frame = pd.DataFrame({"part": [1, 1, 2, 3], "v": [1.5, 2.5, 3.5, 4.5]})
    frame.to_parquet(tmp_path / "t", partition_cols=["part"])
    fmt = describe(tmp_path / "t")
    got = rows_of(fmt, *list_files([str(tmp_path / "t")])).to_pandas()
    assert got["part"].dtype == np.int32
    pd.testing.assert_frame_equal(got[["part", "v"]].sort_values("v"), frame, check_dtype=False)


@pytest.mark.parametrize(
    ("texts", "kind", "values"),
    [
        (["1", "-2"], pa.int32(), [1, -2]),
        (["1", str(2**40)], pa.int64(), [1, 2**40]),
        (["1", str(2**70)], pa.string(), ["1", str(2**70)]),
        (["1", "1.5", "1e3"], pa.float64(), [1.0, 1.5, 1000.0]),
        (["2016-01-20", "2016-1-2"], pa.date32(), [dt.date(2016, 1, 20), dt.date(2016, 1, 2)]),
        (["2016-01-20 12%3A00%3A26"], UTC_MICROS, [dt.datetime(2016, 1, 20, 12, 0, 26, tzinfo=dt.UTC)]),
        (["2016-01-20", "2016-13-20"], pa.string(), ["2016-01-20", "2016-13-20"]),
        (["1", "2016-01-20"], pa.string(), ["1", "2016-01-20"]),
        (["1", "__HIVE_DEFAULT_PARTITION__"], pa.int32(), [1, None]),
        (["__HIVE_DEFAULT_PARTITION__"], pa.string(), [None]),
        (["true", ""], pa.string(), ["true", ""]),
    ],
)
def test_types_of_folders(tmp_path: Path, texts: list[str], kind: pa.DataType, values: list[Any]) -> None:
    files = [write(pa.table({"v": [0]}), tmp_path / f"p={text}" / "x.parquet") for text in texts]
    fmt = describe(tmp_path)
    assert fmt.schema.field("p").type == kind
    assert rows_of(fmt, *files)["p"].to_pylist() == values


def test_a_folder_that_does_not_fit_and_one_that_lacks(tmp_path: Path) -> None:
    first = write(pa.table({"v": [0]}), tmp_path / "p=1" / "x.parquet")
    fmt = describe(tmp_path, columns=["p"])
    later = write(pa.table({"v": [0]}), tmp_path / "p=x" / "x.parquet")
    with pytest.raises(UnreadableFile, match=r"folder p=x does not have the type of column 'p', int32: give schema="):
        rows_of(fmt, later)
    lacks = write(pa.table({"v": [0]}), tmp_path / "x.parquet")
    with pytest.raises(UnreadableFile, match="has no column 'p'"):
        rows_of(fmt, lacks)
    told = describe(tmp_path, schema=pa.schema({"p": "string", "v": "int64"}), on_missing_column="null")
    assert rows_of(told, first, later, lacks)["p"].to_pylist() == ["1", "x", None]


def test_a_folder_that_the_filter_excludes_is_not_opened(tmp_path: Path) -> None:
    files = [write(sample(10), tmp_path / f"p={i}" / "x.parquet") for i in range(3)]
    fmt = describe(tmp_path, columns=["k", "p"], filter=(uc.col("p") == 1) & (uc.col("x") >= 0))
    files[0].write_bytes(b"broken")
    assert splits(fmt, str(files[0])) == []
    assert [t.num_rows for t in read(fmt, [Split(str(file)) for file in files], failed)] == [10]
    either = describe(tmp_path, schema=fmt.schema, filter=(uc.col("p") == 1) | (uc.col("x") >= 0))
    assert [t.num_rows for t in read(either, [Split(str(file)) for file in files[1:]], failed)] == [20]


def test_the_folder_wins_over_the_column(tmp_path: Path) -> None:
    file = write(pa.table({"p": [7, 7], "v": [0, 1]}), tmp_path / "p=1" / "x.parquet")
    assert rows_of(describe(tmp_path), file).to_pydict() == {"p": [1, 1], "v": [0, 1]}
    assert rows_of(describe(tmp_path / "p=1"), file).to_pydict() == {"p": [7, 7], "v": [0, 1]}
    assert rows_of(describe(tmp_path / "p=1", base=str(tmp_path)), file)["p"].to_pylist() == [1, 1]


def test_paths_and_patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("p=1/a.parquet", "p=2/a.parquet", "p=2/b.parquet", "p=2/c.txt"):
        write(pa.table({"v": [0]}), tmp_path / name) if name.endswith("t") and "txt" not in name else (
            tmp_path / name
        ).write_text("no data")
    root = str(tmp_path)
    assert list_files([f"{root}/p=*/a.*"]) == [f"{root}/p=1/a.parquet", f"{root}/p=2/a.parquet"]
    assert len(list_files([f"file://{root}/p=2", f"{root}/p=2/a.parquet"])) == 3
    for paths in (f"{root}/*/a.parquet", [f"{root}/p=1", f"{root}/p=2"], f"{root}/", f"file:{root}"):
        fmt = describe(paths)
        assert (fmt.base, fmt.schema.names) == (root, ["v", "p"])
    assert describe(f"{root}/p=1/a.parquet").schema.names == ["v"]
    monkeypatch.chdir(tmp_path)
    assert describe("p=2").base == f"{root}/p=2"


# Bad files


def broken(tmp_path: Path, ending: str) -> Iterator[tuple[Path, str]]:
    good = write(sample(), tmp_path / f"good.{ending}").read_bytes()
    for name, data in (("empty", b""), ("cut", good[: len(good) // 2]), ("noise", b"\x07\xff\x00," * 400)):
        bad = tmp_path / f"{name}.{ending}"
        bad.write_bytes(data)
        yield bad, "cannot be read"
    yield tmp_path / f"gone.{ending}", "was deleted"


@pytest.mark.parametrize("ending", ["parquet", "arrow", "arrows", "csv.gz", "json", "json.gz"])
def test_bad_files_are_errors_or_skipped(tmp_path: Path, ending: str) -> None:
    files = list(broken(tmp_path, ending))
    good = tmp_path / f"good.{ending}"
    fmt = describe(str(good))
    for bad, reason in files:
        with pytest.raises(UnreadableFile, match=reason) as caught:
            rows_of(fmt, bad)
        assert str(bad) in str(caught.value)
        assert "on_bad_file='skip'" in str(caught.value)
        assert caught.value.path == f"file:{bad}"
    fmt = describe(str(good), on_bad_file="skip")
    skipped: list[tuple[str, str]] = []
    got = rows_of(fmt, *(bad for bad, _ in files), good, bad=lambda *what: skipped.append(what))
    same(got, rows_of(fmt, good))
    assert [path for path, _ in skipped] == [f"file:{bad}" for bad, _ in files]
    assert all(reason in told for (_, reason), (_, told) in zip(files, skipped, strict=True))


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_damage_in_the_middle_gives_no_rows(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"x.{ending}"
    table = sample().select(["name"])
    if ending == "parquet":
        pq.write_table(table, file, row_group_size=100, compression="zstd", use_dictionary=False)
    else:
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(str(file), table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=100)
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 40] = b"\xff" * 40
    fmt = describe(str(file), on_bad_file="skip")
    file.write_bytes(data)
    skipped: list[str] = []
    assert rows_of(fmt, file, bad=lambda path, reason: skipped.append(path)).num_rows == 0
    assert skipped == [f"file:{file}"]
    with pytest.raises(UnreadableFile, match="cannot be read"):
        rows_of(describe(str(file)), file)


def test_a_file_of_other_types_is_skipped_too(tmp_path: Path) -> None:
    skipped: list[str] = []
    good = write(pa.table({"v": [1]}), tmp_path / "a.parquet")
    bad = write(pa.table({"v": ["x"]}), tmp_path / "b.parquet")
    got = rows_of(describe(tmp_path, on_bad_file="skip"), bad, good, bad=lambda path, why: skipped.append(why))
    assert got["v"].to_pylist() == [1]
    assert ["'v' is string" in why for why in skipped] == [True]


def test_describing_passes_over_bad_files_on_request(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"")
    write(sample(), tmp_path / "b.parquet")
    with pytest.raises(UnreadableFile, match=r"a\.parquet"):
        describe(tmp_path)
    assert describe(tmp_path, on_bad_file="skip").schema.names == sample().schema.names


def test_an_error_of_the_filter_is_not_the_files_fault(tmp_path: Path) -> None:
    file = write(pa.table({"v": [2**62]}), tmp_path / "a.parquet")
    fmt = describe(str(file), filter=uc.col("v") * 4 > 0, on_bad_file="skip")
    with pytest.raises(uc.UncombineError, match="failed on the data"):
        rows_of(fmt, file)


# CSV and JSON


def test_csv_options(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("# made by hand\n1;'a;b';NA;20.01.2016\n2;'';3,5;21.01.2016\n")
    fmt = describe(
        str(file),
        schema=pa.schema({"k": pa.int64(), "s": pa.string(), "x": pa.float64(), "ts": pa.timestamp("ms")}),
        options={
            "delimiter": ";", "quote_char": "'", "null_values": ["NA"], "header": False, "skip_rows": 1,
            "decimal_point": ",", "timestamp_parsers": ["%d.%m.%Y"],
        },
    )  # fmt: skip
    days = [dt.datetime(2016, 1, day, tzinfo=dt.UTC) for day in (20, 21)]
    assert rows_of(fmt, file).to_pydict() == {"k": [1, 2], "s": ["a;b", ""], "x": [None, 3.5], "ts": days}
    file.write_text("1,2\n3,4\n")
    fmt = describe(str(file), options={"header": False})
    assert rows_of(fmt, file).to_pydict() == {"f0": [1, 3], "f1": [2, 4]}


def test_csv_nulls_are_what_spark_takes_for_null(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text('s,x\n,\n"",NaN\nNULL,1\n')
    got = rows_of(describe(str(file), schema=pa.schema({"s": "string", "x": "double"})), file)
    assert got["s"].to_pylist() == [None, "", "NULL"]
    assert got["x"].to_pylist() == pytest.approx([None, float("nan"), 1.0], nan_ok=True)


def test_csv_files_of_other_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,v\n1,2\n")
    (tmp_path / "b.csv").write_text("v,more,k\n4,x,3\n")
    (tmp_path / "c.csv").write_text("k\n5\n")
    (tmp_path / "d.csv").write_text("k,v\n")
    files = [tmp_path / f"{name}.csv" for name in "abcd"]
    with pytest.raises(UnreadableFile, match=r"c\.csv has no column 'v'"):
        rows_of(describe(tmp_path), *files)
    got = rows_of(describe(tmp_path, on_missing_column="null"), *files)
    assert got.to_pydict() == {"k": [1, 3, 5], "v": [2, 4, None]}


@pytest.mark.parametrize("line", ["x,1", "1", "1,2,3"])
def test_a_csv_line_that_does_not_fit(tmp_path: Path, line: str) -> None:
    file = tmp_path / "x.csv"
    file.write_text(f"k,v\n1,2\n{line}\n")
    with pytest.raises(UnreadableFile, match=r"x\.csv cannot be read"):
        rows_of(describe(str(file), schema=pa.schema({"k": "int64", "v": "int64"})), file)


def test_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text('{"k": 1, "s": {"a": [1, 2]}}\n\n{"v": 2.5, "more": 1}\n{"k": null, "v": 1}')
    kinds = {"k": pa.int32(), "s": pa.struct({"a": pa.list_(pa.int64())}), "v": pa.float64()}
    got = rows_of(describe(str(file), schema=pa.schema(kinds)), file)
    frame = pd.read_json(file, lines=True)
    assert got["k"].to_pylist() == [1, None, None]
    assert got["v"].to_pandas().equals(frame["v"])
    assert got["s"].to_pylist() == [{"a": [1, 2]}, None, None]
    with pytest.raises(UnreadableFile, match=r"x\.json cannot be read"):
        rows_of(describe(str(file), schema=pa.schema({"k": pa.string()})), file)


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_text_files_of_many_blocks(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uncombine.files.text_files.BLOCK", 1000)
    table = sample().drop_columns("x")
    file = write(table, tmp_path / f"x.{ending}")
    same(rows_of(describe(str(file), schema=table.schema), file), table)


def test_a_json_line_longer_than_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uncombine.files.text_files.BLOCK", 50)
    file = tmp_path / "x.json"
    file.write_text('{"s": "%s"}\n{"s": "b"}\n' % ("a" * 500))
    assert rows_of(describe(str(file)), file)["s"].to_pylist() == ["a" * 500, "b"]


# What is asked wrongly


def test_no_files_and_unknown_formats(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"there are no files in .*nothing"):
        describe(tmp_path / "nothing")
    with pytest.raises(UnreadableFile, match="there are no files"):
        describe(tmp_path)
    assert describe(tmp_path, "csv", pa.schema({"k": "int64"})).base == str(tmp_path)
    (tmp_path / "x.txt").write_text("a\n")
    with pytest.raises(uc.UncombineError, match=r"name of .*x\.txt does not end with a known format: give format="):
        describe(tmp_path)
    assert describe(tmp_path, "csv").schema.names == ["a"]
    write(sample(), tmp_path / "x.parquet")
    (tmp_path / "x.csv").write_text("a\n")
    with pytest.raises(uc.UncombineError, match="formats csv and parquet"):
        describe(tmp_path)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"format": "orc"}, "no file format 'orc'"),
        ({"columns": ["nam"]}, "did you mean 'name'"),
        ({"filter": uc.col("kk") > 1}, "did you mean 'k'"),
        ({"filter": uc.col("k") + 1}, "filter= takes a condition"),
        ({"on_bad_file": "ignore"}, "on_bad_file= must be 'error' or 'skip'"),
        ({"on_missing_column": 0}, "on_missing_column= must be 'error' or 'null'"),
        ({"options": {"delimiter": ";"}}, "'parquet' has no option 'delimiter'"),
        ({"schema": pa.schema([("a", "int64"), ("a", "int64")])}, "several columns 'a'"),
        ({"format": "csv", "schema": pa.schema({"a": pa.list_(pa.int64())})}, "CSV cannot hold list"),
    ],
)
def test_what_is_asked_wrongly(tmp_path: Path, asked: dict[str, Any], message: str) -> None:
    file = write(sample(), tmp_path / "x.parquet")
    with pytest.raises(uc.UncombineError, match=message):
        describe(str(file), **asked)


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("watermak", "give watermark= to uc.flow()"),
        ("on_bad_files", "did you mean 'on_bad_file'?"),
        ("delimeter", "did you mean 'delimiter'?"),
        ("delimiter", "'parquet' has no option 'delimiter'"),
        ("sheet", "no option 'sheet': known are 'format'"),
    ],
)
def test_an_argument_that_is_misspelt_is_no_option_of_the_format(tmp_path: Path, option: str, meant: str) -> None:
    file = write(sample(), tmp_path / "x.parquet")
    with pytest.raises(uc.UncombineError, match=re.escape(meant)):
        uc.flow(uc.Files(str(file), **{option: ";"}))


def test_old_feather_files_say_so(tmp_path: Path) -> None:
    (tmp_path / "x.feather").write_bytes(b"FEA1" + bytes(100) + b"FEA1")
    with pytest.raises(UnreadableFile, match="Feather of version 1"):
        describe(tmp_path)


# Other file systems


@pytest.mark.parametrize(
    ("path", "address", "inside"),
    [
        ("/tmp/a%20b c.csv", "", "/tmp/a%20b c.csv"),
        ("file:/tmp/x", "", "/tmp/x"),
        ("file:///tmp/x", "", "/tmp/x"),
        ("s3a://bucket/k=a%20b/x", "s3://bucket", "/k=a%20b/x"),
        ("hdfs://host:9000/x", "hdfs://host:9000", "/x"),
        ("abfss://box@account.dfs.core.windows.net/x", "abfss://box@account.dfs.core.windows.net", "/x"),
        ("gs://bucket/x", "gs://bucket", "/x"),
    ],
)
def test_paths_as_spark_writes_them(path: str, address: str, inside: str) -> None:
    assert where.parts_of(path) == (address, inside)


def test_files_of_an_object_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is a local folder here, behind Arrow's interface of file systems."""
    asked = []

    class Stores:
        @staticmethod
        def from_uri(uri: str) -> tuple[pafs.FileSystem, str]:
            asked.append(uri)
            return pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem()), "bucket/"

    for i, folder in enumerate(("k=a%20b", "k=c")):
        write(sample(seed=i), tmp_path / "bucket" / "t" / folder / "x.parquet")
    monkeypatch.setattr(where, "pafs", SimpleNamespace(**{**vars(pafs), "FileSystem": Stores}))
    where._system.cache_clear()
    fmt = describe("s3a://bucket/t/*/x.parquet")
    assert (fmt.base, fmt.schema.field("k").type) == ("s3://bucket/t", pa.string())
    assert list_files(["s3a://bucket/t"]) == ["s3://bucket/t/k=a%20b/x.parquet", "s3://bucket/t/k=c/x.parquet"]
    parts = splits(fmt, "s3a://bucket/t/k=a%20b/x.parquet", 10_000)
    assert len(parts) > 1
    got = pa.concat_tables(read(fmt, parts, failed))
    assert set(got["k"].to_pylist()) == {"a b"}
    same(got.drop_columns("k"), sample().drop_columns("k"))
    assert asked == ["s3://bucket/"]
    where._system.cache_clear()
    shutil.rmtree(tmp_path / "bucket")


def test_a_row_group_at_once_and_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.parquet"
    table = SAMPLE.append_column("a.b", SAMPLE["x"]).append_column("a", pa.array([{"b": i} for i in range(1000)]))
    pq.write_table(table, file)
    for columns in (None, ["name", "a"], ["a.b", "k"], []):
        fmt = describe(str(file), columns=columns)
        expected = joined([table.select(columns or [])], fmt.output) if columns is not None else table
        monkeypatch.undo()
        same(rows_of(fmt, file), expected)
        assert rows_of(fmt, file).num_rows == 1000
        monkeypatch.setattr(parquet_files, "AT_ONCE_ROWS", 10)
        assert rows_of(fmt, file).num_rows == 1000
