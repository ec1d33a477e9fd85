"""A table that a seed corrects is right after a start that ended anywhere, and is refused to any other query."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import uncombine as uc
from uncombine.errors import TableMismatch
from uncombine.panes.state.seed import Seed
from uncombine.sparkops.tables.table_start import TableStart
from uncombine.tables import Keeper, table_flow, target_of

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string(), "x": pa.int64()})
URLS = ["duckdb:{}/a.db#totals", "delta:{}/totals", "parquet:{}/totals"]


def totals() -> uc.Flow:
    rows = uc.flow(SCHEMA, watermark="1 minute").window("1 hour", "each row", mode="retracting")
    return rows.combine(by="user", total=uc.Sum("x"))


def seed_of(folder: Path) -> Seed:
    rows = [{"ts": 0, "user": "ada", "x": 1}, {"ts": 1, "user": "bob", "x": 2}, {"ts": 2, "user": "ada", "x": 4}]
    return totals().seed(rows, to=folder / "seed")


def start_of(url: str, folder: Path, seed: Seed | None) -> TableStart:
    flow, layout = table_flow(totals())
    return TableStart.of(flow, target_of(url.format(folder)), layout, seed)


def rows_of(keeper: Keeper) -> list[tuple[str, int]]:
    rows = keeper.writer.read().to_pylist()
    return sorted((row["user"], row["total"]) for row in rows)


class _Killed(Exception):
    """The end of a process."""


def killed_after(monkeypatch: pytest.MonkeyPatch, name: str, calls: int) -> None:
    """Let a method of keepers end the process after so many calls."""
    method: Callable[..., Any] = getattr(Keeper, name)
    left = [calls]

    def counted(self: Keeper, *arguments: Any, **options: Any) -> Any:
        out = method(self, *arguments, **options)
        left[0] -= 1
        if left[0] == 0:
            raise _Killed
        return out

    monkeypatch.setattr(Keeper, name, counted)


@pytest.mark.parametrize("url", URLS)
def test_a_start_that_ended_anywhere_is_finished(
    url: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = seed_of(tmp_path)
    start = start_of(url, tmp_path, seed)
    for name, calls in (("owner", 1), ("start", 1), ("take", 1), ("start", 2)):
        with monkeypatch.context() as patch:
            killed_after(patch, name, calls)
            with pytest.raises(_Killed):
                start.keeper(spark, "query", patient=False)
    for _ in range(2):
        keeper, last = start.keeper(spark, "query", patient=False)
        assert last == -1
        assert rows_of(keeper) == [("ada", 5), ("bob", 2)]
        keeper.close()


def test_a_table_that_is_corrected_belongs_to_one_query(spark: SparkSession, tmp_path: Path) -> None:
    seed = seed_of(tmp_path)
    start_of(URLS[0], tmp_path, seed).keeper(spark, "query", patient=False)[0].close()
    with pytest.raises(TableMismatch, match="is written with another checkpoint"):
        start_of(URLS[0], tmp_path, seed).keeper(spark, "other", patient=False)
    with pytest.raises(TableMismatch, match="is written with another checkpoint"):
        start_of(URLS[0], tmp_path, None).keeper(spark, "other", patient=False)
