"""Steps over single rows in flows: a replay gives the rows of a local run, and Spark runs them."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from bounded import bounded_flow, cut
from pyspark.sql import SparkSession
from row_steps import Totals, draw_flow, draw_rows, scored, script_of
from streams import together

import uncombine as uc
from uncombine.sparkops.sql_types import spark_schema


def drawn(seed: int) -> tuple[uc.Flow, dict[str, pa.Table]]:
    """A random flow of a replay, and the rows of its sources."""
    r = random.Random(seed)
    weighted = r.random() < 0.6
    tables = {name: draw_rows(r, weighted, place) for place, name in enumerate("ab"[: r.choice([1, 1, 2])])}
    settings: dict[str, Any] = {"processing_time": "seen", "replay": True, "close_at_end": True}
    settings |= {"diff": "w" if weighted else None, "shards": r.choice([1, 2, 3])}
    strategy = r.choice([uc.BoundedLag("2 minutes"), uc.BoundedLag("30 seconds"), uc.Monotonic()])
    sources = [
        bounded_flow(cut(table, 3, seed), "ts", strategy, seed, name=name, **settings) for name, table in tables.items()
    ]
    if not weighted:
        sources = [source.map(lambda table: table.drop_columns(["w"])) for source in sources]
    return draw_flow(r, sources), tables


@pytest.mark.parametrize("seed", [*range(60), *(pytest.param(i, marks=pytest.mark.soak) for i in range(60, 2_060))])
def test_a_replay_gives_the_rows_of_a_local_run(seed: int) -> None:
    flow, tables = drawn(seed)
    local = uc.local.run(script_of(tables), flow)
    replay = flow.df.toArrow()
    assert Counter(map(repr, replay.to_pylist())) == Counter(map(repr, local.drop_columns(["step"]).to_pylist()))


BUILDS: dict[str, Any] = {
    "distinct": lambda flow: flow.distinct("id", within="1 minute"),
    "counted": lambda flow: flow.distinct("id", within="1 minute").window(uc.Fixed("1 minute")).combine(n=uc.Count()),
    "in_order": lambda flow: flow.in_order(by="k"),
    "scored": lambda flow: flow.map(scored, remember=True).select("k", "score", "event_time", "diff"),
    "totals": lambda flow: flow.process(by="k", function=Totals),
}


def test_steps_in_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    """Each flow gives the rows that a local run gives for the same bundles."""
    r = random.Random(7)
    tables = [draw_rows(r, weighted=False).drop_columns(["w", "seen"]) for _ in range(3)]

    def flow_over(build: Any) -> Any:
        return lambda df: build(uc.flow(df, watermark="1 minute", shards=2, wake=False))

    shown = together(spark, {name: (tables, flow_over(build)) for name, build in BUILDS.items()}, tmp_path)
    for name, build in BUILDS.items():
        local = build(uc.local.source(tables[0].schema, watermark="1 minute"))
        want = uc.local.run([uc.Elements(table) for table in tables], local)
        assert rows_of(shown[name]) == rows_of(want.panes), name
        assert len(want) > 3


def test_steps_over_bounded_rows(spark: SparkSession) -> None:
    table = draw_rows(random.Random(3), weighted=False).drop_columns(["w", "seen"])
    df = spark.createDataFrame(table.to_pandas(types_mapper=pd.ArrowDtype), spark_schema(table.schema))
    for build in BUILDS.values():
        flow = build(uc.flow(df, shards=2))
        assert rows_of(flow.df.toArrow()) == rows_of(uc.local.run(flow=build(uc.local.source(table))).panes)
        assert "Final results, in Python" in repr(flow)


def rows_of(table: pa.Table) -> Counter[str]:
    kept = [name for name in table.column_names if name not in ("pane", "step")]
    return Counter(map(repr, table.select(kept).to_pylist()))
