"""A kill between the commit of a table and that of Spark: a function that answers otherwise is not asked again."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import uncombine as uc

TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema({"ts": TIME, "id": pa.int64(), "d": pa.int64()})


def write(folder: Path, number: int, rows: list[tuple[int, int]]) -> None:
    table = pa.table({"ts": [0] * len(rows), "id": [id for id, _ in rows], "d": [d for _, d in rows]})
    pq.write_table(table.cast(SCHEMA), folder / f"{number}.parquet")


@pytest.mark.parametrize("several", [False, True])
def test_what_a_table_has_is_what_the_state_retracts(spark: SparkSession, tmp_path: Path, several: bool) -> None:
    folder, calls = tmp_path / "in", tmp_path / "calls"
    folder.mkdir()
    calls.mkdir()

    def numbered(table: pa.Table) -> pa.Table:
        """Each call gives another number, also one of another process."""
        if not table.num_rows:  # it is asked for its columns
            return table.append_column("call", pa.array([], pa.int64()))
        for call in itertools.count(len(list(calls.iterdir()))):
            try:
                (calls / str(call)).touch(exist_ok=False)
            except FileExistsError:
                continue
            return table.append_column("call", pa.array([call] * table.num_rows, pa.int64()))
        raise AssertionError

    def run() -> dict[str, Any]:
        rows = uc.flow(str(folder), spark=spark, streaming=True, watermark="1 hour", diff="d")
        flow = rows.map(numbered, remember=True).window("global", "each row", "retracting")
        sums = flow.combine(by="call", n=uc.Count())
        target, once = f"duckdb:{tmp_path}/live.db#sums", {"availableNow": True}
        place = str(tmp_path / "checkpoint")
        if several:
            both = uc.together(sums=sums, ids=rows.window("global", "each row", "retracting").combine(n=uc.Count()))
            targets = {"sums": target, "ids": f"duckdb:{tmp_path}/live.db#ids"}
            with both.to_tables(targets, checkpoint=place, trigger=once) as live:
                live.awaitTermination()
                return {row["call"]: row["n"] for row in live["sums"].arrow().to_pylist()}
        with sums.to_table(target, checkpoint=place, trigger=once) as live:
            live.awaitTermination()
            return {row["call"]: row["n"] for row in live.arrow().to_pylist()}

    write(folder, 0, [(1, 1), (2, 1), (3, 1)])
    first = run()
    assert sum(first.values()) == 3
    for file in (tmp_path / "checkpoint" / "commits").iterdir():  # as a kill after the commit of the table leaves it
        file.unlink()
    asked = len(list(calls.iterdir()))
    assert run() == first
    assert len(list(calls.iterdir())) == asked
    write(folder, 1, [(1, -1), (2, -1), (3, -1)])
    assert run() == {}
