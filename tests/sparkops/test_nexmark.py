"""The queries of NEXMark in batch, as replays and as streams; Spark's SQL gives the same rows as pandas."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from nexmark_runs import fault
from pyspark.sql import SparkSession
from streams import panes_by_batch, started

# The folder of benchmarks is found when the runs are known.
from nexmark import native, on_spark  # isort: skip
from nexmark.events import Events  # isort: skip
from nexmark.queries import QUERIES  # isort: skip

COUNT, PARTS = 3_000, 3
CLEAN, CORRECTED = Events(seed=1, rate=100), Events(seed=2, rate=100, twice=0.05, corrected=0.1)
pytestmark = pytest.mark.soak


def far_later(table: pa.Table) -> pa.Table:
    """An event a day later, which ends all windows and belongs to no other event."""
    row = table.slice(0, 1).to_pylist()[0]
    own = {name: -1 for name in ("id", "bid", "auction", "bidder", "seller", "category") if name in row}
    later = {name: row[name] + timedelta(days=1) for name in ("ts", "seen", "expires") if name in row}
    return pa.Table.from_pylist([row | own | later], table.schema)


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("made", [CLEAN, CORRECTED], ids=["clean", "corrected"])
@pytest.mark.parametrize("way", on_spark.WAYS)
def test_queries(spark: SparkSession, tmp_path: Path, name: str, made: Events, way: str) -> None:
    if made.changes and name == "q12":
        pytest.skip("q12 counts arrivals, which are not corrected")
    on_spark.write(spark, made, COUNT, PARTS, tmp_path / "events")
    tables = made.tables(0, COUNT)
    flow = QUERIES[name](on_spark.site(spark, made, tmp_path / "events", **on_spark.WAYS[way]))
    if way == "stream":
        for kind, table in tables.items():
            pq.write_table(
                far_later(table if made.changes else table.drop_columns("diff")),
                tmp_path / "events" / kind / f"part-{PARTS:05d}.parquet",
            )
        started(flow.df, tmp_path).awaitTermination()
        panes = pa.concat_tables(panes_by_batch(tmp_path)).cast(flow.schema)
        if "bid" in panes.column_names:
            panes = panes.filter(pc.not_equal(panes["bid"], -1))
        assert fault(name, panes, tables) is None
        return
    assert fault(name, flow.df.toArrow(), tables) is None


@pytest.mark.parametrize("name", native.SQL)
def test_queries_of_spark(spark: SparkSession, tmp_path: Path, name: str) -> None:
    on_spark.write(spark, CLEAN, COUNT, PARTS, tmp_path)
    assert fault(name, native.query(spark, name, tmp_path).toArrow(), CLEAN.tables(0, COUNT)) is None
