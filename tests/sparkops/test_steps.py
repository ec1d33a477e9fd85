"""Steps over single rows in flows: a replay gives the rows of a run in this process, and Spark runs them."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from bounded import bounded_flow
from pyspark.sql import SparkSession, types
from replays import drawn, replayed, run_locally
from row_steps import Totals, draw_flow, draw_rows, ledger, scored
from seeds import seeds
from streams import together

import uncombine as uc
from uncombine.errors import TypeMismatch
from uncombine.sparkops.sql_types import passed, spark_schema
from uncombine.sparkops.time_modes import choice_of


@pytest.mark.weekly
@pytest.mark.parametrize("seed", seeds(60, 2_060))
def test_a_replay_gives_the_rows_of_a_local_run(seed: int) -> None:
    flow, tables = drawn(seed, draw_flow, [1, 1, 2])
    assert replayed(flow) == run_locally(flow, tables)


BUILDS: dict[str, Any] = {
    "distinct": lambda flow: flow.distinct("id", within="1 minute"),
    "counted": lambda flow: flow.distinct("id", within="1 minute").window(uc.Fixed("1 minute")).combine(n=uc.Count()),
    "in_order": lambda flow: flow.in_order(by="k"),
    "sampled": lambda flow: flow.sample(0.5).in_order(by="k").sample(0.5, by="id", seed=1),
    "scored": lambda flow: flow.map(scored, remember=True).select("k", "score", "event_time", "diff"),
    "rolled": lambda flow: flow.rolling({"s": "40 seconds", "m": "3 minutes"}, by="k").combine(
        n=uc.Count(), best=uc.Max("x"), middle=uc.Median("x")
    ),
    "rolled, final": lambda flow: flow.rolling(rows=3, order="id", by="k", emit="final").combine(total=uc.Sum("x")),
    "ticks": lambda flow: flow.rolling("2 minutes", every="45 seconds", by="k").combine(n=uc.Count(), best=uc.Max("x")),
    "totals": lambda flow: flow.process(by="k", function=Totals),
    "an output": lambda flow: ledger(flow)[2],
    "an output, counted": lambda flow: ledger(flow)[2].window("1 minute", "each row").combine(by="k", n=uc.Count()),
}


def test_steps_in_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    """Each flow gives the rows that a run in this process gives for the same bundles."""
    r = random.Random(7)
    tables = [draw_rows(r, weighted=False).drop_columns(["w", "seen"]) for _ in range(3)]

    def flow_over(build: Any) -> Any:
        return lambda df: build(uc.flow(df, watermark="1 minute", tuning=uc.Tuning(shards=2)))

    shown = together(spark, {name: (tables, flow_over(build)) for name, build in BUILDS.items()}, tmp_path)
    for name, build in BUILDS.items():
        local = build(uc.flow(tables[0].schema, watermark="1 minute"))
        want = local.run([uc.Elements(table) for table in tables])
        assert rows_of(shown[name]) == rows_of(want.panes), name
        assert len(want) > 3


@pytest.mark.parametrize("seed", seeds(1, 20))
def test_queries_of_random_steps_end(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    """Three flows as one query, which runs no batch without data unless a timer of processing time can be due."""
    r, flows, wants = random.Random(seed), {}, {}
    while len(flows) < 3:
        tables = [draw_rows(r, weighted=True).drop_columns(["seen"]) for _ in range(3)]
        steps = r.random()

        def build(source: uc.Flow, steps: float = steps) -> uc.Flow:
            return draw_flow(random.Random(steps), [source])

        local = build(uc.flow(tables[0].schema, watermark="1 minute", diff="w"))
        if choice_of(local):
            continue
        name = f"{len(flows)}"
        flows[name] = (
            tables,
            lambda df, build=build: build(uc.flow(df, watermark="1 minute", diff="w", tuning=uc.Tuning(shards=2))),
        )
        wants[name] = rows_of(local.run([uc.Elements(table) for table in tables]).panes)
    shown = together(spark, flows, tmp_path)
    assert {name: rows_of(rows) for name, rows in shown.items()} == wants


def test_steps_over_bounded_rows(spark: SparkSession) -> None:
    table = draw_rows(random.Random(3), weighted=False).drop_columns(["w", "seen"])
    df = spark.createDataFrame(table.to_pandas(types_mapper=pd.ArrowDtype), spark_schema(table.schema))
    for build in BUILDS.values():
        flow = build(uc.flow(df, tuning=uc.Tuning(shards=2)))
        assert rows_of(flow.df.toArrow()) == rows_of(build(uc.flow(table)).run().panes)
        assert "Final results, in Python" in repr(flow)


VALUES = [
    (pa.timestamp("s"), dt.datetime(2024, 5, 1)),
    (pa.timestamp("ns", "Europe/Berlin"), dt.datetime(2024, 5, 1, tzinfo=dt.UTC)),
    (pa.duration("ns"), dt.timedelta(seconds=1)),
    *([(pa.time64("us"), dt.time(1, 2, 3))] if hasattr(types, "TimeType") else []),  # 4.0 has no times of a day
    (pa.binary(2), b"ab"),
    (pa.list_(pa.int64(), 2), [1, 2]),
    (pa.list_(pa.struct([("at", pa.timestamp("ms"))])), [{"at": dt.datetime(2024, 5, 1)}]),
]
"""Types of Arrow in which Spark does not read columns, and a value of each."""


@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize("step", ["process", "map", "flat_map"])
def test_steps_give_columns_of_any_type(step: str, replay: bool) -> None:
    columns = {f"c{i}": (kind, value) for i, (kind, value) in enumerate(VALUES)}
    schema = pa.schema([(name, kind) for name, (kind, _) in columns.items()])

    class Gives:
        output = state = schema

        def on_row(self, row: Any, state: Any, ctx: Any) -> None:
            state |= {name: value for name, (_, value) in columns.items()}
            ctx.emit(state)

    def given(table: pa.Table) -> pa.Table:
        values = {name: pa.array([value] * table.num_rows, kind) for name, (kind, value) in columns.items()}
        return pa.table(values | ({"row": np.arange(table.num_rows)} if step == "flat_map" else {}))

    rows = pa.table({"ts": pa.array([0, 1], pa.timestamp("us", "UTC"))})
    settings: dict[str, Any] = {"replay": True, "processing_time": "ts", "watermark": uc.Monotonic()} if replay else {}
    source = bounded_flow([rows], "ts", **settings)
    flow = source.process(function=Gives) if step == "process" else getattr(source, step)(given, remember=True)
    found = flow.df.toArrow().select(schema.names).to_pylist()
    assert [list(row.values()) for row in found] == [[v for _, v in VALUES]] * 2


def test_a_value_that_spark_cannot_have_is_named() -> None:
    with pytest.raises(TypeMismatch, match=r"column 'at' is timestamp.ns., which Spark has as timestamp.us."):
        passed(pa.table({"at": pa.array([1], pa.timestamp("ns"))}))
    with pytest.raises(TypeMismatch, match=r"decimal256.* Spark has no such type"):
        spark_schema(pa.schema({"x": pa.decimal256(50, 2)}))


def rows_of(table: pa.Table) -> Counter[str]:
    kept = [name for name in table.column_names if name not in ("pane", "step")]
    return Counter(map(repr, table.select(kept).to_pylist()))
