"""Polars, lazily from the files."""

from __future__ import annotations

import os

os.environ["POLARS_MAX_THREADS"] = "2"

import polars as pl
from contender import GAP, MINUTE, Task, serve

from tables import facts

SUMS = pl.col("v").sum().alias("s"), pl.len().alias("c")


def windows(folder: str) -> pl.DataFrame:
    minute = pl.col("ts").dt.truncate(f"{MINUTE}us").alias("start")
    return (
        pl.scan_parquet(f"{folder}/*.parquet").group_by("k", minute).agg(*SUMS).collect(engine="streaming")
    )  # its faster one here


def sessions(folder: str) -> pl.DataFrame:
    rows = pl.scan_parquet(f"{folder}/*.parquet").select("k", "ts", "v").sort("k", "ts")
    pause = pl.col("ts").diff() >= pl.duration(microseconds=GAP)
    begins = (pl.col("k") != pl.col("k").shift()).fill_null(True) | pause.fill_null(True)
    numbered = rows.with_columns(begins.cum_sum().alias("n"))
    spans = pl.col("k").first(), pl.col("ts").min().alias("start"), pl.col("ts").max().alias("last")
    return numbered.group_by("n").agg(*spans, *SUMS).collect()


if __name__ == "__main__":
    serve("polars", {"windows": Task(windows, facts), "sessions": Task(sessions, facts)})
