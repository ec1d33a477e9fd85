"""The end of queries with steps of the user's own: Spark runs batches without data only where a timer can need them."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from opened import opened
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from seeds import share
from streams import START, changed, read_stream, written

import uncombine as uc
from uncombine.errors import InvalidArgument, StateMismatch
from uncombine.sparkops.ending import end_without_input
from uncombine.sparkops.time_modes import stored_choice

SCHEMA = pa.schema({"k": pa.string(), "ts": pa.timestamp("us", "UTC")})
NOW = {"availableNow": True}


class Plain:
    """Counts the rows of a key, and sets no timers."""

    output = state = pa.schema({"n": pa.int64()})

    def on_row(self, row: Any, state: Any, ctx: Any) -> None:
        old, state["n"] = state["n"], (state["n"] or 0) + 1
        if old is not None:
            ctx.emit({"n": old}, diff=-1)
        ctx.emit({"n": state["n"]})


class Timed(Plain):
    """The same, with a timer that is due in a year."""

    def on_row(self, row: Any, state: Any, ctx: Any) -> None:
        super().on_row(row, state, ctx)
        ctx.set_timer("later", ctx.processing_time + 365 * 86_400_000_000, "processing")

    def on_timer(self, tag: str, ctx: Any) -> None:
        raise AssertionError


class ByEvent(Timed):
    """The same, which says that its timers are of event time."""

    timers = "event_time"

    def on_row(self, row: Any, state: Any, ctx: Any) -> None:
        Plain.on_row(self, row, state, ctx)
        ctx.set_timer("later", ctx.time + 365 * 86_400_000_000, "event")


def rows(*keys: str) -> pa.Table:
    return pa.Table.from_pylist([{"k": k, "ts": START} for k in keys], SCHEMA)


def flow_of(spark: SparkSession, folder: Path, function: Any, **options: Any) -> uc.Flow:
    source = opened(read_stream(spark, folder, SCHEMA), watermark="1 minute", shards=2, **options)
    return source.process(by="k", function=function)


@pytest.fixture(autouse=True)
def _quick(spark: SparkSession) -> Any:
    with changed(spark):
        yield


@pytest.mark.parametrize("function", [Plain, ByEvent])
def test_a_query_without_timers_of_processing_time_ends(function: Any, spark: SparkSession, tmp_path: Path) -> None:
    """It ran 142 batches over one row, and more."""
    flow = flow_of(spark, written([rows("a")], tmp_path / "in"), function)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        writer = flow.df.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c"))
        query = writer.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(120), "the query goes on"
        assert len(query.recentProgress) == 1
    finally:
        query.stop()
    assert stored_choice(spark, str(tmp_path / "c")) is False


def test_the_object_says_which_timers_it_sets() -> None:
    source = uc.flow(SCHEMA)

    class Odd(Timed):
        timers = "none"

    with pytest.raises(InvalidArgument, match=r"Odd\.timers must be 'event_time', or be left out .* but is 'none'"):
        source.process(function=Odd)

    class Other(Timed):
        timers = "event_time"

    with pytest.raises(InvalidArgument, match=r"Other sets a timer of processing time, and has timers = 'event_time'"):
        source.process(function=Other).run([uc.Elements(rows("a"))])


@pytest.mark.parametrize(
    ("function", "options"), share([pytest.param(Timed, {}, id="timer"), pytest.param(Plain, {"wake": True}, id="old")])
)
def test_a_live_table_ends_by_itself(
    function: Any, options: dict[str, Any], spark: SparkSession, tmp_path: Path
) -> None:
    """It takes all rows, also where it begins with the batch without data that the run before it left."""
    place = written([rows("a", "b"), rows(), rows("a")], tmp_path / "in")
    (place / "00002.parquet").rename(tmp_path / "last")
    checkpoint = str(tmp_path / "c")

    def run(**options: Any) -> list[tuple[str, int]]:
        flow, target = flow_of(spark, place, function, **options), f"parquet:{tmp_path}/t"
        live = flow.to_table(target, "k", checkpoint=checkpoint, trigger=NOW)
        try:
            assert live.awaitTermination(240), "the query goes on"
        finally:
            live.stop()
        found = live.arrow()
        return sorted(zip(found["k"].to_pylist(), found["n"].to_pylist(), strict=True))

    assert run(**options) == [("a", 1), ("b", 1)]
    assert stored_choice(spark, checkpoint) is True
    (tmp_path / "last").rename(place / "00002.parquet")
    assert run() == [("a", 2), ("b", 1)], "it goes on in the mode of the checkpoint"
    assert stored_choice(spark, checkpoint) is True


def test_a_checkpoint_keeps_its_mode(spark: SparkSession, tmp_path: Path) -> None:
    place, checkpoint = written([rows("a")], tmp_path / "in"), str(tmp_path / "c [1]")

    def query(function: Any, **options: Any) -> Any:
        batches = flow_of(spark, place, function, **options).foreach_batch(
            lambda panes, left_out, number: panes.count()
        )
        return batches.option("checkpointLocation", checkpoint).trigger(once=True).start()

    assert stored_choice(spark, checkpoint) is None
    query(Plain, wake=True).awaitTermination()
    assert stored_choice(spark, checkpoint) is True
    with pytest.raises(StateMismatch, match=r"give uc.flow\(\) tuning=uc.Tuning\(wake=True\) to go on from it"):
        query(Plain)
    query(Plain, wake=True).awaitTermination()
    writer = flow_of(spark, place, Plain).write_stream(checkpoint=checkpoint).format("noop")
    writer.trigger(once=True).start().awaitTermination()
    assert stored_choice(spark, checkpoint) is True


def test_a_checkpoint_without_batches_for_timers_keeps_its_mode(spark: SparkSession, tmp_path: Path) -> None:
    place, checkpoint = written([rows("a"), rows("a")], tmp_path / "in"), str(tmp_path / "c")
    (place / "00001.parquet").rename(tmp_path / "last")
    for number, options in enumerate([{"wake": False}, {}]):
        flow = flow_of(spark, place, Timed, **options)
        said = warnings.catch_warnings(record=True)
        with said as told:
            warnings.simplefilter("always")
            live = flow.to_table(f"parquet:{tmp_path}/t", "k", checkpoint=checkpoint, trigger=NOW)
        assert live.awaitTermination(240)
        live.stop()
        about = [str(one.message) for one in told if "fire with the next data" in str(one.message)]
        assert len(about) == number
        assert all("timers of processing time, here of " in words for words in about)
        assert all(one.filename == __file__ for one in told if str(one.message) in about), "the line of the user"
        assert live.arrow()["n"].to_pylist() == [number + 1]
        if number == 0:
            (tmp_path / "last").rename(place / "00001.parquet")


@pytest.mark.parametrize("way", share(["write_stream", "foreach_batch"]))
def test_a_query_with_timers_ends_when_all_rows_are_taken(way: str, spark: SparkSession, tmp_path: Path) -> None:
    """Spark runs batch after batch for the timers."""
    flow, checkpoint = flow_of(spark, written([rows("a"), rows("b")], tmp_path / "in"), Timed), tmp_path / "c"
    if way == "write_stream":
        writer = flow.write_stream(checkpoint=checkpoint).format("noop")
    else:
        batches = flow.foreach_batch(lambda panes, left_out, number: panes.count())
        writer = batches.option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(240), "the query goes on"
    finally:
        query.stop()
    assert sum(progress.numInputRows for progress in query.recentProgress) == 2
    assert stored_choice(spark, str(checkpoint)) is True


class Query:
    """A query that runs a batch between two looks at it; `ends` are the offsets after each."""

    id = "1"

    def __init__(self, *ends: int | None) -> None:
        self.ends, self.number, self.stopped = ends, -1, threading.Event()

    def awaitTermination(self, timeout: float) -> bool:
        self.number += 1
        return self.stopped.is_set() or self.number + 1 >= len(self.ends)

    @property
    def lastProgress(self) -> Any:
        old, new = self.ends[self.number : self.number + 2]
        return {"batchId": self.number, "sources": [{"startOffset": str(old), "endOffset": str(new)}]}

    def stop(self) -> None:
        self.stopped.set()


@pytest.mark.parametrize(
    ("ends", "begun", "last"),
    [((0, 1, 2, 2, 2, 2), -1, 2), ((0, 0, 3, 3, 3), 0, 2), ((None, None, None), -1, 0), ((0, 1, 1, 2, 2, 2), 1, 3)],
)
def test_the_batch_after_which_a_query_is_stopped(ends: tuple[int | None, ...], begun: int, last: int) -> None:
    """A batch that an earlier run began is done again without input, although there may be some."""
    query: Any = Query(*ends)
    hurried = threading.Event()
    end_without_input(query, begun, hurried.set).join(60)
    assert query.stopped.is_set()
    assert hurried.is_set()
    assert query.number == last + 1


def test_an_error_of_a_batch_is_still_one(spark: SparkSession, tmp_path: Path) -> None:
    class Fails(Timed):
        def on_row(self, row: Any, state: Any, ctx: Any) -> None:
            raise ValueError("as asked")

    flow = flow_of(spark, written([rows("a")], tmp_path / "in"), Fails)
    live = flow.to_table(f"parquet:{tmp_path}/t", "k", checkpoint=str(tmp_path / "c"), trigger=NOW)
    with pytest.raises(StreamingQueryException, match="as asked"):
        live.awaitTermination(240)
