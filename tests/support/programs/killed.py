"""An application of its own, to be killed: panes of files into a file sink, and at its end the rows of the sink.

With `--live` the result of `live` is kept in a table instead.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from streams import START, read_stream, started

import uncombine as uc

SECOND = 1_000_000
SCHEMA = pa.schema(
    {"k": pa.string(), "ts": pa.timestamp("us", "UTC"), "v": pa.int64(), "at": pa.timestamp("us", "UTC")}
)
LAG = uc.BoundedLag("20 seconds")
LARGE = 150
"""Totals of a minute beyond this are large."""


def batches(seed: int, count: int) -> list[pa.Table]:
    """Rows of some keys that come out of order, a minute to a batch, one in ten a minute late."""
    rng = np.random.default_rng(seed)
    out = []
    for i in range(count):
        size = 300
        ago = np.where(rng.random(size) < 0.1, 60, 0)
        times = START + (i * 60 + rng.integers(0, 70, size) - ago) * SECOND
        table = {
            "k": rng.choice([f"k{n}" for n in range(30)], size),
            "ts": times,
            "v": rng.integers(0, 100, size),
            "at": np.full(size, START + i * 60 * SECOND),
        }
        out.append(pa.table({name: pa.array(values).cast(SCHEMA.field(name).type) for name, values in table.items()}))
    return out


def closed(tables: list[pa.Table]) -> list[pa.Table]:
    """Tables of which the last has one row more, an hour later, which ends all windows and is shown in none."""
    at = START + 3_600 * SECOND
    row = pa.Table.from_pylist([{"k": "end", "ts": at, "v": 0, "at": at}], SCHEMA)
    return [*tables[:-1], pa.concat_tables([tables[-1], row])]


def sessions(spark: SparkSession, folder: Path) -> DataFrame:
    """Sessions with early, late and retracted panes of each key."""
    flow = uc.flow(read_stream(spark, folder, SCHEMA), watermark=LAG, processing_time="at")
    trigger = uc.AfterWatermark(early=uc.AfterCount(3), late=uc.AfterCount(1))
    windows = flow.window(uc.Sessions("4 seconds"), trigger, "retracting", allowed_lateness="1 minute")
    return windows.combine(by="k", n=uc.Count(), total=uc.Sum("v"), best=uc.Max("v")).df


def two_stages(spark: SparkSession, folder: Path) -> DataFrame:
    """Minutes of each key, and how many of them are large: each pane of a minute can move it to the other group."""
    trigger = uc.AfterWatermark(early=uc.AfterCount(3), late=uc.AfterCount(1))
    options: dict[str, Any] = {"trigger": trigger, "mode": "retracting", "allowed_lateness": "1 day"}
    flow = uc.flow(read_stream(spark, folder, SCHEMA), watermark=LAG)
    minutes = flow.window(uc.Fixed("1 minute"), **options).combine(by="k", n=uc.Count(), total=uc.Sum("v"))
    grouped = minutes.with_columns(large=uc.col("total") > LARGE).window(uc.Fixed("5 minutes"), **options)
    return grouped.combine(by="large", minutes=uc.Count(), rows=uc.Sum("n"), most=uc.Max("total")).df


def live(spark: SparkSession, folder: Path) -> uc.Flow:
    """The groups of `two_stages`, each shown again in every batch that changes it, so that a table has them."""
    trigger = uc.AfterWatermark(early=uc.AfterCount(1), late=uc.AfterCount(1))
    options: dict[str, Any] = {"trigger": trigger, "mode": "retracting", "allowed_lateness": "1 day"}
    flow = uc.flow(read_stream(spark, folder, SCHEMA), watermark=LAG)
    minutes = flow.window(uc.Fixed("1 minute"), **options).combine(by="k", n=uc.Count(), total=uc.Sum("v"))
    grouped = minutes.with_columns(large=uc.col("total") > LARGE).window(uc.Fixed("5 minutes"), **options)
    return grouped.combine(by="large", minutes=uc.Count(), rows=uc.Sum("n"), most=uc.Max("total"))


def joined(spark: SparkSession, folder: Path) -> DataFrame:
    """Even values with the odd ones of their key up to five seconds later, and how many of them each minute has."""

    def rest(n: int) -> uc.Flow:
        flow = uc.flow(read_stream(spark, folder, SCHEMA), watermark=LAG, name=("even", "odd")[n])
        return flow.where(lambda rows: pc.equal(pc.bit_wise_and(rows["v"], 1), n)).select("k", "ts", "v")

    pairs = rest(0).join(rest(1), on="k", how="left", within=("0 s", "5 s"), allowed_lateness="10 minutes")
    trigger = uc.AfterWatermark(early=uc.AfterCount(3), late=uc.AfterCount(1))
    windows = pairs.window(uc.Fixed("1 minute"), trigger, mode="retracting")
    return windows.combine(by="k", pairs=uc.Count("v_right"), alone=uc.CountIf(uc.col("v_right").is_null())).df


PIPELINES: dict[str, Callable[[SparkSession, Path], DataFrame]] = {
    "sessions": sessions,
    "two_stages": two_stages,
    "joined": joined,
}
RESULTS = ["large", "start", "minutes", "rows", "most"]


def recomputed(tables: list[pa.Table]) -> list[tuple[Any, ...]]:
    """The results of `two_stages`, by pandas, from all rows at once."""
    rows = pa.concat_tables(tables).to_pandas()
    rows = rows[rows["k"] != "end"]
    minutes = rows.groupby(["k", rows["ts"].dt.floor("1min")])["v"].agg(n="size", total="sum").reset_index()
    minutes = minutes.assign(large=minutes["total"] > LARGE, start=minutes["ts"].dt.floor("5min"))
    groups = minutes.groupby(["large", "start"])
    found = groups.agg(minutes=("k", "size"), rows=("n", "sum"), most=("total", "max")).reset_index()
    return sorted(found[RESULTS].itertuples(index=False, name=None))


def left_over(panes: pa.Table) -> list[tuple[Any, ...]]:
    """The results of `two_stages` that were shown and not retracted, each as often as it is left."""
    start = pc.struct_field(panes["window"], "start").cast(pa.timestamp("us", "UTC"))  # Parquet has no zone
    rows: pd.DataFrame = panes.drop_columns(["pane", "window"]).append_column("start", start).to_pandas()
    left = rows.groupby(RESULTS)["diff"].sum()
    assert (left >= 0).all()
    return sorted(row for row, weight in left.items() for _ in range(weight))


def rejoined(tables: list[pa.Table]) -> dict[tuple[Any, ...], int]:
    """The results of `joined`, by pandas, from all rows at once."""
    rows = pa.concat_tables(tables).to_pandas()
    rows = rows[rows["k"] != "end"].reset_index(names="place")
    left, right = rows[rows["v"] % 2 == 0], rows[rows["v"] % 2 == 1]
    both = left.merge(right, on="k", suffixes=("", "_right"))
    near = both[(both["ts_right"] - both["ts"]).between(pd.Timedelta(0), pd.Timedelta("5s"))]
    alone = left[~left["place"].isin(near["place"])].assign(pairs=0, alone=1)
    parts = [near.assign(pairs=1, alone=0, ts=near[["ts", "ts_right"]].max(axis=1)), alone]
    found = pd.concat([part[["k", "ts", "pairs", "alone"]] for part in parts])
    sums = found.groupby(["k", found["ts"].dt.floor("1min")]).sum(numeric_only=True).reset_index()
    return dict.fromkeys(sums[["k", "ts", "pairs", "alone"]].itertuples(index=False, name=None), 1)


def left_of_join(panes: pa.Table) -> dict[tuple[Any, ...], int]:
    """The results of `joined` that were shown and not retracted, each as often as it is left."""
    start = pc.struct_field(panes["window"], "start").cast(pa.timestamp("us", "UTC"))  # Parquet has no zone
    rows: pd.DataFrame = panes.drop_columns(["pane", "window"]).append_column("ts", start).to_pandas()
    left = rows.groupby(["k", "ts", "pairs", "alone"])["diff"].sum()
    return {row: int(weight) for row, weight in left.items() if weight}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs=3, type=Path, help="of files, of the checkpoint and sink, and the result")
    parser.add_argument("--pipeline", choices=PIPELINES, default="sessions")
    parser.add_argument("--live", help="the table of `live`, as a URL")
    parser.add_argument("--set", action="append", default=[], help="a setting of Spark, as name=value")
    given = parser.parse_args()
    files, out, result = given.folders
    settings = {"spark.driver.memory": "700m"} | dict(each.split("=", 1) for each in given.set)
    spark = uc.session("killed", cores=2, settings=settings)
    if given.live is not None:
        flow, checkpoint = live(spark, files), str(out / "checkpoint")
        flow.to_table(given.live, checkpoint=checkpoint, trigger={"availableNow": True}).awaitTermination()
        spark.stop()
        return
    started(PIPELINES[given.pipeline](spark, files), out).awaitTermination()
    pq.write_table(spark.read.parquet(str(out / "panes")).toArrow(), result)
    spark.stop()


if __name__ == "__main__":
    main()
