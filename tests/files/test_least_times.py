"""The least time of a file is that of its rows, however it is found; a file without one, or a damaged one, says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from seeds import seeds

from uncombine.errors import UnreadableFile
from uncombine.files import parquet_files
from uncombine.files.least_times import least_time
from uncombine.files.reading import describe

KINDS = [
    pa.timestamp("s"),
    pa.timestamp("ms", "UTC"),
    pa.timestamp("us"),
    pa.timestamp("us", "Europe/Berlin"),
    pa.timestamp("ns", "UTC"),
    pa.date32(),
]


def least(path: Path, schema: pa.Schema | None = None) -> int | None:
    return least_time(describe(str(path), schema=schema), "ts", str(path))


def drawn(seed: int) -> tuple[pa.Table, int]:
    """Rows with times of some type, some of them null, and the least of them in microseconds."""
    r = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    seconds = r.integers(-2_000_000_000, 2_000_000_000, r.integers(1, 60))
    null = r.random(len(seconds)) < 0.3
    null[r.integers(len(null))] = False
    if pa.types.is_date(kind):
        days = seconds // 86_400
        column = pa.array(days.astype(np.int32), pa.int32(), mask=null).cast(kind)
        return pa.table({"ts": column}), int(days[~null].min()) * 86_400_000_000
    per = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[kind.unit]
    values = seconds * per + r.integers(0, per, len(seconds))
    table = pa.table({"ts": pa.array(values, pa.int64(), mask=null).cast(kind), "n": np.arange(len(seconds))})
    return table, int(values[~null].min()) * 1_000_000 // per


@pytest.mark.parametrize("seed", seeds(60))
def test_parquet_files_of_every_time_type(seed: int, tmp_path: Path) -> None:
    table, want = drawn(seed)
    r = np.random.default_rng(seed)
    options: dict[str, Any] = {"row_group_size": int(r.integers(1, 30)), "write_statistics": bool(r.random() < 0.7)}
    pq.write_table(table, tmp_path / "a.parquet", **options)
    assert least(tmp_path / "a.parquet") == want


def test_statistics_are_read_instead_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, want = drawn(1)
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=7)
    pq.write_table(table, tmp_path / "b.parquet", row_group_size=7, write_statistics=False)

    def refused(*_: object) -> None:
        raise AssertionError("rows are read")

    monkeypatch.setattr(parquet_files.ParquetSource, "tables", refused)
    assert least(tmp_path / "a.parquet") == want
    with pytest.raises(UnreadableFile, match="rows are read"):
        least(tmp_path / "b.parquet")


@pytest.mark.parametrize("form", ["csv", "json", "arrow"])
def test_files_without_statistics(form: str, tmp_path: Path) -> None:
    times = np.random.default_rng(1).permutation(20_000)  # the least is not among the first rows
    table = pa.table({"n": times, "ts": pa.array(times * 1_000_000 + 7_000_000, pa.timestamp("us", "UTC"))})
    path = tmp_path / f"a.{form}"
    match form:
        case "csv":
            pacsv.write_csv(table, path)
        case "arrow":
            feather.write_feather(table, str(path))
        case _:
            path.write_text("\n".join(json.dumps({**row, "ts": str(row["ts"])}) for row in table.to_pylist()))
    assert least(path, table.schema) == 7_000_000


def test_the_name_of_a_folder_is_enough(tmp_path: Path) -> None:
    folder = tmp_path / "ts=2016-01-20"
    folder.mkdir()
    (folder / "a.parquet").write_bytes(b"never opened")
    form = describe(str(tmp_path), "parquet", pa.schema({"ts": pa.date32(), "n": pa.int64()}))
    assert least_time(form, "ts", str(folder / "a.parquet")) == 1_453_248_000_000_000


def test_a_time_that_no_row_may_have_does_not_hide_others(tmp_path: Path) -> None:
    """The least value of its row group is before the year 1, and the next one is the least time of the file."""
    times = pa.array([-(2**62), 5_000_000, 9_000_000], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"ts": times}), tmp_path / "a.parquet", row_group_size=2)
    assert least(tmp_path / "a.parquet") == 5_000_000


def test_a_file_without_times_has_no_least_one(tmp_path: Path) -> None:
    table = pa.table({"ts": pa.nulls(3, pa.timestamp("us", "UTC"))})
    pq.write_table(table, tmp_path / "a.parquet")
    pq.write_table(table.slice(0, 0), tmp_path / "b.parquet")
    assert [least(tmp_path / name) for name in ("a.parquet", "b.parquet")] == [None, None]


@pytest.mark.parametrize("damage", [b"", b"PAR1 this is none PAR1"])
def test_a_damaged_file_is_named(damage: bytes, tmp_path: Path) -> None:
    pq.write_table(drawn(1)[0], tmp_path / "a.parquet")
    form = describe(str(tmp_path / "a.parquet"))
    (tmp_path / "a.parquet").write_bytes(damage)
    with pytest.raises(UnreadableFile, match=r"a\.parquet cannot be read"):
        least_time(form, "ts", str(tmp_path / "a.parquet"))
