"""Rows that give no result: counted, seen in the query's progress, given back whole, and never fatal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from engine import Engine
from pyspark.sql import DataFrame, SparkSession
from streams import START, read_stream, rows_flow, split, written

import uncombine as uc

SECOND = 1_000_000
DAY = 86_400
SCHEMA = pa.schema(
    {"k": pa.string(), "ts": pa.timestamp("us", "UTC"), "v": pa.int64(), "at": pa.timestamp("us", "UTC")}
)


def rows(*found: tuple[str | None, int | None, int], at: int = 0) -> pa.Table:
    """Rows of a key, a time in seconds, and a value."""
    told = [
        {"k": k, "ts": None if t is None else START + t * SECOND, "v": v, "at": START + at * SECOND}
        for k, t, v in found
    ]
    return pa.Table.from_pylist(told, SCHEMA)


BATCHES = [
    rows(("a", 1, 1), ("b", 2, 1), ("a", None, 1), ("a", 3 * DAY, 1), ("b", 100, 1), at=1),
    rows(("a", 3, 10), ("b", 4, 20), ("b", 110, 1), at=2),  # the minute of both is over
    rows((None, 5, 30), ("c", None, 1), ("a", 300 * 365 * DAY, 1), at=3),
    rows(("b", 115, 1), ("b", 500, 1), at=4),
]


def windowed(source: Any, **options: Any) -> Any:
    return source.window(uc.Fixed("1 minute"), **options).combine(by="k", n=uc.Count(), total=uc.Sum("v"))


def flow(shards: int, **options: Any) -> Any:
    return windowed(rows_flow(SCHEMA, "ts", uc.Monotonic(), shards, processing_time="at"), **options)


def told(counts: dict[str, int]) -> tuple[int, ...]:
    return tuple(counts[name] for name in ("rows_in", "rows_dropped", "rows_bad", "rows_unassigned", "rows_finished"))


@pytest.mark.weekly
@pytest.mark.parametrize("late", ["drop", "duplicate"])
@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("beside", [False, True])
def test_rows_are_counted_once_whatever_the_shards(late: str, shards: int, beside: bool) -> None:
    engine = Engine(flow(shards, late=late), seed=1, beside=beside)
    counts = [told(engine.batch(batch)[1][0]) for batch in BATCHES]
    assert counts == [(5, 0, 2, 0, 0), (3, 2, 0, 0, 0), (3, 1, 2, 0, 0), (2, 0, 0, 0, 0)]


def test_rows_too_far_ahead_do_not_move_the_watermark() -> None:
    engine = Engine(flow(2))
    _, counts = engine.batch(BATCHES[0])
    assert counts[0]["watermark"] == START + 100 * SECOND


def test_late_rows_are_given_back_whole() -> None:
    engine = Engine(flow(3), seed=2, beside=True)
    got = [split(engine.batch(batch)[0]) for batch in BATCHES]
    late = [[row for row in left_out.to_pylist() if row["why"] == "late"] for _, left_out in got]
    assert [len(found) for found in late] == [0, 2, 1, 0]
    given = [row["row"] for found in late for row in found]
    assert sorted((row["v"], row["k"]) for row in given) == [(10, "a"), (20, "b"), (30, None)]
    assert {name for row in given for name in row} == set(SCHEMA.names)
    assert {(row["stage"], row["side"]) for found in late for row in found} == {(1, None)}
    others = [row for panes, _ in got for row in panes.to_pylist()]
    assert {row["diff"] for row in others} == {1}
    assert sorted((row["k"], row["n"], row["total"]) for row in others) == [("a", 1, 1), ("b", 1, 1), ("b", 3, 3)]


def test_late_rows_as_windows_of_their_own() -> None:
    engine = Engine(flow(2, late="duplicate"))
    engine.batch(BATCHES[0])
    panes, _ = engine.batch(BATCHES[1])
    assert sorted(zip(panes["k"].to_pylist(), panes["total"].to_pylist(), strict=True)) == [("a", 10), ("b", 20)]
    assert set(pa.compute.struct_field(panes["pane"], "timing").to_pylist()) == {"LATE"}


def test_rows_without_a_window_and_for_finished_windows_are_counted_apart() -> None:
    sparse = rows_flow(SCHEMA, "ts", uc.Monotonic(), 2, processing_time="at")
    sparse = sparse.window(uc.Sliding("10 seconds", "1 minute")).combine(by="k", n=uc.Count())
    _, counts = Engine(sparse).batch(rows(("a", 5, 1), ("a", 30, 1), ("b", 30, 1)))
    assert told(counts[0]) == (3, 0, 0, 2, 0)
    once = flow(2, trigger=uc.AfterCount(1), allow_finish=True)
    engine = Engine(once)
    engine.batch(rows(("a", 5, 1)))
    _, counts = engine.batch(rows(("a", 6, 1), ("a", 7, 1)))
    assert told(counts[0]) == (2, 0, 0, 0, 2)


def test_a_query_lives_on_and_tells_what_it_left_out(spark: SparkSession, tmp_path: Path) -> None:
    df = read_stream(spark, written(BATCHES, tmp_path / "files"), SCHEMA)
    watched = windowed(uc.flow(df, watermark=uc.Monotonic(), processing_time="at"))
    late = list[tuple[int, str | None]]()

    def keep(panes: DataFrame, left_out: DataFrame, number: int) -> None:
        late.extend((row.row.v, row.row.k) for row in left_out.where("why = 'late'").collect())

    writer = watched.foreach_batch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    told_by_spark = [told(vars(uc.progress(batch).stages[0])) for batch in query.recentProgress]
    assert told_by_spark == [(5, 0, 2, 0, 0), (3, 2, 0, 0, 0), (3, 1, 2, 0, 0), (2, 0, 0, 0, 0)]
    assert uc.progress(query).stages[0].panes_on_time == 1
    assert sorted(late) == [(10, "a"), (20, "b"), (30, None)]
