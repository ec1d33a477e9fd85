"""Streams for tests: scripts as micro-batches, in the stand-in for Spark's engine and in queries."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from engine import Engine
from opened import flow_over
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

import uncombine as uc
from uncombine.changelogs.flows import flow_of
from uncombine.flows.flow import Flow
from uncombine.flows.settings import Settings
from uncombine.local.script import reports
from uncombine.sparkops.inputs import Input
from uncombine.sparkops.source import SparkSource
from uncombine.sparkops.sql_types import spark_schema
from uncombine.sparkops.stream_writer import checked_writer
from uncombine.windows import timestamp
from uncombine.windows.times import times_of

START = 1_453_291_200_000_000  # noon of 2016-01-20
LONG_AGO, END = 1 - 2**63, 253_402_300_799_999_999
NOW, MARK, ORIGIN = "proc", "mark", "origin"
"""The columns of a micro-batch with its processing time, a punctuation, and the source whose punctuation it is."""


@dataclass(frozen=True, eq=False)
class Rows(Input):
    """A streaming source of which only the columns are known."""

    schema: pa.Schema  # type: ignore[misc]
    streaming: bool = True  # type: ignore[misc]
    spark: Any = None

    def mapped(self, task: Any, columns: list[str], at: str | None, schema: Any, metric: Any) -> Any:
        raise NotImplementedError

    def describe(self) -> str:
        return "rows of a test"


def rows_flow(
    schema: pa.Schema,
    time: str = "ts",
    watermark: Any = None,
    shards: int = 2,
    changelog: uc.changelog.Changelog | None = None,
    **options: Any,
) -> Flow:
    """A streaming flow over rows of this schema, or over the rows of messages, for the stand-in."""
    settings = Settings(time, watermark, shards=shards, **options)
    return (
        flow_of(SparkSource(Rows(schema)), settings)
        if changelog is None
        else flow_over(Rows(schema), settings, changelog)
    )


def punctuated_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of rows, and after them the columns with the rest of a script."""
    instants = [pa.field(name, pa.timestamp("us", "UTC")) for name in (NOW, MARK)]
    return pa.schema([*schema, *instants, pa.field(ORIGIN, pa.string())])


def timed(script: Sequence[Any], start: int = START) -> list[Any]:
    """A script whose every entry says when it comes."""
    now, out = start, []
    for entry in script:
        told = entry.t if isinstance(entry, uc.Clock) else entry.at
        now = now if told is None else max(now, timestamp(told))
        match entry:
            case uc.Elements():
                out.append(replace(entry, at=now))
            case uc.Watermark(t, source):
                out.append(uc.Watermark(END if t is None else min(timestamp(t), END), source, at=now))
            case _:
                out.append(uc.Clock(now))
    return out


def punctuated(script: Sequence[Any], schema: pa.Schema) -> list[pa.Table]:
    """The entries of a timed script as micro-batches: rows, and a row with nothing else for each watermark report."""
    # A row that only moves the clock needs a source: it gets the first one, which this does not change.
    first = next((report.source for entry in script for report in reports(entry)), None)
    out = []
    for entry in script:
        now = entry.t if isinstance(entry, uc.Clock) else entry.at
        parts = []
        if isinstance(entry, uc.Elements) and len(entry.rows):
            rows = entry.rows if isinstance(entry.rows, pa.Table) else _table(entry.rows, schema)
            parts.append(_marked(rows, schema, now, None, None))
        nothing = pa.table([pa.nulls(1, f.type) for f in schema], schema=schema)
        for report in reports(entry):
            mark = END if report.t is None else min(timestamp(report.t), END)
            parts.append(_marked(nothing, schema, now, mark, report.source))
        out.append(pa.concat_tables(parts or [_marked(nothing, schema, now, LONG_AGO, first)]))
    return out


def _marked(rows: pa.Table, schema: pa.Schema, now: int, mark: int | None, source: str | None) -> pa.Table:
    told = {NOW: now, MARK: mark, ORIGIN: source}
    columns = [
        pa.array([told[f.name]] * rows.num_rows, f.type) if f.name in told else rows[f.name]
        for f in punctuated_schema(schema)
    ]
    return pa.table(columns, schema=punctuated_schema(schema))


def _table(rows: Sequence[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows whose times may be written as people write them."""
    columns = []
    for f in schema:
        values = [row.get(f.name) for row in rows]
        columns.append(times_of(values) if pa.types.is_timestamp(f.type) else pa.array(values, f.type))
    return pa.table(columns, schema=schema)


def play(
    flow: Flow,
    batches: Sequence[pa.Table | None],
    times: Sequence[int] | None = None,
    seed: int | None = None,
    meddle: Callable[[Engine, int], None] | None = None,
    beside: bool = False,
) -> pa.Table:
    """All panes of a flow over micro-batches in the stand-in, with the batch that each came from in `step`.

    With `beside` the rows that were left out stand beside them, in the column `left_out`.
    """
    engine, out = Engine(flow, seed, beside=beside), []
    for i, rows in enumerate(batches):
        if meddle is not None:
            meddle(engine, i)
        panes, _ = engine.batch(rows, None if times is None else times[i])
        out.append(panes.append_column("step", pa.array([i] * panes.num_rows, pa.int64())))
    return pa.concat_tables(out)


def in_order(panes: pa.Table) -> list[dict[str, Any]]:
    """Panes as rows, those of one step in an order of their own; what is the same for all that know of them."""
    return sorted(panes.to_pylist(), key=lambda row: (row["step"], repr(row)))


def split(both: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The panes, and the rows that were left out beside them."""
    no = pc.is_null(both["left_out"])
    rows = both.filter(pc.invert(no))["left_out"].combine_chunks()
    return both.filter(no).drop_columns(["left_out"]), pa.Table.from_struct_array(rows)


def results(panes: pa.Table, names: Sequence[str]) -> list[dict[str, Any]]:
    """The panes that remain after retractions: the results with a weight that is not 0."""
    flat = panes.append_column("start", pc.struct_field(panes["window"], "start"))
    flat = flat.append_column("end", pc.struct_field(panes["window"], "end"))
    names = [*names, "start", "end"]
    left = flat.group_by(names).aggregate([("diff", "sum")])
    left = left.filter(pc.not_equal(left["diff_sum"], 0))
    return sorted(left.to_pylist(), key=repr)


def written(batches: Sequence[pa.Table], folder: Path) -> Path:
    """Batches as Parquet files that Spark's file source takes one by one, in their order."""
    folder.mkdir(parents=True)
    for i, batch in enumerate(batches):
        path = folder / f"{i:05d}.parquet"
        pq.write_table(batch, path)
        os.utime(path, (1_000_000_000 + i, 1_000_000_000 + i))
    return folder


def read_stream(spark: SparkSession, folder: Path, schema: pa.Schema) -> DataFrame:
    """A stream over such files, one to a micro-batch, whose rows Spark reads."""
    reader = spark.readStream.schema(spark_schema(schema)).option("maxFilesPerTrigger", 1)
    reader = reader.option("pathGlobFilter", "*.parquet")
    return reader.option("latestFirst", "false").parquet(str(folder))


def started(df: DataFrame, folder: Path) -> StreamingQuery:
    """A query that takes what is there and ends, its panes in Parquet files."""
    writer = checked_writer(df.writeStream).format("parquet").option("path", str(folder / "panes"))
    return writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()


FEW_ROWS = {"spark.sql.shuffle.partitions": "1", "spark.sql.codegen.wholeStage": "false"}
"""Settings of a query with many operators and few rows, which takes longer to compile than to run."""


@contextmanager
def changed(spark: SparkSession, settings: Mapping[str, str] = FEW_ROWS) -> Iterator[None]:
    """A session with other settings for a while."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            spark.conf.unset(name)
            if earlier is not None:
                spark.conf.set(name, earlier)


def together(
    spark: SparkSession,
    flows: dict[str, tuple[list[pa.Table], Callable[[DataFrame], Flow]]],
    folder: Path,
) -> dict[str, pa.Table]:
    """The panes of several flows of one query, each with the batch it came from, of which one takes a file of each.

    A query costs much more than a flow.
    """
    frames, schemas = [], {}
    for name, (batches, build) in flows.items():
        df = read_stream(spark, written(batches, folder / name), batches[0].schema)
        flow = build(df)
        schemas[name] = flow.schema
        frames.append(flow.df.withColumn("flow", F.lit(name)))
    out: dict[str, list[pa.Table]] = {name: [flow.empty_table()] for name, flow in schemas.items()}
    steps: dict[str, list[int]] = {name: [] for name in schemas}

    def kept(df: DataFrame, batch: int) -> None:
        panes = df.toArrow()
        for name, schema in schemas.items():
            own = panes.filter(pc.equal(panes["flow"], name)).select(schema.names)
            out[name].append(own.cast(schema))
            steps[name] += [batch] * own.num_rows

    every = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), frames)
    with changed(spark):
        writer = every.writeStream.foreachBatch(kept).option("checkpointLocation", str(folder / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(600), "the query never ends"
        finally:
            query.stop()
    return {name: pa.concat_tables(out[name]).append_column("step", pa.array(steps[name], pa.int64())) for name in out}


def panes_by_batch(folder: Path) -> list[pa.Table]:
    """The rows in the file sink of a query, batch by batch, in the order of its log."""
    log = folder / "panes" / "_spark_metadata"
    out: dict[int, list[pa.Table]] = {}
    compacted = [int(path.name.removesuffix(".compact")) for path in log.glob("*.compact")]
    assert not compacted
    for path in log.iterdir():
        if path.name.isdigit():
            names = [json.loads(line)["path"] for line in path.read_text().splitlines()[1:]]
            out[int(path.name)] = [pq.read_table(name.removeprefix("file://")) for name in names]
    return [pa.concat_tables(out[batch]) for batch in sorted(out)]
