"""Flows over a stream of files that share steps, for real queries."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
from differing import cut_at_random
from pyspark.sql import SparkSession
from row_steps import SCHEMA
from streams import read_stream, written
from together_flows import tables_together

import uncombine as uc
from uncombine.flows.flow import Flow


def files(spark: SparkSession, folder: Path, batches: list[pa.Table]) -> Flow:
    df = read_stream(spark, written(batches, folder), SCHEMA)
    return uc.flow(df, watermark="1 minute", processing_time="seen", tuning=uc.Tuning(shards=2))


def tree(rows: Flow) -> dict[str, Flow]:
    """Four flows with three steps: two results of one, a step after it, and another over the same rows."""
    minutes = rows.window("1 minute", "each row", "retracting", allowed_lateness="1 hour")
    totals = minutes.combine(by="k", n=uc.Count(), total=uc.Sum("x"))
    return {
        "totals": totals,
        "high": totals.where(uc.col("total") > 30),
        "best": totals.window("10 minutes", "each row", "retracting").combine(best=uc.Max("total"), keys=uc.Count()),
        "most": rows.window("5 minutes", "each row", "retracting").combine(most=uc.Max("x")),
    }


def batches_of(seed: int) -> list[pa.Table]:
    _, tables = tables_together(seed)
    r = random.Random(seed)
    table = next(iter(tables.values()))
    return [one["rows"] for one in cut_at_random({"rows": table}, r, 3)]
