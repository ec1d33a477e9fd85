"""Live tables of queries: the table after each run is the result of all rows so far, from scratch."""

from __future__ import annotations

import datetime as dt
import io
import os
import random
import signal
import threading
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from changes import ROW, debezium_keyed, history, left
from live_tables import in_order
from pyspark import SparkContext
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from streams import START, changed, read_stream, written

import uncombine as uc
from uncombine.errors import InvalidArgument, TableMismatch, TypeMismatch
from uncombine.sparkops import batches
from uncombine.sparkops.batches import keeps_keys
from uncombine.tables import table_flow

SECOND = 1_000_000
SCHEMA = pa.schema(
    {"k": pa.string(), "a.b": pa.int64(), "ts": pa.timestamp("us", "UTC"), "v": pa.int64(), "d": pa.int64()}
)
NOW = {"availableNow": True}


def rows(*given: tuple[str | None, int, int, int]) -> pa.Table:
    """Rows of a key, a second, a value and a weight."""
    made = [{"k": k, "a.b": 1, "ts": START + t * SECOND, "v": v, "d": d} for k, t, v, d in given]
    return pa.Table.from_pylist(made, SCHEMA)


BATCHES = [
    rows(("a", 1, 5, 1), (None, 2, 7, 1), ("b", 70, 1, 1)),
    rows(("a", 4, 2, 1), ("c", 200, 3, 1), ("b", 70, 1, -1)),
    rows(("a", 3, 1, 1), (None, 2, 7, -1), ("c", 1, 9, 1), ("c", 201, 3, 1)),
]


@pytest.fixture(autouse=True)
def _quick(spark: SparkSession) -> Any:
    with changed(spark):
        yield


def sessions(source: Any) -> Any:
    """Sessions that are shown early, corrected late, and fall apart."""
    trigger = uc.AfterWatermark(early=uc.AfterCount(1), late=uc.AfterCount(1))
    windows = source.window(uc.Sessions("2 seconds"), trigger, allowed_lateness="1 day")
    return windows.combine(by="k", n=uc.Count(), total=uc.Sum("v")).where(uc.col("total") > 0)


def scratch(tables: list[pa.Table]) -> pa.Table:
    """The rows of a table of all these rows at once."""
    flow, layout = table_flow(sessions(uc.flow(pa.concat_tables(tables), watermark="1 minute", diff="d")))
    net = flow.run().table()
    assert set(net["diff"].to_pylist()) == {1}
    kept = [name for name in layout.rows.names if name not in ("diff", "pane")]
    return layout.flat(net.select(kept)).cast(layout.schema)


@pytest.mark.daily
def test_a_table_is_the_result_so_far(spark: SparkSession, tmp_path: Path) -> None:
    url, place = f"duckdb:///{tmp_path}/live.db#totals", tmp_path / "files"
    written(BATCHES[:2], place)

    def start(**other: Any) -> Any:
        source = uc.flow(read_stream(spark, place, SCHEMA), watermark="1 minute", diff="d")
        options = {"checkpoint": str(tmp_path / "checkpoint"), "trigger": NOW}
        return sessions(source).to_table(**{"target": url, **options, **other})

    live = start()
    shown = io.StringIO()
    live.watch(rows=2, every=60, out=shown)
    assert live.awaitTermination(1) in (True, None)
    assert shown.getvalue().startswith(f"table 'totals' of {tmp_path}/live.db\nk")
    assert shown.getvalue().count("... more rows") == 1
    assert in_order(live.arrow()) == in_order(scratch(BATCHES[:2]))
    progress = uc.progress(live)
    assert progress is not None
    assert progress.batch == 1
    assert in_order(live.df(spark).toArrow().cast(live.arrow().schema)) == in_order(live.arrow())
    assert repr(live) == f"live table 'totals' of {tmp_path}/live.db"

    with pytest.raises(TableMismatch, match="is written with another checkpoint"):
        start(checkpoint=str(tmp_path / "other"))
    with pytest.raises(TableMismatch, match="has the batches up to -1, but the checkpoint goes on with batch 2"):
        start(target=f"parquet:{tmp_path}/another")
    assert len(spark.streams.active) == 0

    written(BATCHES[2:], tmp_path / "more")
    (tmp_path / "more" / "00000.parquet").rename(place / "00002.parquet")
    live = start()
    live.awaitTermination()
    assert in_order(live.arrow()) == in_order(scratch(BATCHES))
    with duckdb.connect(str(tmp_path / "live.db")) as db:
        assert db.sql("SELECT batch FROM _uncombine_batches").fetchall() == [(2,)]


def test_a_live_table_ends_with_its_block(spark: SparkSession, tmp_path: Path) -> None:
    place = written(BATCHES, tmp_path / "files")
    source = uc.flow(read_stream(spark, place, SCHEMA), watermark="1 minute", diff="d")
    options = {"target": f"duckdb:///{tmp_path}/live.db#t", "checkpoint": str(tmp_path / "checkpoint")}
    with sessions(source).to_table(**options) as live:
        live.processAllAvailable()
        assert live.isActive
        shown = live._repr_html_()
        assert "whose query runs</caption>" in shown
        assert shown.count("<tr>") == 1 + live.arrow().num_rows
    assert not live.isActive
    assert "whose query has ended</caption>" in live._repr_html_()
    assert in_order(live.arrow()) == in_order(scratch(BATCHES))
    with pytest.raises(KeyboardInterrupt), sessions(source).to_table(**options) as again:
        raise KeyboardInterrupt
    assert not again.isActive
    assert len(spark.streams.active) == 0


def latest(source: Any) -> Any:
    return source.where(uc.col("v") > 1).with_columns(doubled=uc.col("v") + uc.col("v"))


def test_ctrl_c_while_a_program_waits_is_one_interrupt(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PySpark's own handler calls the JVM in the middle of the call that waits, which breaks both."""

    def cancelled(_: Any) -> None:
        raise AssertionError("the handler of PySpark has run")

    monkeypatch.setattr(SparkContext, "cancelAllJobs", cancelled)
    source = uc.flow(read_stream(spark, written(BATCHES, tmp_path / "files"), SCHEMA), watermark="1 minute", diff="d")
    place = {"target": f"duckdb:///{tmp_path}/live.db#t", "checkpoint": tmp_path / "checkpoint"}
    with sessions(source).to_table(**place) as live:
        live.processAllAvailable()
        timer = threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt) as raised:
            live.awaitTermination()
        assert raised.value.__context__ is None
        assert live.isActive
    assert in_order(live.arrow()) == in_order(scratch(BATCHES))


def test_lengths_of_time_in_a_table(spark: SparkSession, tmp_path: Path) -> None:
    source = uc.flow(read_stream(spark, written(BATCHES, tmp_path / "files"), SCHEMA), watermark="1 minute", diff="d")
    hours = source.window(uc.Fixed("1 hour"), uc.Always()).combine(by="k", first=uc.Min("ts"), last=uc.Max("ts"))
    flow = hours.with_columns(length=uc.col("last") - uc.col("first"))
    live = flow.to_table(f"duckdb:{tmp_path}/a.db#t", checkpoint=str(tmp_path / "c"), trigger=NOW)
    live.awaitTermination()
    want = {"a": dt.timedelta(seconds=3), "c": dt.timedelta(seconds=200)}
    assert dict(zip(*live.arrow().select(["k", "length"]).to_pydict().values(), strict=True)) == want
    with duckdb.connect(str(tmp_path / "a.db")) as db:
        assert db.sql("SELECT k, typeof(length), length FROM t ORDER BY k").fetchall() == [
            (key, "INTERVAL", length) for key, length in want.items()
        ]
        assert db.sql("SELECT k FROM t WHERE length > INTERVAL 1 MINUTE").fetchall() == [("c",)]


@pytest.mark.soak
def test_rows_of_a_changelog_that_no_step_has_put_together(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their keys are brought together, and changes that are many come to the driver in parts."""
    monkeypatch.setattr(batches, "INLINE", 0)
    monkeypatch.setattr(batches, "PIECE_ROWS", 2)
    keys = ["k", "ts", "a.b"]
    place = written(BATCHES, tmp_path / "files")
    flow = latest(uc.flow(read_stream(spark, place, SCHEMA), watermark="1 minute", diff="d"))
    live = flow.to_table(f"parquet:{tmp_path}/live", keys, checkpoint=str(tmp_path / "checkpoint"), trigger=NOW)
    live.awaitTermination()
    found = live.arrow()
    rows = sorted(zip(*(found[name].to_pylist() for name in ("k", "v", "doubled")), strict=True))
    assert rows == [("a", 2, 4), ("a", 5, 10), ("c", 3, 6), ("c", 3, 6), ("c", 9, 18)]
    assert in_order(live.df(spark).toArrow().cast(found.schema)) == in_order(found)


def test_a_feed_without_old_rows_goes_on_after_a_restart(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last rows of the keys are in the checkpoint, so that a run retracts the rows of the run before it."""
    monkeypatch.setattr(batches, "INLINE", 0)
    monkeypatch.setattr(batches, "PIECE_ROWS", 2)
    events = history(random.Random(5), 60)
    parts = [events[:20], events[20:40], events[40:]]
    place = written([debezium_keyed(part) for part in parts], tmp_path / "files")
    (place / "00002.parquet").rename(tmp_path / "last")
    changelog = uc.changelog.Debezium("id", order="source.lsn")
    for name, upto in ((None, events[:40]), ("last", events)):
        if name is not None:
            (tmp_path / name).rename(place / "00002.parquet")
        messages = read_stream(spark, place, debezium_keyed(events).schema)
        flow = uc.flow(messages, watermark="1 minute", changelog=changelog)
        target, checkpoint = f"parquet:{tmp_path}/live", str(tmp_path / "checkpoint")
        live = flow.to_table(target, "id", checkpoint=checkpoint, trigger=NOW)
        live.awaitTermination()
        assert in_order(live.arrow()) == in_order(pa.Table.from_pylist(list(left(upto).values()), ROW))
    retracted = {event.key for event in events[40:] if event.old is not None}
    assert retracted & {event.key for event in events[:40]}


def test_a_folder_whose_name_could_be_a_pattern(spark: SparkSession, tmp_path: Path) -> None:
    """Spark reads the table in it, and not that of a folder that matches the name."""
    stream = read_stream(spark, written(BATCHES[:1], tmp_path / "files"), SCHEMA)
    flow = latest(uc.flow(stream, watermark="1 minute", diff="d"))
    place = tmp_path / "live [1]"
    live = flow.to_table(f"parquet:{place}", "k", checkpoint=str(tmp_path / "state [1]"), trigger=NOW)
    live.awaitTermination()
    assert live.df(spark).count() == live.arrow().num_rows > 0


def test_the_own_error_comes_last(spark: SparkSession, tmp_path: Path) -> None:
    """A traceback ends with the error of the library, and not with the plan that Spark's error ends with."""
    stream = read_stream(spark, written(BATCHES[:2], tmp_path / "files"), SCHEMA)
    flow = latest(uc.flow(stream, watermark="1 minute", diff="d"))
    live = flow.to_table(f"parquet:{tmp_path}/live", "k", checkpoint=str(tmp_path / "checkpoint"), trigger=NOW)
    with pytest.raises(StreamingQueryException) as failed:
        live.awaitTermination()
    [note] = failed.value.__notes__
    assert note.startswith("TableMismatch: 1 of 2 changes do not fit the rows of ")
    with pytest.raises(StreamingQueryException) as failed:
        live.processAllAvailable()
    assert failed.value.__notes__ == [note]


def test_a_bounded_flow_is_written_once(spark: SparkSession, tmp_path: Path) -> None:
    source = uc.flow(spark.createDataFrame(pa.concat_tables(BATCHES)), diff="d")
    url = f"duckdb:///{tmp_path}/once.db#t"
    sessions(source).to_table(url)
    with duckdb.connect(str(tmp_path / "once.db")) as db:
        found = db.sql("FROM t").to_arrow_table().cast(scratch(BATCHES).schema)
    assert in_order(found) == in_order(scratch(BATCHES))
    with pytest.raises(TableMismatch):
        sessions(source).to_table(url)


def test_flows_that_are_not_kept(spark: SparkSession, tmp_path: Path) -> None:
    url, options = f"duckdb:///{tmp_path}/a.db#t", {"checkpoint": str(tmp_path / "c")}
    bounded = sessions(uc.flow(spark.createDataFrame(BATCHES[0]), diff="d"))
    with pytest.raises(InvalidArgument, match="of a bounded flow writes once: leave checkpoint= out"):
        bounded.to_table(url, **options)
    with pytest.raises(InvalidArgument, match="of a flow without Spark writes once: leave checkpoint= out"):
        sessions(uc.flow(SCHEMA, watermark="1 minute", diff="d")).to_table(url, **options)
    stream = uc.flow(
        read_stream(spark, written(BATCHES[:1], tmp_path / "files"), SCHEMA), watermark="1 minute", diff="d"
    )
    with pytest.raises(InvalidArgument, match=r"needs checkpoint="):
        sessions(stream).to_table(url)
    with pytest.raises(InvalidArgument, match="must be a mapping such as"):
        sessions(stream).to_table(url, trigger="10 seconds", **options)  # type: ignore[arg-type]
    nested = sessions(stream).with_columns(all=lambda rows: pa.array([[]] * len(rows), pa.list_(pa.list_(pa.int64()))))
    with pytest.raises(TypeMismatch, match="a type that PostgreSQL does not have"):
        nested.to_table("postgresql://host/db#t", **options)
    assert not (tmp_path / "c").exists()


def test_flows_whose_keys_stay_in_one_shard() -> None:
    source = uc.flow(SCHEMA)

    def kept(flow: Any, keys: Any = None) -> bool:
        return keeps_keys(*table_flow(flow, keys))

    minutes = source.window(uc.Fixed("1 minute")).combine(by=("k", "v"), n=uc.Count())
    assert kept(minutes)
    assert kept(minutes.where(uc.col("n") > 1).with_columns(m=uc.col("n")).select("k", "v", "window", "m"))
    assert not kept(minutes, ["k", "v"])
    assert not kept(minutes, ["k", "window"])
    assert not kept(minutes.with_columns(k=uc.col("v")))
    assert not kept(minutes.map(lambda rows: rows))
    assert not kept(source, ["k"])
