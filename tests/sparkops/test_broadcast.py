"""Broadcast rows on Spark: streams over restarts and seeds, replays and batches make the calls of one plain loop."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from broadcast_flows import ruled
from broadcast_rows import BROADCAST, KEYED, Judge, PlainLoop, added, bundles, table_of
from pyspark.sql import SparkSession
from row_steps import SCHEMA, draw_rows, script_of

import uncombine as uc
from uncombine.sparkops.sql_types import spark_schema

LAG = 20_000
"""The microseconds by which the watermark of a source is less than the latest row."""


def judged(keyed: uc.Flow, told: uc.Flow) -> uc.Flow:
    return keyed.process(by="k", function=Judge, broadcast=told, allowed_lateness="12 ms")


class Needs:
    """Fails where no broadcast row has come before a row."""

    output = pa.schema({"x": pa.int64()})
    state = pa.schema({"x": pa.int64()})
    shared = pa.schema({"rows": pa.int64()})

    def on_broadcast(self, row: dict[str, Any], shared: dict[str, Any], ctx: Any) -> None:
        shared["rows"] = (shared["rows"] or 0) + ctx.diff

    def on_row(self, row: dict[str, Any], state: dict[str, Any], ctx: Any) -> None:
        ctx.set_timer("last", ctx.time + 10**10, "event")

    def on_timer(self, tag: str, ctx: Any) -> None:
        ctx.emit({"x": ctx.shared["rows"] + 1})


class History:
    """Random bundles as files of two sources, one of each to a batch, and the output that is expected of them."""

    def __init__(self, seed: int) -> None:
        self.bundles = [(keyed, told) for keyed, told, _ in bundles(random.Random(seed), 60) if keyed and told]
        self.plain, self.latest, self.done = PlainLoop(Judge(), 12_000), [-(2**62)] * 2, 0

    def put(self, folder: Path, count: int) -> Counter[Any]:
        """Write the files of some more batches, and give the output of these."""
        out: Counter[Any] = Counter()
        for rows in self.bundles[self.done : self.done + count]:
            for place, (name, schema) in enumerate((("keyed", KEYED), ("told", BROADCAST))):
                (folder / name).mkdir(exist_ok=True)
                pq.write_table(table_of(rows[place], schema), folder / name / f"{self.done:03d}.parquet")
                self.latest[place] = max([self.latest[place], *(row[0] - LAG for row in rows[place])])
            for row, weight in self.plain.step(*rows, min(self.latest)).items():
                out[row] += weight
            self.done += 1
        return Counter({row: weight for row, weight in out.items() if weight})


def stream(spark: SparkSession, folder: Path, shards: int) -> uc.Flow:
    flows = [
        uc.flow(
            uc.Files(str(folder / name), order="name", max_files_per_batch=1),
            spark=spark,
            streaming=True,
            watermark=f"{LAG} us",
            diff="w",
            name=name,
            tuning=uc.Tuning(shards=shards),
        )
        for name in ("keyed", "told")
    ]
    return judged(*flows)


def run(one: uc.Flow, folder: Path, name: str, **options: Any) -> Counter[Any]:
    """The rows that a query writes until it has read all files."""
    out = str(folder / f"{name} out")
    writer = one.write_stream(checkpoint=str(folder / name), **options).format("parquet").option("path", out)
    writer.trigger(availableNow=True).start().awaitTermination()
    rows = added(pq.read_table(out))
    shutil.rmtree(out)
    return rows


def test_a_stream_goes_on_after_a_restart_and_from_a_seed_in_other_shards(spark: SparkSession, tmp_path: Path) -> None:
    history = History(1)
    first = history.put(tmp_path, 3)
    assert run(stream(spark, tmp_path, 3), tmp_path, "old") == first
    found = uc.checkpoint(tmp_path / "old", spark=spark)
    shared = found.rows(1, "shared state").to_pylist()
    # Every shard has the same.
    assert [dict(row["shared"], rules=dict(row["shared"]["rules"])) for row in shared] == [
        dict(history.plain.shared, rules=dict(history.plain.shared["rules"]))
    ] * 3
    seed = found.seed(str(tmp_path / "seed"))
    assert seed.steps[0].rows["shared"] == 1
    then = history.put(tmp_path, 3)
    assert run(stream(spark, tmp_path, 3), tmp_path, "old") == then
    assert run(stream(spark, tmp_path, 5), tmp_path, "new", start=seed.folder) == then
    last = history.put(tmp_path, 2)
    assert run(stream(spark, tmp_path, 5), tmp_path, "new") == last
    assert min(len(some) for some in (first, then, last)) > 5


def test_a_batch_gives_the_rows_of_a_local_run(spark: SparkSession) -> None:
    r = random.Random(7)
    tables = {name: draw_rows(r, True, place).drop_columns(["seen"]) for place, name in enumerate(("keyed", "told"))}
    frames = {name: spark.createDataFrame(table, spark_schema(table.schema)) for name, table in tables.items()}

    def flows(sources: Any, **options: Any) -> list[uc.Flow]:
        keyed, told = (uc.flow(rows, diff="w", name=name, **options) for name, rows in sources.items())
        rows = ruled(keyed, told.window("1 minute").combine(x=uc.Sum("x")))
        return [rows, rows.output("last"), rows.window("1 hour").combine(by="k", n=uc.Count(), x=uc.Sum("x"))]

    for there, here in zip(flows(frames, tuning=uc.Tuning(shards=3)), flows(tables), strict=True):
        found = there.df.toArrow()
        want = here.run().panes.select(found.column_names)
        assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, want.to_pylist()))
        assert len(want) > 2
        assert "Process(function=Ruled, by=('k',), " in there.explain()
        assert "join" not in there.explain()
    keyed, told = (uc.flow(rows, diff="w", name=name) for name, rows in frames.items())
    needs = keyed.process(by="k", function=Needs, broadcast=told.window("1 minute").combine(x=uc.Sum("x")))
    assert needs.df.count() > 0
    assert needs.left_out.count() == 0


def test_a_replay_gives_the_rows_of_a_local_run(spark: SparkSession) -> None:
    r = random.Random(11)
    tables = {name: draw_rows(r, False, place) for place, name in enumerate(("keyed", "told"))}
    options: dict[str, Any] = {"watermark": "1 minute", "processing_time": "seen"}
    sources = [
        uc.flow(spark.createDataFrame(table, spark_schema(table.schema)), name=name, **options)
        for name, table in tables.items()
    ]
    there = ruled(*(source.replay(close_at_end=True) for source in sources)).df.toArrow()
    local = ruled(*(uc.flow(SCHEMA, name=name, **options) for name in tables)).run(script_of(tables)).panes
    want = local.select(there.column_names)
    assert sorted(map(repr, there.to_pylist())) == sorted(map(repr, want.to_pylist()))
    assert len(want) > 5


def test_flows_together_share_a_step_with_broadcast_rows(spark: SparkSession, tmp_path: Path) -> None:
    history = History(2)
    expected = history.put(tmp_path, 3)
    rows = stream(spark, tmp_path, 2)
    counted = rows.window("1 day", "each row", mode="retracting").combine(by="k", n=uc.Count())
    found: dict[str, list[pa.Table]] = {"rows": [], "counted": []}

    def take(batch: Any, number: int) -> None:
        for name, df in batch.items():
            found[name].append(df.toArrow())

    both = uc.together(rows=rows, counted=counted)
    writer = both.write_stream(checkpoint=str(tmp_path / "both")).foreach_batch(take)
    writer.trigger(availableNow=True).start().awaitTermination()
    assert added(pa.concat_tables(found["rows"])) == expected
    sums: Counter[Any] = Counter()
    for row in pa.concat_tables(found["counted"]).to_pylist():
        sums[row["k"]] += row["n"] * row["diff"]
    wanted: Counter[Any] = Counter()
    for (key, *_), weight in expected.items():
        wanted[key] += weight
    assert +sums == +wanted
