"""The seed of a history that Spark computes is that of a run in this process, and a stream goes on after its files."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import broadcast_flows
import join_flows
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import row_steps
from chunks import in_chunks
from pyspark.sql import SparkSession
from row_steps import SCHEMA, draw_rows, script_of
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, StateMismatch
from uncombine.sparkops.sql_types import dataframe_of

DAY = pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string(), "x": pa.int64()})


def bag(panes: pa.Table) -> Counter[str]:
    return Counter(map(repr, panes.drop_columns(["step"]).to_pylist()))


def check_on_spark(spark: SparkSession, seed: int, draw: Any, folder: Path) -> None:
    """A flow goes on from a seed that Spark made of a history as from the one that was made here."""
    r = random.Random(seed)
    weighted = r.random() < 0.5
    count = 1 if draw is row_steps.draw_flow else 2
    tables = {name: draw_rows(r, weighted, place) for place, name in enumerate("ab"[:count])}
    options: dict[str, Any] = {"diff": "w" if weighted else None, "processing_time": "seen", "watermark": "1 minute"}

    def flow(on: SparkSession | None) -> uc.Flow:
        tuning = uc.Tuning(shards=random.Random(seed).choice([1, 2, 3]))
        flows = [
            uc.flow(SCHEMA.empty_table(), spark=on, name=name, tuning=tuning if on else None, **options)
            if on
            else uc.flow(SCHEMA, name=name, **options)
            for name in tables
        ]
        flows = flows if weighted else [one.select("ts", "k", "x", "id") for one in flows]
        drawn: uc.Flow = draw(random.Random(seed), flows)
        return drawn

    script = script_of(tables)
    stop = r.choice(sorted({entry.at for entry in script if isinstance(entry, uc.Elements)}))
    past = {name: table.filter(pc.less_equal(table["seen"], stop)) for name, table in tables.items()}
    cut = next(place for place, entry in enumerate(script) if isinstance(entry, uc.Watermark) or entry.at > stop)
    frames = {name: dataframe_of(spark, in_chunks(table)) for name, table in past.items()}
    there = flow(spark).seed(frames if count > 1 else frames["a"], to=folder / "spark")
    here = flow(None).seed(past if count > 1 else past["a"], to=folder / "here")
    assert [step.rows for step in there.steps] == [step.rows for step in here.steps]
    expected = flow(None).run(script[cut:], start=here).panes
    found = flow(None).run(script[cut:], start=there).panes
    assert bag(found) == bag(expected)


@pytest.mark.parametrize(
    "draw",
    [row_steps.draw_flow, join_flows.draw_flow, broadcast_flows.draw_alone],
    ids=["steps", "joins", "broadcast"],
)
@pytest.mark.parametrize("seed", seeds(12, 300))
def test_spark_makes_the_seed_of_a_run_here(spark: SparkSession, draw: Any, seed: int, tmp_path: Path) -> None:
    check_on_spark(spark, seed, draw, tmp_path)


def put(folder: Path, name: str, *rows: tuple[int, str, int]) -> None:
    folder.mkdir(exist_ok=True)
    times, users, xs = zip(*rows, strict=True)
    table = pa.table([pa.array([t * 1_000_000 for t in times], DAY.field("ts").type), users, xs], schema=DAY)
    pq.write_table(table, folder / f"{name}.parquet")


def totals(rows: Any, **options: Any) -> uc.Flow:
    source = uc.flow(rows, watermark="30 seconds", tuning=uc.Tuning(shards=3), **options)
    minutes = source.window("1 minute", "each row", mode="retracting", allowed_lateness="30 seconds")
    return minutes.combine(by="user", total=uc.Sum("x")).select("user", "window", "total", "diff")


FIRST = ((0, "a", 1), (1, "b", 2), (70, "a", 3), (5, "c", 4), (61, "d", 9))
THEN = ((62, "a", 10), (65, "b", 20), (5, "c", 40), (80, "e", 1))
ALL = [("a", 0, 1), ("a", 60, 13), ("b", 0, 2), ("b", 60, 20), ("c", 0, 44), ("d", 60, 9), ("e", 60, 1)]
"""The totals of each user and minute."""


def shown(rows: pa.Table) -> list[tuple[str, int, int]]:
    start = rows["window_start"].cast(pa.int64()).to_pylist()
    return sorted(
        (user, time // 1_000_000, total)
        for user, time, total in zip(rows["user"].to_pylist(), start, rows["total"].to_pylist(), strict=True)
    )


@pytest.mark.daily
def test_a_live_table_begins_with_its_history(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", *FIRST)
    files, target = uc.Files(str(tmp_path / "in"), order="name"), f"duckdb:{tmp_path}/a.db#totals"
    live = totals(files, spark=spark, streaming=True)
    seed = live.seed(files, to=tmp_path / "seed")
    assert sum(file.rows for step in seed.steps for file in step.corrections) == 5

    def run(**options: Any) -> pa.Table:
        trigger = {"availableNow": True}
        query = live.to_table(target, checkpoint=tmp_path / "checkpoint", trigger=trigger, **options)
        query.awaitTermination()
        return query.arrow()

    first = [("a", 0, 1), ("a", 60, 3), ("b", 0, 2), ("c", 0, 4), ("d", 60, 9)]
    assert shown(run(start=seed)) == first, "also when no new data come"
    put(tmp_path / "in", "b", *THEN)
    assert shown(run(start=seed)) == ALL, "files of the history are not read again"
    put(tmp_path / "in", "c", (81, "e", 5))
    assert shown(run())[-1] == ("e", 60, 6)


def test_a_sink_gets_the_history_with_the_first_batch(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "archive", "a", *FIRST)
    put(tmp_path / "in", "b", *THEN)
    live = totals(uc.Files(str(tmp_path / "in")), spark=spark, streaming=True)
    seed = live.seed(str(tmp_path / "archive"), to=tmp_path / "seed")
    out = str(tmp_path / "out")
    stream = live.write_stream(checkpoint=tmp_path / "checkpoint", start=seed).format("parquet").option("path", out)
    stream.trigger(availableNow=True).start().awaitTermination()
    left: Counter[tuple[str, int, int]] = Counter()
    for row in pq.read_table(out).to_pylist():
        left[row["user"], int(row["window"]["start"].timestamp()), row["total"]] += row["diff"]
    assert sorted((+left).elements()) == ALL


def test_a_history_cut_by_time_is_cut_before_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", *FIRST)
    live = totals(uc.Files(str(tmp_path / "in"), order="name"), spark=spark, streaming=True)
    seed = live.seed(str(tmp_path / "in"), until=60_000_000, to=tmp_path / "seed")
    assert [(step.rows, {piece.watermark for piece in step.pieces}) for step in seed.steps] == [
        ({"windows": 3}, {-25_000_000})
    ]
    assert seed.positions == (), "the stream reads the files again, for their later rows"


def test_histories_on_spark_that_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", "a", *FIRST)
    live = totals(uc.Files(str(tmp_path / "in")), spark=spark, streaming=True)
    with pytest.raises(InvalidArgument, match=r"those of a stream have no end: write seed\(rows, to=\)"):
        live.seed(to=tmp_path / "seed")
    with pytest.raises(InvalidArgument, match=r"the history has no end, for it is"):
        live.seed(spark.readStream.format("rate").load(), to=tmp_path / "seed")
    ordered = uc.flow(uc.Files(str(tmp_path / "in"), order="name"), spark=spark, streaming=True, watermark="30 seconds")
    sums = ordered.window("1 minute", "each row").combine(by="user", total=uc.Sum("x"))
    started = sums.seed(str(tmp_path / "in"), to=tmp_path / "open")
    with pytest.raises(StateMismatch, match=r"write mode='retracting' in window\(\), and make the seed again"):
        sums.to_table(f"duckdb:{tmp_path}/b.db#t", checkpoint=tmp_path / "b", start=started)
    seed = live.seed(str(tmp_path / "in"), to=tmp_path / "seed")
    with pytest.raises(InvalidArgument, match=r"would read them again: give them an order"):
        live.write_stream(checkpoint=tmp_path / "checkpoint", start=seed)
