"""A live table whose query is exchanged: the new one begins with the seed of the old one, and takes its table over."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from live_tables import in_order
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, StateMismatch, TableMismatch
from uncombine.sparkops.planners.data_source import LIMITS
from uncombine.tables import table_flow

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "v": pa.int64(), "d": pa.int64()})
NOW = {"availableNow": True}


def drawn(r: random.Random, count: int) -> pa.Table:
    """Rows of three keys within ten minutes, and the retractions of some of them."""
    rows = [
        {"ts": r.randrange(600) * 1_000_000, "k": r.choice("abc"), "v": r.randrange(9), "d": 1} for _ in range(count)
    ]
    rows += [{**row, "d": -1} for row in rows if r.random() < 0.2]
    return pa.Table.from_pylist(rows, SCHEMA)


def steps(rows: uc.Flow) -> uc.Flow:
    """Sessions that grow and are counted by their length."""
    sessions = rows.window("sessions 20 seconds", "each row", mode="retracting", allowed_lateness="1 day")
    totals = sessions.combine(by="k", total=uc.Sum("v"), middle=uc.Median("v"))
    return totals.window("5 minutes", "each row", mode="retracting", allowed_lateness="1 day").combine(
        by="k", n=uc.Count(), most=uc.Max("total"), middle=uc.Median("middle")
    )


class Stream:
    """A folder that gets files, the flows over it, and the table that the queries keep."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.tables = spark, folder, list[pa.Table]()
        self.url = f"duckdb:///{folder}/live.db#t"
        (folder / "in").mkdir()

    def put(self, rows: pa.Table) -> None:
        pq.write_table(rows, self.folder / "in" / f"{len(self.tables):03}.parquet")
        self.tables.append(rows)

    def flow(self, shards: int) -> uc.Flow:
        files = uc.Files(str(self.folder / "in"), order="name", max_files_per_batch=1 if LIMITS else None)
        options = {"watermark": "1 hour", "diff": "d", "tuning": uc.Tuning(shards=shards)}
        return steps(uc.flow(files, spark=self.spark, streaming=True, **options))

    def run(self, name: str, shards: int = 2, **options: Any) -> Any:
        where = {"target": self.url, "checkpoint": str(self.folder / name), "trigger": NOW, **options}
        live = self.flow(shards).to_table(**where)
        live.awaitTermination()
        return live

    def seed(self, name: str, to: str) -> Any:
        return uc.checkpoint(self.folder / name, spark=self.spark).seed(str(self.folder / to))

    def expected(self) -> list[str]:
        """The table of all rows at once."""
        once, layout = table_flow(steps(uc.flow(pa.concat_tables(self.tables), watermark="1 hour", diff="d")))
        net = once.run().table()
        kept = [name for name in layout.rows.names if name not in ("diff", "pane")]
        return in_order(layout.flat(net.select(kept)).cast(layout.schema))


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


@pytest.mark.parametrize("seed", seeds(2))
def test_a_table_goes_on_with_another_query(stream: Stream, seed: int) -> None:
    """Queries of random shards follow each other, and the table is that of all rows from the start."""
    r, begun, name = random.Random(seed), None, "query0"
    for turn in range(3):
        for _ in range(r.randint(1, 2)):
            stream.put(drawn(r, r.choice([1, 5, 40])))
        live = stream.run(name, r.choice([1, 2, 3, 5]), **({"start": begun} if begun else {}))
        assert in_order(live.arrow()) == stream.expected()
        begun, name = stream.seed(name, f"seed{turn}"), f"query{turn + 1}"


def test_the_former_query_is_refused(stream: Stream) -> None:
    r = random.Random(1)
    stream.put(drawn(r, 20))
    stream.run("old")
    seed = stream.seed("old", "seed")
    stream.put(drawn(r, 20))
    with pytest.raises(TableMismatch, match="is not the table of the query or the run that made the seed"):
        stream.run("elsewhere", target=f"duckdb:///{stream.folder}/other.db#t", start=seed)
    live = stream.run("new", 3, start=seed)
    assert in_order(live.arrow()) == stream.expected()
    with pytest.raises(TableMismatch, match="is written with another checkpoint"):
        stream.run("old")
    stream.put(drawn(r, 20))
    assert in_order(stream.run("new", 3, start=seed.folder).arrow()) == stream.expected()
    assert in_order(stream.run("new", 3).arrow()) == stream.expected()


def test_a_seed_and_a_table_that_are_not_as_far(stream: Stream) -> None:
    """The table has a batch that the seed has not; a later seed goes on, but not from a batch that is planned."""
    r = random.Random(2)
    stream.put(drawn(r, 20))
    stream.run("old")
    early = stream.seed("old", "early")
    stream.put(drawn(r, 20))
    stream.run("old")
    with pytest.raises(TableMismatch, match="has the batches up to 1, and the seed those up to 0: let the query"):
        stream.run("new", start=early)
    stream.put(drawn(r, 20))
    stream.run("old")
    late = stream.seed("old", "late")
    with pytest.raises(StateMismatch, match=r"was planned before the seed .* was made, which has read more"):
        stream.run("new", start=late)
    stream.put(drawn(r, 20))
    assert in_order(stream.run("newer", 3, start=late).arrow()) == stream.expected()


def test_a_batch_that_was_planned_before_the_seed_is_refused(stream: Stream) -> None:
    """Its query would read again what a later seed has read."""
    r = random.Random(3)
    stream.put(drawn(r, 20))
    stream.run("old")
    early = stream.seed("old", "early")
    stream.put(drawn(r, 20))

    def fail(df: Any, number: int) -> None:
        raise ValueError("stopped in its first batch")

    writer = stream.flow(2).write_stream(checkpoint=stream.folder / "new", start=early).foreachBatch(fail)
    with pytest.raises(StreamingQueryException):
        writer.trigger(availableNow=True).start().awaitTermination()
    stream.put(drawn(r, 20))
    stream.run("old")
    late = stream.seed("old", "late")
    with pytest.raises(StateMismatch, match=r"was planned before the seed .* was made, which has read more"):
        stream.flow(2).write_stream(checkpoint=stream.folder / "new", start=late)
    assert stream.flow(2).write_stream(checkpoint=stream.folder / "new", start=early)


def test_the_table_of_a_run_goes_on_as_that_of_a_query(stream: Stream) -> None:
    """History in this process, then live on Spark."""
    r, past = random.Random(4), [drawn(random.Random(9), 30)]
    run = steps(uc.flow(SCHEMA, watermark="1 hour", diff="d")).run([uc.Elements(past[0].to_pylist())])
    run.to_table(stream.url)
    seed = run.seed(str(stream.folder / "seed"))
    stream.put(drawn(r, 20))
    live = stream.run("new", 3, start=seed)
    stream.tables = [*past, *stream.tables]
    assert in_order(live.arrow()) == stream.expected()


def test_a_bounded_flow_has_no_start(stream: Stream) -> None:
    with pytest.raises(InvalidArgument, match="leave trigger=, same=, start= and query_name= out"):
        uc.flow([{"ts": 0}]).window("1 hour").combine(n=uc.Count()).to_table(stream.url, start="seed")
