"""As-of joins on Spark: a stream over a restart and a batch give the rows of a run in this process."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine import Engine
from opened import opened
from pyspark.sql import SparkSession
from row_steps import SECOND, START, TIME
from streams import read_stream, rows_flow, started, written

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.sparkops.sql_types import spark_schema

SCHEMA = pa.schema({"ts": TIME, "k": pa.string(), "x": pa.int64()})
ROUNDS: list[dict[str, Any]] = [
    {"direction": "backward"},
    {"direction": "nearest", "tolerance": "20 seconds", "allow_exact": False},
    {"direction": "forward", "how": "inner", "emit": "final"},
]


def tables(rows: int = 120) -> dict[str, pa.Table]:
    """Rows of both sides, nearly by time, with ties."""
    rng = np.random.default_rng(3)
    out = {}
    for name in ("left", "right"):
        times = START + np.sort(rng.integers(0, 300, rows)) * SECOND + rng.integers(-9, 9, rows) * SECOND
        columns = {"ts": times, "k": rng.choice(["a", "b", None], rows), "x": rng.integers(0, 9, rows)}
        out[name] = pa.table({"ts": times, "k": columns["k"].tolist(), "x": columns["x"]}).cast(SCHEMA)
    return out


def net(table: pa.Table) -> Counter[str]:
    """Rows with the sums of their weights."""
    out: Counter[str] = Counter()
    names = [name for name in table.column_names if name not in ("diff", "step")]
    for row in table.to_pylist():
        values = (row[name] for name in names)
        out[repr([uc.timestamp(v) if hasattr(v, "year") else v for v in values])] += row["diff"]
    return Counter({row: n for row, n in out.items() if n})


def joined(flows: list[uc.Flow], options: dict[str, Any]) -> uc.Flow:
    return flows[0].join_asof(flows[1], by="k", **options)


@pytest.mark.parametrize("options", ROUNDS, ids=lambda given: given["direction"])
def test_bundles_of_shards_give_the_rows_of_a_local_run(options: dict[str, Any]) -> None:
    """The shards of a stream, stored after each batch, without a session."""
    batches = [{name: table.slice(at, 30) for name, table in tables().items()} for at in range(0, 120, 30)]
    engine = Engine(joined([rows_flow(SCHEMA, name=name, watermark="15 s", shards=3) for name in tables()], options))
    stream = pa.concat_tables([engine.batch(batch, now=START + at)[0] for at, batch in enumerate(batches)])
    local = joined([uc.flow(SCHEMA, name=name, watermark="15 s") for name in tables()], options)
    result = local.run([uc.Elements(rows, input=name) for batch in batches for name, rows in batch.items()])
    assert result.dropped == 0
    assert len(result) > 10
    assert net(stream) == net(result.panes)


def test_a_stream_goes_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    """Rows from before the restart are joined with rows that come after it."""
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    for run in range(2):
        flows = []
        for name, table in tables().items():
            folder, some = tmp_path / name, table.slice(run * 60, 60)
            if run == 0:
                written([some.slice(0, 30), some.slice(30)], folder)
            else:
                pq.write_table(some, folder / "9.parquet")
            rows = read_stream(spark, folder, SCHEMA)
            flows.append(uc.flow(rows, watermark="1 minute", name=name, tuning=uc.Tuning(shards=2)))
        both = joined(flows, ROUNDS[1])
        assert "state: left rows until the watermark passes their time plus the distance" in both.explain()
        started(both.df, tmp_path).awaitTermination()
    shown = pa.concat_tables([pq.read_table(file) for file in sorted((tmp_path / "panes").glob("*.parquet"))])
    local = joined([uc.flow(table, name=name) for name, table in tables().items()], ROUNDS[1])
    names = [name for name in shown.column_names if name != "step"]
    assert net(shown.select(names)) == net(local.run().panes.select(names))
    found = uc.checkpoint(tmp_path / "checkpoint", spark=spark)
    assert found.steps[0].words == "an as-of join"
    assert "last right rows" in found.steps[0].rows
    assert {"k", "x", "ts"} <= set(found.rows(1, "right rows").column_names)
    row = {"ts": "2016-01-20T12:04:00Z", "k": "a", "x": 1}
    with pytest.raises(InvalidArgument, match="has no grouping"):
        uc.why(tmp_path / "checkpoint", row=row)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_batch_gives_the_rows_of_a_local_run(weighted: bool, spark: SparkSession) -> None:
    frames = {}
    for name, table in tables().items():
        weights = pa.array([2 if place % 7 == 0 else 1 for place in range(table.num_rows)], pa.int64())
        frames[name] = table.append_column("w", weights) if weighted else table
    options: dict[str, Any] = {"diff": "w" if weighted else None}
    spark_flows = [
        opened(spark.createDataFrame(table, spark_schema(table.schema)), shards=2, name=name, **options)
        for name, table in frames.items()
    ]
    both = joined(spark_flows, ROUNDS[0])
    assert "not Spark's own join: it matches rows as of a time" in both.explain()
    local = joined([uc.flow(table, name=name, **options) for name, table in frames.items()], ROUNDS[0]).run()
    got = both.df.toArrow()
    assert net(got) == net(local.panes.select(got.column_names))
    assert len(local) > 50
