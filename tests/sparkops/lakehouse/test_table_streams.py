"""Tables of a lakehouse on Spark: after each query a live table over random commits is what pandas makes of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from lakehouse_histories import DeltaHistory, IcebergHistory
from pyspark.sql import SparkSession

import uncombine as uc

Cells = dict[Any, tuple[int, Any, Any]]


def totals(history: DeltaHistory | IcebergHistory, **options: Any) -> uc.Flow:
    flow = uc.flow(uc.TableChanges(history.url), **options)
    hours = flow.window("1 hour", "early every 1 row", allowed_lateness="30 days")
    return hours.combine(by="k", n=uc.Count(), total=uc.Sum("n"), most=uc.Max("x"))


def by_pandas(history: DeltaHistory | IcebergHistory) -> Cells:
    df = history.content(history.version).to_pandas()
    cells: Cells = {}
    for key, some in df.assign(hour=df["ts"].dt.floor("h")).groupby(["k", "hour"], dropna=False):
        total, most = some["n"].sum(min_count=1), some["x"].max()
        where = (None if pd.isna(key[0]) else key[0], key[1].to_pydatetime())
        cells[where] = (len(some), None if pd.isna(total) else total, None if pd.isna(most) else most)
    return cells


@pytest.mark.parametrize("kind", ["delta", "feed", "iceberg"])
def test_rule_87_a_live_table_follows_a_table_through_restarts(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    r = random.Random(7)
    history: DeltaHistory | IcebergHistory
    if kind == "iceberg":
        history = IcebergHistory(tmp_path / "source", r)
        history.table().append(history.rows(6))
    else:
        history = DeltaHistory(tmp_path / "source", r, feed=kind == "feed")
    for _ in range(3):
        live = totals(history, spark=spark, streaming=True, watermark="1 day").to_table(
            f"duckdb:{tmp_path}/out.db#totals",
            checkpoint=str(tmp_path / "checkpoint"),
            trigger={"availableNow": True},
        )
        live.awaitTermination()
        found = {
            (row["k"], row["window_start"]): (row["n"], row["total"], row["most"])
            for row in live.arrow().to_pylist()
            if row["n"]
        }
        assert found == by_pandas(history), history.done
        for _ in range(4):
            history.commit()


def test_a_bounded_flow_on_spark_has_the_rows_of_one_here(spark: SparkSession, tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "source", random.Random(5), feed=True)
    for _ in range(3):
        history.commit()
    found = [row.asDict(recursive=True) for row in uc.flow(uc.TableChanges(history.url), spark=spark).df.collect()]
    here = uc.flow(uc.TableChanges(history.url)).run().to_pylist()
    names = [name for name in history.schema.names if name not in ("tags", "at")]
    assert sorted(str([row[name] for name in ("id", "k", "n", "x", "diff")]) for row in found) == sorted(
        str([row[name] for name in ("id", "k", "n", "x", "diff")]) for row in here
    )
    assert set(names) <= set(found[0])


def test_a_stream_from_a_seed_of_the_table_goes_on_after_its_version(spark: SparkSession, tmp_path: Path) -> None:
    history = DeltaHistory(tmp_path / "source", random.Random(9), feed=False)
    flow = totals(history, spark=spark, streaming=True, watermark="1 day")
    seed = flow.seed(uc.TableChanges(history.url), to=str(tmp_path / "seed"))
    for _ in range(3):
        history.commit()
    live = totals(history, spark=spark, streaming=True, watermark="1 day").to_table(
        f"duckdb:{tmp_path}/out.db#totals",
        checkpoint=str(tmp_path / "checkpoint"),
        start=seed,
        trigger={"availableNow": True},
    )
    live.awaitTermination()
    found = {
        (row["k"], row["window_start"]): (row["n"], row["total"], row["most"])
        for row in live.arrow().to_pylist()
        if row["n"]
    }
    assert found == by_pandas(history), history.done
