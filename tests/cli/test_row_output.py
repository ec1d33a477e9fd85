"""The rows of a command as text and as files: JSON, CSV, Parquet and Arrow, each of them whole."""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

import uncombine as uc
from uncombine.cli import row_output
from uncombine.cli.failures import Failed
from uncombine.cli.row_output import check_output, give, write_file
from uncombine.errors import UncombineError
from uncombine.files import paths

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
ROWS = pa.table(
    {
        "name": ['a "b", c', None],
        "at": pa.array([NOON, None], pa.timestamp("us", "UTC")),
        "day": [date(2024, 5, 1), None],
        "took": [timedelta(seconds=90), None],
        "cents": [Decimal("1.10"), None],
        "x": [float("nan"), 0.1],
        "done": [True, None],
        "best": [[{"x": float("inf"), "at": NOON}], None],
        "raw": [b"\xff", None],
    }
)


def arguments(output: str | Path | None = None, **options: object) -> argparse.Namespace:
    plain = {"output": None if output is None else str(output), "overwrite": False, "json": False, "limit": None}
    plain |= {"sort": [], "having": []}
    return argparse.Namespace(**{**plain, **options})


def test_json_has_values_that_json_has(capsys: pytest.CaptureFixture[str]) -> None:
    give(ROWS, arguments(json=True))
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {
        "name": 'a "b", c',
        "at": "2024-05-01T12:00:00Z",
        "day": "2024-05-01",
        "took": "0:01:30",
        "cents": "1.10",
        "x": None,
        "done": True,
        "best": [{"x": None, "at": "2024-05-01T12:00:00Z"}],
        "raw": "ff",
    }
    assert second == {**dict.fromkeys(first), "x": 0.1}


def test_json_has_all_rows_and_a_terminal_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    many = pa.table({"n": range(120)})
    give(many, arguments(json=True))
    assert len(capsys.readouterr().out.splitlines()) == 120
    give(many, arguments(json=True, limit=3))
    assert len(capsys.readouterr().out.splitlines()) == 3
    give(many, arguments(), ["3 rows left out"])
    told = capsys.readouterr()
    assert told.out.splitlines()[-1] == "... 70 more rows"
    assert told.err == "uncombine: 3 rows left out\n"


def test_rows_in_an_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = pa.table(
        {"k": ["b", "a", None, "a"], "n": [1.5, 2.5, 2.5, None], "total desc": [1, 2, 3, 4], "l": [[1]] * 4}
    )
    rows = rows.set_column(0, "k", rows["k"].dictionary_encode())
    for sort, found in (
        (["n desc", "k"], [2, 3, 1, 4]),
        (["k ASC", "n"], [2, 4, 1, 3]),
        (["total desc"], [1, 2, 3, 4]),
        (["total desc desc"], [4, 3, 2, 1]),
    ):
        give(rows, arguments(json=True, sort=sort))
        assert [json.loads(line)["total desc"] for line in capsys.readouterr().out.splitlines()] == found
    give(rows, arguments(tmp_path / "top.parquet", sort=["total desc desc"], limit=2))
    assert pq.read_table(tmp_path / "top.parquet")["total desc"].to_pylist() == [4, 3]
    for sort, error in ((["m desc"], "--sort needs column 'm'"), (["l"], "--sort 'l' is a column of list")):
        with pytest.raises(UncombineError, match=error):
            give(rows, arguments(sort=sort))


def test_rows_under_a_condition(capsys: pytest.CaptureFixture[str]) -> None:
    at = pa.array([NOON, NOON + timedelta(hours=1), None], pa.timestamp("us", "Europe/Berlin"))
    rows = pa.table({"n": [1, 2, 3], "at": at, "k": ["a", "b", "b"]})
    for having, found in (
        (["n>1", "k=b"], [2, 3]),
        (["at>=2024-05-01 15:00"], [2]),
        (["at<2024-05-01T12:30:00Z"], [1]),
        (["col('n') * 2 > 4"], [3]),
        (["n>7"], []),
    ):
        give(rows, arguments(json=True, having=having))
        assert [json.loads(line)["n"] for line in capsys.readouterr().out.splitlines()] == found
    for having, error in (("m>1", "--having needs column 'm'"), ("n>x", "--having 'n>x' compares column 'n'")):
        with pytest.raises(UncombineError, match=error):
            give(rows, arguments(having=[having]))


def test_a_terminal_has_no_column_that_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    panes = {"window_end": [1], "event_time": [0], "processing_time": [None], "n": [5]}
    give(pa.table(panes), arguments())
    assert capsys.readouterr().out.split()[:2] == ["window_end", "n"]
    give(pa.table({"event_time": [0], "processing_time": [1]}), arguments())
    assert capsys.readouterr().out.split()[:2] == ["event_time", "processing_time"]


@pytest.mark.parametrize("ending", ["parquet", "arrow", "feather"])
def test_a_file_has_the_rows(ending: str, tmp_path: Path) -> None:
    rows = ROWS.drop_columns(["x", "best"])  # NaN is unlike itself
    write_file(rows, str(tmp_path / f"rows.{ending}"))
    back = uc.flow(str(tmp_path / f"rows.{ending}"), time="at").select(*rows.column_names).run()
    assert back.select(rows.column_names).to_pylist() == rows.to_pylist()
    assert os.listdir(tmp_path) == [f"rows.{ending}"]


def test_a_file_of_text_has_the_rows(tmp_path: Path) -> None:
    write_file(ROWS, str(tmp_path / "rows.csv"))
    first, second = csv.DictReader((tmp_path / "rows.csv").open())
    assert list(first.values()) == [
        *('a "b", c', "2024-05-01T12:00:00Z", "2024-05-01", "0:01:30", "1.10", "nan", "true"),
        *('[{"x": null, "at": "2024-05-01T12:00:00Z"}]', "ff"),
    ]
    assert set(second.values()) == {"", "0.1"}
    write_file(ROWS, str(tmp_path / "rows.json.gz"))
    lines = gzip.decompress((tmp_path / "rows.json.gz").read_bytes()).splitlines()
    assert [json.loads(line)["cents"] for line in lines] == ["1.10", None]


def test_a_file_that_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("mine")
    with pytest.raises(uc.errors.InvalidArgument, match="is there already: give --overwrite, or another name"):
        give(ROWS, arguments(path))
    assert path.read_text() == "mine"
    give(ROWS, arguments(path, overwrite=True))
    assert path.read_text().startswith("name,at")
    assert capsys.readouterr().err == f"wrote 2 rows into {path}\n"


def test_a_failure_leaves_no_part_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("mine")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(Failed, match=r"rows\.csv' cannot be written: No space left on device"):
        write_file(ROWS, str(path))
    assert [path.read_text(), *os.listdir(tmp_path)] == ["mine", "rows.csv"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("rows.txt", "--output writes a file that ends with .parquet, .arrow, .csv or .json"),
        ("rows", "--output writes a file that ends with"),
        ("rows.csv.zst", "--output writes a file that ends with"),
        ("rows.parquet.gz", "--output writes a file that ends with"),
        ("folder.csv", "is a folder: write "),
        ("none/rows.csv", "there is no folder "),
    ],
)
def test_a_name_that_cannot_be_written_is_refused(name: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(uc.errors.InvalidArgument) as refused:
        check_output(arguments(tmp_path / name))
    assert says in str(refused.value)


def test_overwrite_alone_is_refused() -> None:
    with pytest.raises(uc.errors.InvalidArgument, match="give --output FILE"):
        check_output(arguments(overwrite=True))


def test_a_file_of_an_object_store_is_written_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem())
    for module in (row_output, paths):
        monkeypatch.setattr(module, "locate", lambda path, access=None: (store, paths.parts_of(path)[1]))
    write_file(ROWS, "s3://bucket/rows.parquet")
    assert pq.read_table(tmp_path / "rows.parquet").num_rows == 2
    with pytest.raises(uc.errors.InvalidArgument, match="is there already"):
        check_output(arguments("s3://bucket/rows.parquet"))
    check_output(arguments("s3://bucket/none/rows.parquet"))


def test_a_store_that_lets_nobody_in_is_told_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed:
        def get_file_info(self, path: str) -> None:
            raise pa.ArrowException("Unknown error: N5Azure4Core11Credentials23AuthenticationExceptionE: No token")

    monkeypatch.setattr(paths, "locate", lambda path, access=None: (Closed(), path))
    says = "abfs://a@b/x.csv cannot be reached: No token: check the address, and the credentials"
    with pytest.raises(uc.errors.StoreUnreachable, match=says):
        check_output(arguments("abfs://a@b/x.csv"))


def test_a_file_that_a_link_names_is_written_with_its_permissions(tmp_path: Path) -> None:
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_file(pa.table({"n": [1]}), str(link))
    assert link.is_symlink()
    assert target.read_text().split() == ["n", "1"]
    assert target.stat().st_mode & 0o777 == 0o640
