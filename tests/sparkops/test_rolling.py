"""Rolling aggregates on Spark: streams over restarts and batches give the rows of plain Python and of this process."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from by_double_loop import ticks_seen
from engine import Engine
from pyspark.sql import SparkSession
from row_steps import SECOND, START, TIME
from seeds import seeds
from streams import read_stream, rows_flow, written

import uncombine as uc
from uncombine.sparkops.sql_types import spark_schema

SCHEMA = pa.schema({"ts": TIME, "k": pa.string(), "id": pa.int64(), "x": pa.int64()})
NOW = {"availableNow": True}
PERIODS = {"s": 20, "m": 60}
COMBINERS: dict[str, Any] = {"n": uc.Count(), "total": uc.Sum("x"), "best": uc.Max("x"), "kinds": uc.CountDistinct("x")}


def rows(count: int = 120, seed: int = 3) -> pa.Table:
    """Rows nearly by time, with ties, some of them late."""
    rng = np.random.default_rng(seed)
    times = START + np.sort(rng.integers(0, 300, count)) * SECOND - rng.integers(0, 30, count) * SECOND
    keys = [("a", "b", None)[place] for place in rng.integers(0, 3, count)]
    return pa.table({"ts": times, "k": keys, "id": np.arange(count), "x": rng.integers(0, 9, count)}).cast(SCHEMA)


def wanted(table: pa.Table) -> dict[int, tuple[Any, ...]]:
    """The results of each row by its id, from a loop over rows in a loop over rows."""
    everything = table.to_pylist()
    out = {}
    for row in everything:
        found: list[Any] = []
        for seconds in PERIODS.values():
            ages = [((row["ts"] - o["ts"]).total_seconds(), o) for o in everything if o["k"] == row["k"]]
            xs = [o["x"] for age, o in ages if 0 <= age < seconds]
            found += [len(xs), sum(xs), max(xs), len(set(xs))]
        out[row["id"]] = tuple(found)
    return out


def rolled(flow: uc.Flow, **options: Any) -> uc.Flow:
    periods = {name: f"{seconds} seconds" for name, seconds in PERIODS.items()}
    return flow.rolling(periods, by="k", **options).combine(**COMBINERS)


def results(table: pa.Table) -> dict[int, tuple[Any, ...]]:
    names = [f"{label}_{name}" for label in PERIODS for name in COMBINERS]
    ids = table["id"].to_pylist()
    assert len(set(ids)) == len(ids)
    return dict(zip(ids, zip(*(table[name].to_pylist() for name in names), strict=True), strict=True))


def left(table: pa.Table) -> pa.Table:
    """The rows of a changelog that are left."""
    sums: Counter[str] = Counter()
    first: dict[str, int] = {}
    names = [name for name in table.column_names if name not in ("diff", "step")]
    for place, row in enumerate(table.to_pylist()):
        text = repr([row[name] for name in names])
        first.setdefault(text, place)
        sums[text] += row["diff"]
    assert set(sums.values()) <= {0, 1}
    return table.take(pa.array([first[text] for text, weight in sums.items() if weight], pa.int64()))


@pytest.mark.parametrize("emit", ["at_once", "final"])
@pytest.mark.parametrize("seed", seeds(2, 40))
def test_bundles_of_shards_that_restart(seed: int, emit: Any) -> None:
    """The shards of a stream, stored after each batch and loaded by new workers, without a session."""
    table = rows(120, seed)
    engine = Engine(rolled(rows_flow(SCHEMA, watermark="40 s", shards=3), emit=emit), seed)
    shown = []
    for at in range(0, 120, 20):
        shown.append(engine.batch({None: table.slice(at, 20)}, now=START + at)[0])
        engine.restart()
    every = pa.concat_tables(shown)
    found = results(left(every))
    want = wanted(table)
    if emit == "final":
        assert set(every["diff"].to_pylist()) == {1}
        assert len(found) > 50
        want = {name: want[name] for name in found}
    else:
        assert -1 in every["diff"].to_pylist()
    assert found == want


@pytest.mark.parametrize("emit", ["at_once", "final"])
@pytest.mark.parametrize("seed", seeds(2, 40))
def test_rule_97_ticks_of_shards_that_restart(seed: int, emit: Any) -> None:
    """Ticks every 15 seconds, until the period of each key is empty, over batches with new workers."""
    table = rows(120, seed)
    options = {"every": "15 seconds", "allowed_lateness": "1 minute", "emit": emit}
    engine = Engine(rolled(rows_flow(SCHEMA, watermark="1 s", shards=3), **options), seed)
    far = pa.table([[START + 10**6 * SECOND], ["far"], [0], [0]], SCHEMA.names).cast(SCHEMA)
    shown = []
    for at, batch in enumerate([*(table.slice(at, 20) for at in range(0, 120, 20)), far, far.slice(0, 0)]):
        shown.append(engine.batch({None: batch}, now=START + at)[0])
        engine.restart()
    every = pa.concat_tables(shown)
    assert set(every["diff"].to_pylist()) == ({1} if emit == "final" else {1, -1})
    names = ["k", "event_time", *(f"{label}_{name}" for label in PERIODS for name in COMBINERS)]
    found = [tuple(row[name] for name in names) for row in left(every).to_pylist() if row["k"] != "far"]
    wanted = []
    for key in ("a", "b", None):
        mine = [row for row in table.to_pylist() if row["k"] == key]
        periods = {name: dt.timedelta(seconds=seconds) for name, seconds in PERIODS.items()}
        for tick, seen in ticks_seen([row["ts"] for row in mine], dt.timedelta(seconds=15), periods, "right"):
            results: list[Any] = []
            for places in seen.values():
                xs = [mine[place]["x"] for place in places]
                results += [len(xs), sum(xs), max(xs), len(set(xs))] if xs else [0, None, None, 0]
            wanted.append((key, tick, *results))
    assert Counter(found) == Counter(wanted)


def test_a_live_table_of_features_over_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    """Late rows after the restart correct rows that were shown before it."""
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    table, target = rows(), f"parquet:{tmp_path}/features"
    for run in range(2):
        some = table.slice(run * 60, 60)
        if run == 0:
            written([some.slice(0, 30), some.slice(30)], tmp_path / "rows")
        else:
            pq.write_table(some, tmp_path / "rows" / "9.parquet")
        source = uc.flow(
            read_stream(spark, tmp_path / "rows", SCHEMA), watermark="1 minute", tuning=uc.Tuning(shards=2)
        )
        flow = rolled(source)
        assert "rolling" in flow.explain().lower()
        live = flow.to_table(target, "id", checkpoint=str(tmp_path / "checkpoint"), trigger=NOW)
        live.awaitTermination()
        assert results(live.arrow()) == wanted(table.slice(0, 60 * (run + 1)))
    found = uc.checkpoint(tmp_path / "checkpoint", spark=spark)
    [step] = found.steps
    assert step.words == "rolling()"
    assert "rolling()" in str(step)
    state = found.rows(1)
    assert {"k", "id", "x", "ts", "s_total", "weight", "shown"} <= set(state.column_names)
    kept = dict(zip(state["id"].to_pylist(), state["m_total"].to_pylist(), strict=True))
    assert kept
    assert kept == {name: wanted(table)[name][5] for name in kept}


@pytest.mark.parametrize("files", [False, True])
def test_a_batch_gives_the_rows_of_a_table(files: bool, spark: SparkSession, tmp_path: Path) -> None:
    table = rows()
    if files:
        written([table.slice(0, 50), table.slice(50)], tmp_path / "rows")
        source = uc.flow(f"{tmp_path}/rows", spark=spark, tuning=uc.Tuning(shards=2))
    else:
        source = uc.flow(spark.createDataFrame(table, spark_schema(SCHEMA)), tuning=uc.Tuning(shards=2))
    flow = rolled(source)
    assert results(flow.df.toArrow()) == wanted(table)
    assert "each with all its rows in one task" in flow.explain()
    retracting = pa.concat_tables([table, table.slice(0, 40)])
    weights = pa.array([1] * 120 + [-1] * 40, pa.int64())
    changes = spark.createDataFrame(
        retracting.append_column("w", weights), spark_schema(SCHEMA.append(pa.field("w", pa.int64())))
    )
    rest = rolled(uc.flow(changes, diff="w", tuning=uc.Tuning(shards=2)))
    assert results(rest.df.toArrow()) == wanted(table.slice(40))
