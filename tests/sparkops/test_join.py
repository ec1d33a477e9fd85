"""Joins on Spark: a replay gives the rows of a run in this process, and so do streams and batches."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine import Engine
from join_flows import draw_flow, joined, kept
from opened import opened
from pyspark.sql import SparkSession
from replays import drawn, replayed, run_locally
from row_steps import SECOND, START, TIME, draw_rows
from seeds import seeds
from streams import read_stream, rows_flow, started, together, written

import uncombine as uc
from uncombine.flows.fingerprint.differences import differences
from uncombine.sparkops.routes.streaming import StreamRoute
from uncombine.sparkops.sql_types import spark_schema


@pytest.mark.weekly
@pytest.mark.parametrize("seed", seeds(12, 1_012))
def test_a_replay_gives_the_rows_of_a_local_run(seed: int) -> None:
    flow, tables = drawn(seed, draw_flow, [2, 2, 3])
    assert replayed(flow) == run_locally(flow, tables)


def sides(flow: uc.Flow) -> tuple[uc.Flow, uc.Flow]:
    """The rows of one source with even and with odd ids, the latter with `y` for `x`."""
    left = flow.where(lambda table: np.asarray(table["id"]) % 2 == 0)
    right = flow.where(lambda table: np.asarray(table["id"]) % 2 == 1).with_columns(y=uc.col("x"))
    return kept(left, "k", "f", "g", "id", "x"), kept(right, "k", "f", "g", "y")


def sums(flow: uc.Flow, name: str) -> uc.Flow:
    return flow.window(uc.Fixed("5 minutes")).combine(by="k", **{name: uc.Sum(name)})


def rows_joined(how: str, unmatched: str = "at_once", on: str = "k") -> Any:
    return lambda a, b: a.join(b, on, how, ("-2 minutes", "1 minute"), unmatched)


PLAIN: dict[str, Any] = {
    "inner": rows_joined("inner"),
    "full": rows_joined("full", on="f"),
    "deep": rows_joined("full", on="g"),
    "semi": rows_joined("semi"),
    "last": rows_joined("left", "final"),
    "panes": lambda a, b: sums(a, "x").join(sums(b, "y"), "k", "right"),
    "twice": lambda a, b: (
        rows_joined("left")(a, b).select("k", "id", "x", "event_time", "diff").join(b, "k", "left", ("0 s", "1 minute"))
    ),
    "grouped": lambda a, b: (
        rows_joined("left")(a, b).window(uc.Fixed("5 minutes")).combine(by="k", n=uc.Count(), y=uc.Sum("y"))
    ),
    "united": lambda a, b: uc.union(rows_joined("inner")(a, b), rows_joined("anti", "final")(a, b)),
}
"""Joins without weights in their inputs."""

AFTER_STEPS: dict[str, Any] = {
    "distinct": lambda a, b: a.distinct("id", within="1 minute").join(b, "k", "full", ("0 s", "1 minute")),
    "remember": lambda a, b: a.map(lambda t: t, remember=True).join(b, "k", "anti", ("0 s", "1 minute")),
}


def built(build: Any, flow: uc.Flow) -> uc.Flow:
    left, right = sides(flow)
    made: uc.Flow = build(left, right)
    return made


def table_of(seed: int, weighted: bool = False, *, second: str = "e") -> pa.Table:
    """Rows with a column `f` of floats in which NaN, both zeros and null occur, and `g` with these in a struct.

    The struct has them twice, the second time under a name of its own.
    """
    r = random.Random(seed)
    table = pa.concat_tables([draw_rows(r, weighted=weighted) for _ in range(3)])
    floats = pa.array([r.choice([float("nan"), 0.0, -0.0, 1.5, None]) for _ in range(table.num_rows)])
    table = table.append_column("f", floats)
    parts, mask = (
        [floats, floats, table["k"].combine_chunks()],
        pa.array([r.random() < 0.1 for _ in range(table.num_rows)]),
    )
    table = table.append_column("g", pa.StructArray.from_arrays(parts, names=["f", second, "k"], mask=mask))
    return table.drop_columns(["seen"] if weighted else ["seen", "w"])


def rows_of(table: pa.Table) -> Counter[str]:
    """Rows by their texts; columns of the run left out."""
    rows = table.select([name for name in table.column_names if name not in ("pane", "step")]).to_pylist()
    return Counter(map(repr, rows))


@pytest.mark.daily
@pytest.mark.parametrize("names", [("panes",), pytest.param((*PLAIN, *AFTER_STEPS), marks=pytest.mark.soak)], ids=len)
def test_joins_in_a_stream(names: tuple[str, ...], spark: SparkSession, tmp_path: Path) -> None:
    """Each flow gives the rows that a run in this process gives for the same bundles."""
    tables = [table_of(seed) for seed in range(3)]
    builds = {name: build for name, build in {**PLAIN, **AFTER_STEPS}.items() if name in names}

    def flow_over(build: Any) -> Any:
        return lambda df: built(build, uc.flow(df, watermark="1 minute", tuning=uc.Tuning(shards=2, wake=False)))

    shown = together(spark, {name: (tables, flow_over(build)) for name, build in builds.items()}, tmp_path)
    for name, build in builds.items():
        local = built(build, uc.flow(tables[0].schema, watermark="1 minute"))
        want = local.run([uc.Elements(table) for table in tables])
        assert rows_of(shown[name]) == rows_of(want.panes), name
        assert len(want) > 3, name


FEW = ("full", "deep", "last", "panes", "grouped", "distinct")


@pytest.mark.parametrize("names", [FEW, pytest.param((*PLAIN, *AFTER_STEPS), marks=pytest.mark.soak)], ids=len)
def test_joins_of_bounded_rows(names: tuple[str, ...], spark: SparkSession) -> None:
    """Spark's own join gives the rows of a run in this process; so does the operator, where rows have weights."""
    for weighted in (False, True):
        table = table_of(5, weighted, second="F")  # Spark reads no such file
        df = spark.createDataFrame(table, spark_schema(table.schema))
        options: dict[str, Any] = {"diff": "w" if weighted else None}
        given = {name: PLAIN[name] for name in ("full", "deep", "panes")} if weighted else {**PLAIN, **AFTER_STEPS}
        builds = {name: build for name, build in given.items() if name in names}
        for name, build in builds.items():
            flow = built(build, opened(df, shards=2, **options))
            want = built(build, uc.flow(table, **options)).run()
            assert rows_of(flow.df.toArrow()) == rows_of(want.panes), (name, weighted)
            assert len(want) > 3, name
            in_python = "not Spark's own join: an input has weights" in flow.explain()
            assert in_python == (weighted and name != "panes"), name


def test_a_stream_of_two_sources_goes_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    """Rows that came before the restart match those that come after it."""
    rng = np.random.default_rng(3)
    frames = {}
    for name in ("left", "right"):
        times = START + np.sort(rng.integers(0, 600, 120)) * SECOND
        frames[name] = pd.DataFrame(
            {"t": times, "k": rng.choice(list("abc"), 120), "x": rng.integers(0, 9, 120), "w": 1}
        )
    schema = pa.schema({"ts": TIME, "k": pa.string(), "x": pa.int64()})
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    for run in range(2):
        flows = []
        for name, frame in frames.items():
            some = frame.iloc[run * 60 : run * 60 + 60].rename(columns={"t": "ts"})[["ts", "k", "x"]]
            table = pa.Table.from_pandas(some, preserve_index=False).cast(schema)
            folder = tmp_path / name
            if run == 0:
                written([table.slice(0, 30), table.slice(30)], folder)
            else:
                pq.write_table(table, folder / "9.parquet")
            flows.append(
                uc.flow(
                    read_stream(spark, folder, schema), watermark="10 minutes", name=name, tuning=uc.Tuning(shards=2)
                )
            )
        both = flows[0].join(flows[1], "k", "full", ("-20 seconds", "5 seconds"))
        started(both.df, tmp_path).awaitTermination()
    shown = pq.read_table(sorted((tmp_path / "panes").glob("*.parquet"))).to_pylist()
    net: Counter[tuple[Any, ...]] = Counter()
    for row in shown:
        values = (row[name] for name in ("k", "x_left", "ts_left", "x_right", "ts_right"))
        net[tuple(uc.timestamp(v) if hasattr(v, "year") else v for v in values)] += row["diff"]
    want = joined(frames["left"], frames["right"], "full", -20 * SECOND, 5 * SECOND, ["k"])
    assert {row: n for row, n in net.items() if n} == dict(want)
    assert any(row["diff"] < 0 for row in shown)


def test_the_clock_of_one_side_alone_reports_no_watermark_of_the_steps_of_the_other() -> None:
    """A stream that has other bundles than a script leaves out the same rows."""
    schema = pa.schema({"ts": TIME, "seen": TIME, "k": pa.string(), "x": pa.int64()})

    def flow(source: Any) -> uc.Flow:
        left, right = (source(name) for name in ("left", "right"))
        return left.join(right.in_order().in_order(), on="k", how="left", within=("0 s", "1 hour"))

    def row(seen: int, ts: int, name: str) -> dict[str, pa.Table]:
        given = {"ts": START + ts * SECOND, "seen": START + seen * SECOND, "k": "a", "x": seen}
        return {other: pa.Table.from_pylist([given] * (other == name), schema) for other in ("left", "right")}

    batches = [row(0, 0, "right"), *(row(at, at - 900, "left") for at in (1200, 1800, 2400))]
    options: dict[str, Any] = {"watermark": uc.ProcessingTime("1 minute"), "processing_time": "seen"}
    engine = Engine(flow(lambda name: rows_flow(schema, "ts", shards=1, name=name, **options)))
    stream = pa.concat_tables([engine.batch(batch)[0] for batch in batches])
    script = [uc.Elements(rows, input=name) for batch in batches for name, rows in batch.items() if rows.num_rows]
    local = flow(lambda name: uc.flow(schema, name=name, **options)).run(script)
    assert len(local) == 3
    assert rows_of(stream) == rows_of(local.panes)


def test_the_checkpoint_knows_the_sides_of_a_join() -> None:
    schema = pa.schema({"ts": TIME, "k": pa.string(), "x": pa.int64()})
    one, other, third = (rows_flow(schema, watermark="1 minute", name=name) for name in "pqr")

    def print_of(left: uc.Flow, right: uc.Flow, within: Any = ("0 s", "1 s")) -> Any:
        flow = left.join(right, "k", within=within)
        streaming = StreamRoute(flow, one.source.input)  # type: ignore[attr-defined]
        return streaming.task(streaming.graph.steps[-1], None).fingerprint

    named = print_of(one, other)
    assert named["inputs"] == ["left p(ts, k, x)", "right q(ts, k, x)"]
    assert differences(named, print_of(one, other)) is None
    assert "within=('0 seconds', '2 seconds')" in str(differences(named, print_of(one, other, ("0 s", "2 s"))))
    assert differences(print_of(uc.union(one, other), third), print_of(one, uc.union(other, third))) is not None
