"""Live tables in a folder with a Parquet file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from live_tables import (
    LAYOUT,
    NESTED,
    VALUES,
    adapted,
    batch_of,
    finds,
    follows,
    holds,
    lacks_column,
    refuses,
    row,
    taken_over,
    writer_of,
)

import uncombine as uc
from uncombine.errors import TableMismatch
from uncombine.tables import Changes, parquet


def test_a_table_follows_the_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROWS", 3)
    assert sum(follows(f"parquet:{tmp_path}/{seed}", seed) for seed in range(3)) > 200


def test_a_table_refuses_what_does_not_fit(tmp_path: Path) -> None:
    refuses(f"parquet:{tmp_path}/t")


def test_a_table_becomes_that_of_a_changed_flow(tmp_path: Path) -> None:
    adapted(f"parquet:{tmp_path}/t")


def test_a_table_is_taken_over_from_the_maker_of_a_seed(tmp_path: Path) -> None:
    taken_over(f"parquet:{tmp_path}/t")


def test_hard_names_and_values(tmp_path: Path) -> None:
    holds(f"parquet:{tmp_path}/a table 😀 #1", VALUES | NESTED)
    finds(f"parquet:{tmp_path}/keys")


def test_a_reader_goes_on_with_the_file_that_it_has_open(tmp_path: Path) -> None:
    writer = writer_of(f"parquet:{tmp_path}/t")
    writer.start()
    writer.apply(0, batch_of(row("a", 1), row("b", 2)))
    with pq.ParquetFile(tmp_path / "t" / "table.parquet") as opened:
        writer.apply(1, batch_of(row("a", 1, -1), row("b", 2, -1), row("c", 3)))
        assert opened.read()["k"].to_pylist() == ["a", "b"]
    assert writer.read()["k"].to_pylist() == ["c"]


def test_a_failure_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    writer = writer_of(f"parquet:{tmp_path}/t")
    writer.start()
    calls = iter(range(9))

    def broken() -> object:
        yield from batch_of(row("b", 2)).batches()
        if next(calls):  # the keys are read before the rows
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        writer.apply(0, Changes(LAYOUT, 1, broken))  # type: ignore[arg-type]
    assert [path.name for path in (tmp_path / "t").iterdir()] == ["table.parquet"]
    (tmp_path / "t" / ".me-of-a-killed-process").touch()
    assert writer.start() == -1
    assert [path.name for path in (tmp_path / "t").iterdir()] == ["table.parquet"]


def test_a_column_that_somebody_drops(tmp_path: Path) -> None:
    writer = writer_of(f"parquet:{tmp_path}/t")
    writer.start()
    writer.apply(0, batch_of(row("a", 1)))
    file = tmp_path / "t" / "table.parquet"
    pq.write_table(pq.read_table(file).drop_columns(["n"]), file)
    lacks_column(f"parquet:{tmp_path}/t", "n")


def test_tables_of_others(tmp_path: Path) -> None:
    for name in ("table.parquet", "part-0.parquet"):
        folder = tmp_path / name.removesuffix(".parquet")
        folder.mkdir()
        pq.write_table(pa.table({"k": [1]}), folder / name)
        for work in ("start", "once"):
            with pytest.raises(TableMismatch, match="has rows that were not written here"):
                getattr(writer_of(f"parquet:{folder}"), work)(*([batch_of()] if work == "once" else []))
    with pytest.raises(TableMismatch, match="is gone"):
        writer_of(f"parquet:{tmp_path}/other").read()


def test_a_flow_is_written_once(tmp_path: Path) -> None:
    scores = pa.table({"ts": [0, 1, 2], "user": ["ada", "bob", "ada"], "score": [3, 5, 4]})
    totals = uc.flow(scores).window(uc.Global()).combine(by="user", total=uc.Sum("score"))
    totals.to_table(f"parquet:{tmp_path}/t")
    assert sorted(pq.read_table(tmp_path / "t")["total"].to_pylist()) == [5, 7]
    with pytest.raises(TableMismatch):
        totals.to_table(f"parquet:{tmp_path}/t")
