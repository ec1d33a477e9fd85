"""Applications killed at any moment and started again: the file sink has each row once, as if nothing had happened."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apps import committed, finished, reached, running
from programs.killed import PIPELINES, batches, closed, left_of_join, left_over, recomputed, rejoined
from pyspark.sql import SparkSession
from streams import started, written

MOMENTS = ("offsets", "state", "sink", "commits", "later")
ANY = "any"
"""A moment of no batch: so many seconds after the start, at which nothing may have been done yet."""


def killed(arguments: list[object], out: Path, batch: int, moment: str, delay: float) -> bool:
    """True if the application was killed at this moment, with its JVM and all workers, and had not ended before."""
    with running(out, *arguments) as app:
        alive = app.wait(0) if moment == ANY else app.wait_for(batch, moment)
        alive = alive and app.wait(delay)
        assert alive or app.process.returncode == 0, app.said()
        return alive


def disturbed(folder: Path, files: Path, seed: int, kills: int, most: int, pipeline: str, *moments: str) -> pa.Table:
    """The rows of the sink after so many kills at random moments and a run to the end."""
    out, result = folder / "out", folder / "result.parquet"
    arguments: list[object] = [files, out, result, "--pipeline", pipeline]
    kill_often(arguments, out, seed, kills, most, moments)
    finished(out, *arguments)
    return pq.read_table(result)


def kill_often(
    arguments: list[object], out: Path, seed: int, kills: int, most: int, moments: tuple[str, ...] = MOMENTS
) -> None:
    """Start the application so many times and kill it each time at a random moment."""
    r = random.Random(seed)
    out.mkdir()
    done = 0
    for left in range(kills, 0, -1):
        first = committed(out)
        batch = first + r.randrange(max(1, (most - first) // left))
        moment = moments[(seed + left) % len(moments)]
        while moment != ANY and batch < most - 1 and reached(out, batch, moment):
            batch += 1  # else an application would be killed before it does anything
        longest = {"later": 2.0, ANY: 12.0}.get(moment, 0.3)
        done += killed(arguments, out, batch, moment, r.random() * longest)
    assert done == kills


def ended(spark: SparkSession, out: Path, files: Path, pipeline: str) -> pa.Table:
    """The rows of the sink after a run to the end in this session."""
    started(PIPELINES[pipeline](spark, files), out).awaitTermination()
    return spark.read.parquet(str(out / "panes")).toArrow()


def undisturbed(spark: SparkSession, folder: Path, files: Path, pipeline: str) -> pa.Table:
    return ended(spark, folder / "undisturbed", files, pipeline)


def without_and_with_kills(
    spark: SparkSession, folder: Path, tables: list[pa.Table], pipeline: str, seed: int, kills: int
) -> tuple[pa.Table, pa.Table]:
    """The rows of the sink of a run without kills, and of one that is killed so many times at any moment."""
    files = written(tables, folder / "files")
    want = undisturbed(spark, folder, files, pipeline)
    return want, disturbed(folder, files, seed, kills, len(tables), pipeline, *MOMENTS, ANY)


def ordered(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.full
def test_a_kill(spark: SparkSession, tmp_path: Path) -> None:
    """The run to the end after it is in the session of the tests, as the run without kills is."""
    files, out = written(batches(0, 5), tmp_path / "files"), tmp_path / "out"
    want = ordered(undisturbed(spark, tmp_path, files, "sessions"))
    assert len(want) > 500
    kill_often([files, out, tmp_path / "result", "--pipeline", "sessions"], out, seed=1, kills=1, most=4)
    assert committed(out) > 0
    assert ordered(ended(spark, out, files, "sessions")) == want


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_thirty_kills(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    files = written(batches(seed, 24), tmp_path / "files")
    want = ordered(undisturbed(spark, tmp_path, files, "sessions"))
    assert ordered(disturbed(tmp_path, files, seed, 3, 24, "sessions", *MOMENTS)) == want


@pytest.mark.soak
def test_one_query_killed_twenty_five_times(spark: SparkSession, tmp_path: Path) -> None:
    """Two stages with retractions, from the first second of a run on; what is left is what pandas finds."""
    tables = closed(batches(99, 50))
    want, got = without_and_with_kills(spark, tmp_path, tables, "two_stages", seed=3, kills=25)
    assert left_over(got) == left_over(want) == recomputed(tables)
    assert ordered(without_clock(got)) == ordered(without_clock(want))


@pytest.mark.soak
def test_a_join_killed_twelve_times(spark: SparkSession, tmp_path: Path) -> None:
    tables = closed(batches(98, 24))
    want, got = without_and_with_kills(spark, tmp_path, tables, "joined", seed=5, kills=12)
    # A kill while one of two sources has looked for files shifts them against each other, and with them early panes.
    assert left_of_join(got) == left_of_join(want) == rejoined(tables)


def without_clock(panes: pa.Table) -> pa.Table:
    """Panes without the time of their batch, at which a run again takes place."""
    at = panes.column_names.index("pane")
    fields = [f.name for f in panes.schema.field("pane").type if f.name != "processing_time"]
    kept = pa.StructArray.from_arrays(
        [pa.compute.struct_field(panes["pane"], f).combine_chunks() for f in fields], fields
    )
    return panes.set_column(at, "pane", kept)
