"""Backfill, then live: files in any order lose no row, over restarts and with files that come meanwhile."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from apps import spark_home
from engine import Engine, crossing
from programs import program
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from seeds import seeds
from streams import changed, rows_flow
from weekly import DAY, SCHEMA, START, by_day, last, rows_of, weeks, write

import uncombine as uc
from uncombine.errors import InvalidArgument, StateMismatch
from uncombine.files.describing import describe
from uncombine.flows.flow import Flow
from uncombine.flows.graph import Step
from uncombine.panes.parcels import AT
from uncombine.sparkops.files_input import ReadFiles
from uncombine.sparkops.planners.data_source import LIMITS
from uncombine.sparkops.planners.file_planner import FilePlanner
from uncombine.sparkops.planners.planner import Offset

ONCE = {"availableNow": True}
limited = pytest.mark.skipif(not LIMITS, reason="limits of batches need Spark 4.2")


@pytest.fixture(autouse=True)
def _quick(request: pytest.FixtureRequest) -> Iterator[None]:
    with changed(request.getfixturevalue("spark")) if "spark" in request.fixturenames else nullcontext():
        yield


class FileEngine(Engine):
    """The stand-in for Spark, over the files that a planner names."""

    def __init__(self, flow: Flow, folder: Path, most: int | None, **options: Any) -> None:
        super().__init__(flow, **options)
        self.form = describe(str(folder), "parquet", SCHEMA)
        self.most, self.files = most, FilePlanner(self.form, "time", "ts", cores=2)
        self.offset: Offset = self.files.begin()
        self.rows: list[pa.RecordBatch] = []

    def next(self, now: int) -> tuple[list[dict[str, Any]], int] | None:
        """The panes of the next batch, and how many rows it dropped; None if there is nothing to do."""
        end = dict(json.loads(json.dumps(self.files.after(self.offset, self.most))))
        if end == self.offset:
            return None
        self.rows, self.offset = list(self.files.tasks(self.offset, end)), end
        panes, counted = self.batch(None, now)
        return panes.to_pylist(), sum(counts["rows_dropped"] for counts in counted if counts)

    def _packed(self, step: Step, tasks: Any, sent: Any, now: int | None) -> list[tuple[int, bytes]]:
        packed = super()._packed(step, tasks, sent, now)
        if step.number > 1:
            return packed
        assert now is not None
        lift = self.route.lift(step, 0)
        read = ReadFiles(self.form, lift, tuple(lift.schema.names), "")
        for rows in self.rows:
            batch = rows.append_column(AT, pa.array([now * 1_000] * rows.num_rows))
            packed += [(shard, payload) for shard, _, payload in crossing(read([batch]))]
        return packed


STRATEGIES: list[Any] = ["0 seconds", "2 days", uc.Monotonic(), uc.PerSource("k"), uc.PerSource("k", "1 day")]


def grouped(r: random.Random) -> Flow:
    """Days of each key, shown once, by themselves or after another step; none of them takes late rows."""
    flow = rows_flow(SCHEMA, watermark=r.choice(STRATEGIES))
    match r.randrange(4):
        case 0:
            flow = flow.with_time(uc.col("ts"), at_most_back="3 hours")
        case 1:
            flow = flow.in_order(by="k")
        case 2:
            hours = flow.window("1 hour").combine(by="k", part=uc.Count())
            return hours.window("1 day").combine(by="k", n=uc.Sum("part"))
    return flow.window("1 day").combine(by="k", n=uc.Count())


@pytest.mark.weekly
@pytest.mark.parametrize("first", seeds(40, 2_000, step=10))
def test_random_files_give_each_row_once_and_none_late(first: int, tmp_path: Path) -> None:
    """Each window is shown once, with all its rows. The process of the planner, or of the workers, ends at any time."""
    for seed in range(first, first + 10):
        r, rows = random.Random(seed), np.random.default_rng(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        tables = []

        def arrive(
            days: int, folder: Path = folder, r: random.Random = r, rows: Any = rows, tables: Any = tables
        ) -> None:
            times = START + days * DAY + rows.integers(0, r.choice([1, 3, 9]) * DAY, r.choice([1, 5, 40]))
            tables.append(rows_of(times, rows))
            write(folder / f"{r.randrange(10**9)}.parquet", tables[-1], r.randrange(99))

        for _ in range(r.randrange(1, 12)):
            arrive(r.randrange(60))
        flow, most = grouped(r), r.choice([1, 2, 5])
        engine, shown, dropped = FileEngine(flow, folder, most, seed=seed), list[dict[str, Any]](), 0
        for now in range(1_700_000_000_000, 1_700_000_000_400):
            if r.random() < 0.2:
                engine.restart()
                engine.files = FilePlanner(engine.form, "time", "ts", cores=r.choice([1, 2]))
            if r.random() < 0.3 and len(tables) < 20:
                arrive(100 + 10 * len(tables))  # live, after all that came before
            before, offset = engine.snapshot(), engine.offset
            if (result := engine.next(now)) is None:
                break
            if r.random() < 0.2:  # the batch is done again, from the state before it
                engine.store, engine.offset = before, offset
                engine.restart()
                result = engine.next(now)
                assert result is not None
            shown += result[0]
            dropped += result[1]
        last(folder)
        while (result := engine.next(now := now + 1)) is not None:
            shown += result[0]
            dropped += result[1]
        assert dropped == 0, seed
        assert Counter(counts(shown).keys()) == Counter((row["k"], day_of(row)) for row in shown)
        assert counts(shown) == by_day(pa.concat_tables(tables)), seed


def day_of(row: Mapping[str, Any]) -> str:
    return f"{row['window']['start']:%Y-%m-%d}"


def counts(panes: list[dict[str, Any]]) -> dict[tuple[str, str], int]:
    return {(row["k"], day_of(row)): row["n"] for row in panes}


def days(spark: SparkSession, folder: Path, order: Any = "time", most: int | None = 10, **options: Any) -> Flow:
    """The number of events of each key and day, of a stream of files."""
    files = uc.Files(folder, order=order, max_files_per_batch=most, **options)
    source = uc.flow(files, spark=spark, streaming=True, watermark="1 day", tuning=uc.Tuning(wake=False))
    return source.window("1 day").combine(by="k", n=uc.Count())


class Shown:
    """Takes the panes of batches; a batch that is done again takes the place of the first one."""

    def __init__(self, fails: Mapping[int, str] | None = None) -> None:
        self.panes: dict[int, list[dict[str, Any]]] = {}
        self.fails = dict(fails or {})

    def __call__(self, df: DataFrame, number: int) -> None:
        if self.fails.get(number) == "before":
            self.fails.pop(number)
            raise RuntimeError("before a batch is taken")
        self.panes[number] = [row.asDict(recursive=True) for row in df.collect()]
        if self.fails.get(number) == "after":
            self.fails.pop(number)
            raise RuntimeError("before a batch is committed")

    @property
    def counts(self) -> dict[tuple[str, str], int]:
        every = [row for panes in self.panes.values() for row in panes]
        assert len(counts(every)) == len(every)
        return counts(every)


def run(flow: Flow, checkpoint: Path, shown: Any, trigger: Mapping[str, Any] = ONCE) -> Any:
    query = flow.write_stream(checkpoint=checkpoint).foreachBatch(shown).trigger(**trigger).start()
    query.awaitTermination()
    return query


def dropped(query: Any) -> int:
    batches = [uc.progress(batch) for batch in query.recentProgress]
    return sum(stage.rows_dropped for batch in batches if batch is not None for stage in batch.stages)


@limited
def test_rule_67_a_year_of_weekly_files_loses_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = weeks(tmp_path / "in")
    last(tmp_path / "in")
    lost = run(days(spark, tmp_path / "in", order=None), tmp_path / "plain", Shown())
    assert dropped(lost) > 5_000
    shown = Shown()
    query = run(days(spark, tmp_path / "in"), tmp_path / "ordered", shown)
    assert dropped(query) == 0
    assert len(query.recentProgress) >= 6
    batches = [one for report in query.recentProgress if (one := uc.progress(report)) is not None]
    assert (batches[-1].files_read, batches[-1].files_waiting) == (53, 0)
    assert all(one.files_read + one.files_waiting == 53 for one in batches)
    assert f", {batches[0].files_read} of 53 files: " in str(batches[0])
    assert [uc.progress(report).files_read for report in lost.recentProgress][:1] == [None]
    assert shown.counts == by_day(table)
    assert sum(shown.counts.values()) == table.num_rows == 10_400


@limited
def test_it_goes_on_after_failures_with_what_came_meanwhile(spark: SparkSession, tmp_path: Path) -> None:
    """Queries end before and after a batch is taken; live files come between them."""
    tables = [weeks(tmp_path / "in", 12, 50)]
    r = np.random.default_rng(2)
    shown = Shown({1: "before", 2: "after", 4: "after"})
    for i in range(3):
        with pytest.raises(StreamingQueryException, match="before a batch is"):
            run(days(spark, tmp_path / "in", most=3), tmp_path / "checkpoint", shown)
        tables.append(rows_of(START + (200 + 7 * i) * DAY + r.integers(0, 7 * DAY, 50), r))
        write(tmp_path / "in" / f"0-{9 - i}.parquet", tables[-1], 0)
    last(tmp_path / "in")
    query = run(days(spark, tmp_path / "in", most=3), tmp_path / "checkpoint", shown)
    assert dropped(query) == 0
    assert shown.counts == by_day(pa.concat_tables(tables))


@limited
def test_files_that_come_while_a_query_runs(spark: SparkSession, tmp_path: Path) -> None:
    """A history, and live files after it, one of which has an older time and is late."""
    tables = [weeks(tmp_path / "in", 8, 50)]
    r = np.random.default_rng(3)

    class Live(Shown):
        def __call__(self, df: DataFrame, number: int) -> None:
            super().__call__(df, number)
            if number < 5:
                tables.append(rows_of(START + (100 + number) * DAY + r.integers(0, DAY, 9), r))
                write(tmp_path / "in" / f"live {number}.parquet", tables[-1], 0)

    shown = Live()
    flow = days(spark, tmp_path / "in", most=3)
    query = flow.write_stream(checkpoint=tmp_path / "checkpoint").foreachBatch(shown).start()
    try:
        query.processAllAvailable()
        assert dropped(query) == 0
        write(tmp_path / "in" / "late.parquet", rows_of(START + np.arange(7), r), 99)
        query.processAllAvailable()
        assert dropped(query) == 7
        last(tmp_path / "in")
        query.processAllAvailable()
    finally:
        query.stop()
    assert shown.counts == by_day(pa.concat_tables(tables))


@limited
@pytest.mark.parametrize("seed", seeds(4, 24))
def test_random_histories_of_every_format(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    r, rows = random.Random(seed), np.random.default_rng(seed)
    form = r.choice(["parquet", "csv", "json"])
    tables = []
    (tmp_path / "in").mkdir()
    for _ in range(r.randrange(5, 15)):
        times = START + r.randrange(90) * DAY + rows.integers(0, r.choice([1, 9]) * DAY, r.choice([1, 30]))
        tables.append(rows_of(times, rows))
        write(tmp_path / "in" / f"{r.randrange(10**9)}.{form}", tables[-1], r.randrange(99))
    shown, most = Shown({r.randrange(3): r.choice(["before", "after"])}), r.choice([1, 2, 4])
    schema = {"format": form, "schema": SCHEMA}
    with suppress(StreamingQueryException):  # at the batch that fails, if there are so many
        run(days(spark, tmp_path / "in", most=most, **schema), tmp_path / "checkpoint", shown)
    shown.fails = {}
    last(tmp_path / "in", form)
    query = run(days(spark, tmp_path / "in", most=most, **schema), tmp_path / "checkpoint", shown)
    assert dropped(query) == 0
    assert shown.counts == by_day(pa.concat_tables(tables))


def test_the_order_can_change_and_not_go(spark: SparkSession, tmp_path: Path) -> None:
    """Spark and a planner do not know what the other has read."""
    table = weeks(tmp_path / "in", 4, 10)
    first, shown = days(spark, tmp_path / "in", most=None), Shown()
    run(first, tmp_path / "checkpoint", shown)
    with pytest.raises(StateMismatch, match="it read files in an order and reads them as Spark lists them"):
        days(spark, tmp_path / "in", order=None).write_stream(checkpoint=tmp_path / "checkpoint")
    last(tmp_path / "in")
    run(days(spark, tmp_path / "in", "name", None), tmp_path / "checkpoint", shown)
    assert shown.counts == by_day(table)
    run(days(spark, tmp_path / "in", order=None), tmp_path / "plain", Shown())
    with pytest.raises(StateMismatch, match="it read files as Spark lists them and reads them in an order"):
        days(spark, tmp_path / "in", most=None).write_stream(checkpoint=tmp_path / "plain")


@limited
def test_rows_without_a_step_have_no_state_that_knows_the_order(spark: SparkSession, tmp_path: Path) -> None:
    """The planner then refuses the offset of Spark's own source."""
    table = weeks(tmp_path / "in", 4, 10)

    def rows(order: Any) -> Flow:
        files = uc.Files(tmp_path / "in", order=order, max_files_per_batch=3)
        return uc.flow(files, spark=spark, streaming=True, watermark="1 day").where(uc.col("k") != "b")

    found = list[int]()
    for _ in range(2):
        run(rows("time"), tmp_path / "planned", lambda df, _: found.append(df.count()))
    assert sum(found) == sum(k != "b" for k in table["k"].to_pylist())
    run(rows(None), tmp_path / "plain", lambda df, _: None)
    with pytest.raises(Exception, match=r"was written without order= of uc\.Files"):
        run(rows("name"), tmp_path / "plain", lambda df, _: None)


def test_files_of_the_start_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    weeks(tmp_path / "in", 6, 10)
    start: list[Any] = [
        "000.parquet",
        tmp_path / "in" / "001.parquet",
        f"file:{tmp_path}/in/002.parquet",
        "gone.parquet",
    ]
    query = run(days(spark, tmp_path / "in", "name", None, start=start), tmp_path / "checkpoint", Shown())
    stages = [stage for batch in map(uc.progress, query.recentProgress) if batch for stage in batch.stages]
    assert sum(stage.rows_in for stage in stages) == 30


@limited
def test_several_paths_and_patterns(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's own source takes one path alone."""
    tables = [weeks(tmp_path / name, 3, 10, seed) for seed, name in enumerate(["a", "b [1]", "c"])]
    paths = [tmp_path / "a", tmp_path / "b [1]" / "*.parquet", tmp_path / "c" / "00?.parquet"]
    last(tmp_path / "a")
    files = uc.Files(paths, order="time", max_files_per_batch=2)
    source = uc.flow(files, spark=spark, streaming=True, watermark="1 day", tuning=uc.Tuning(wake=False))
    shown = Shown()
    run(source.window("1 day").combine(by="k", n=uc.Count()), tmp_path / "checkpoint", shown)
    assert shown.counts == by_day(pa.concat_tables(tables))


@limited
def test_a_union_waits_for_the_history_of_each(spark: SparkSession, tmp_path: Path) -> None:
    tables = [weeks(tmp_path / name, 6, 20, seed) for seed, name in enumerate("ab")]

    def side(name: str) -> Flow:
        files = uc.Files(tmp_path / name, order="time", max_files_per_batch=2)
        return uc.flow(files, spark=spark, streaming=True, watermark="1 day", name=name, tuning=uc.Tuning(wake=False))

    both = uc.union(a=side("a"), b=side("b")).window("1 day").combine(by="k", n=uc.Count())
    shown = Shown()
    for name in "ab":
        last(tmp_path / name)
    assert dropped(run(both, tmp_path / "checkpoint", shown)) == 0
    assert shown.counts == by_day(pa.concat_tables(tables))


@limited
def test_a_bad_file_is_skipped_or_named(spark: SparkSession, tmp_path: Path) -> None:
    table = weeks(tmp_path / "in", 5, 10)
    (tmp_path / "in" / "bad.parquet").write_bytes(b"PAR1 this is none PAR1")
    last(tmp_path / "in")
    with pytest.raises(Exception, match=r"bad\.parquet cannot be read"):
        run(days(spark, tmp_path / "in", most=2), tmp_path / "error", Shown())
    shown = Shown()
    query = run(days(spark, tmp_path / "in", most=2, on_bad_file="skip"), tmp_path / "skip", shown)
    assert sum(batch.files_skipped for batch in map(uc.progress, query.recentProgress) if batch) == 1
    assert shown.counts == by_day(table)


def test_what_cannot_be_is_said_when_the_flow_is_built(spark: SparkSession, tmp_path: Path) -> None:
    weeks(tmp_path / "in", 2, 3)

    def flow(order: Any = "time", **options: Any) -> Flow:
        files = uc.Files(tmp_path / "in", order=order)
        return uc.flow(files, spark=spark, **{"streaming": True, "watermark": "1 day", **options})

    if not LIMITS:
        with pytest.raises(InvalidArgument, match=r"max_files_per_batch= needs Spark 4\.2 with order="):
            days(spark, tmp_path / "in")
    for options, says in [
        ({"watermark": uc.IngressTime()}, r"with IngressTime\(\) rows have none before they are read"),
        ({"processing_time": "ts"}, "processing_time='ts' put the same rows in two orders"),
        ({"time": "k"}, r"the column 'k' \(time=\), which is string there, and no time: give order='name'"),
        ({"time": "seen"}, r"the column 'seen' \(time=\), which is not in the files: give order='name'"),
    ]:
        with pytest.raises(InvalidArgument, match=says):
            flow(**options)
    assert "ordered by their least 'ts', read by the tasks" in flow().window("1 day").combine(n=uc.Count()).explain()


@limited
@pytest.mark.full
@pytest.mark.spark
@pytest.mark.parametrize("place", ["s3", "cluster", "connect"])
def test_other_places(place: str, tmp_path: Path) -> None:
    """An object store without a jar of Hadoop, workers of their own, and a server of Spark Connect."""
    table = weeks(tmp_path / "bucket" / "in", 12, 20)
    last(tmp_path / "bucket" / "in")
    command = [sys.executable, program("ordered"), str(tmp_path), place]
    environment = os.environ | ({"SPARK_HOME": str(spark_home(tmp_path / "spark"))} if place == "cluster" else {})
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900, env=environment)
    assert ran.returncode == 0, ran.stderr[-4000:]
    rows = json.loads(ran.stdout.splitlines()[-1])
    assert {(k, day): n for k, day, n in rows} == by_day(table)
    assert len(rows) == len(by_day(table))
