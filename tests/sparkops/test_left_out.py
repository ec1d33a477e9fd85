"""Rows that steps leave out, beside the result of a flow on Spark: batches, replays and streams."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from bounded import bounded_flow
from engine import Engine
from pyspark.sql import DataFrame, SparkSession
from streams import read_stream, rows_flow, split, written

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.sparkops.routes import route_with_left_out

SECOND = 1_000_000
TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema({"ts": TIME, "k": pa.string(), "x": pa.int64(), "at": TIME})
MINUTE = uc.Fixed("1 minute")


def rows(at: int, *given: tuple[int | None, str, int]) -> pa.Table:
    """Rows of a second, a key and a value, that come at a second."""
    whole = [{"ts": None if t is None else t * SECOND, "k": k, "x": x, "at": at * SECOND} for t, k, x in given]
    return pa.Table.from_pylist(whole, SCHEMA)


BATCHES = [rows(1, (5, "a", 1), (None, "b", 2)), rows(2, (200, "b", 3)), rows(3, (6, "a", 4), (210, "b", 5))]
"""In the last batch the minute of the first row is over."""


def grouped(flow: uc.Flow) -> uc.Flow:
    return flow.window(MINUTE).combine(by="k", x=uc.Sum("x"))


def regrouped(flow: uc.Flow) -> uc.Flow:
    """The second stage has windows for the first half of each minute only, in which no first stage's result lies."""
    return grouped(flow).window(uc.Sliding("10 seconds", "1 minute")).combine(n=uc.Count())


def told(left_out: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter((row["stage"], row["why"], row["row"]["k"], row["row"]["x"]) for row in left_out.to_pylist())


def test_rule_10_without_a_step_to_judge_them_rows_without_a_time_stay() -> None:
    """`with_time` as the last step, alone and after a grouping: no row is lost without a count, on any route."""
    table = pa.concat_tables(BATCHES)
    moved: dict[str, Any] = {"ts": lambda table: pa.array([None, 0] * table.num_rows, TIME)[: table.num_rows]}
    moved["event_time"] = moved["ts"]

    def last(flow: uc.Flow, time: str) -> uc.Flow:
        return flow.with_time(moved[time], "1 hour")

    def shown(rows: pa.Table, time: str) -> Counter[tuple[Any, ...]]:
        return Counter((row["k"], row["x"], row[time] is None) for row in rows.to_pylist())

    local, bounded = uc.flow(table), bounded_flow(BATCHES, "ts")
    alone = shown(last(local, "ts").run().panes, "ts")
    assert sum(alone.values()) == table.num_rows
    assert {null for *_, null in alone} == {True, False}
    engine, streamed = Engine(last(rows_flow(SCHEMA, "ts", uc.Monotonic(), 1), "ts")), Counter[Any]()
    engine.restart()
    streamed += shown(engine.batch(table)[0], "ts")
    assert streamed == alone
    assert sum(shown(last(bounded, "ts").df.toArrow(), "ts").values()) == table.num_rows
    panes = last(grouped(local), "event_time").run()
    assert panes.num_rows == grouped(local).run().num_rows
    assert panes["event_time"].null_count > 0
    assert panes.counts()["bad"] == 1, "that of the source, and none of the rows that moved"
    final = last(grouped(bounded), "event_time").df.toArrow()
    assert (final.num_rows, final["event_time"].null_count > 0) == (panes.num_rows, True)
    ended = last(local, "ts").in_order().run()
    assert ended.counts()["bad"] == sum(count for (*_, null), count in alone.items() if null)


WANTED = Counter({(1, "bad", "b", 2): 1, (1, "late", "a", 4): 1, (2, "unassigned", "a", 1): 1})


@pytest.mark.parametrize("shards", [1, 3])
def test_rule_66_a_stream_gives_rows_of_every_stage(shards: int) -> None:
    flow = regrouped(rows_flow(SCHEMA, "ts", uc.Monotonic(), shards, processing_time="at"))
    engine = Engine(flow, beside=True)
    found = Counter[Any]()
    for batch in BATCHES:
        engine.restart()
        both, _ = engine.batch(batch)
        panes, left_out = split(both)
        assert panes.schema.equals(flow.schema)
        found += told(left_out)
    assert found == WANTED


def test_rule_66_a_replay_gives_rows_of_every_stage() -> None:
    settings: dict[str, Any] = {"replay": True, "processing_time": "at", "shards": 2}
    flow = regrouped(bounded_flow(BATCHES, "ts", uc.Monotonic(), 3, **settings))
    assert told(split(route_with_left_out(flow, flow.source.input).df().toArrow())[1]) == WANTED  # type: ignore[attr-defined]


def test_rule_66_bounded_input_has_no_late_rows() -> None:
    flow = regrouped(bounded_flow(BATCHES, "ts", None, 3, shards=2))
    late_is_none = Counter({(1, "bad", "b", 2): 1, (2, "unassigned", "a", 5): 1, (2, "unassigned", "b", 8): 1})
    assert told(split(route_with_left_out(flow, flow.source.input).df().toArrow())[1]) == late_is_none  # type: ignore[attr-defined]


def test_rule_66_rows_pass_unions_and_joins() -> None:
    sources = [rows_flow(SCHEMA, "ts", uc.Monotonic(), 2, processing_time="at", name=name) for name in ("l", "r")]
    joined = grouped(sources[0]).join(sources[1], on="k", within=("-10 minutes", "10 minutes"))
    engine = Engine(joined.window(MINUTE).combine(n=uc.Count()), beside=True)
    found = []
    for batch in BATCHES:
        found += split(engine.batch(batch)[0])[1].to_pylist()
    assert Counter((row["stage"], row["side"], row["why"], row["row"]["k"]) for row in found) == Counter(
        [(1, None, "bad", "b"), (1, None, "late", "a"), (2, "right", "bad", "b"), (2, "right", "late", "a")]
    )


def test_late_rows_of_every_stage_are_there_and_the_panes_have_their_own_columns() -> None:
    """The second stage hears of no lateness, since nothing is retracted, so that it may lose panes of late rows."""
    each = uc.AfterWatermark(early=uc.AfterCount(1), late=uc.AfterCount(1))
    options: dict[str, Any] = {"trigger": each, "mode": "discarding", "allowed_lateness": "1 hour"}
    first = rows_flow(SCHEMA, "ts", uc.Monotonic(), 2, processing_time="at").window(MINUTE, **options)
    flow = first.combine(by="k", n=uc.Count()).window(MINUTE, allowed_lateness="0 seconds").combine(n=uc.Sum("n"))
    batches = [*BATCHES, rows(4, (7_200, "b", 6)), rows(5, (7, "a", 7)), rows(6, (7_201, "b", 8))]
    engine, found = Engine(flow, beside=True), list[dict[str, Any]]()
    for batch in batches:
        panes, left_out = split(engine.batch(batch)[0])
        assert panes.schema.equals(flow.schema)
        found += left_out.to_pylist()
    told = [(row["stage"], row["why"], row["row"]["k"], row["row"]["x"], row["row"]["n"]) for row in found]
    assert Counter(told) == Counter([(1, "bad", "b", 2, None), (1, "late", "a", 7, None), (2, "late", "a", None, 1)])


def test_nothing_is_left_out_without_steps(spark: SparkSession) -> None:
    plain = bounded_flow(BATCHES, "ts")
    with pytest.raises(InvalidArgument, match="this flow has no step: add one"):
        plain.left_out
    named = grouped(plain).with_columns(left_out=uc.col("x"))
    with pytest.raises(InvalidArgument, match="'left_out' is the column of rows that were left out"):
        named.left_out
    with pytest.raises(InvalidArgument, match=r"this flow is bounded: write flow\.df and flow\.left_out"):
        grouped(plain).foreach_batch(lambda panes, left_out, number: None)


@pytest.mark.spark
def test_one_query_writes_both(spark: SparkSession, tmp_path: Path) -> None:
    source = uc.flow(read_stream(spark, written(BATCHES, tmp_path / "in"), SCHEMA), watermark=uc.Monotonic())
    panes_of: list[tuple[int, Any]] = []
    found = Counter[Any]()

    def keep(panes: DataFrame, left_out: DataFrame, number: int) -> None:
        panes_of.extend((number, row.n) for row in panes.collect())
        found.update((row.stage, row.why, row.row.k, row.row.x) for row in left_out.collect())

    flow = grouped(source).window(uc.Fixed("2 minutes")).combine(n=uc.Count())
    writer = flow.foreach_batch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert (panes_of, found) == ([(1, 1)], Counter({(1, "bad", "b", 2): 1, (1, "late", "a", 4): 1}))


@pytest.mark.spark
def test_a_batch_has_its_rows_in_a_second_data_frame(spark: SparkSession) -> None:
    df = spark.sql(
        "SELECT timestamp'2024-05-01 12:00:05' AS ts, 'a' AS k, 1 AS x UNION ALL SELECT null, 'b', 2 "
        "UNION ALL SELECT timestamp'2024-05-01 12:00:30', 'c', 3"
    )
    flow = uc.flow(df).window(uc.Sliding("10 seconds", "1 minute")).combine(by="k", n=uc.Count())
    assert flow.df.count() == 1
    rows = flow.left_out.orderBy("why").collect()
    assert [(row.stage, row.side, row.why, row.row.k, row.row.x) for row in rows] == [
        (1, None, "bad", "b", 2),
        (1, None, "unassigned", "c", 3),
    ]


@pytest.mark.spark
def test_a_query_of_the_rows_left_out_alone_is_listened_to(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it is in no log and no metric."""
    listened: list[SparkSession] = []
    monkeypatch.setattr(uc.sparkops.source, "listen", listened.append)
    stream = uc.flow(read_stream(spark, written(BATCHES, tmp_path / "in"), SCHEMA), watermark=uc.Monotonic())
    assert grouped(stream).left_out.isStreaming
    assert listened == [spark]
