"""Cases over Parquet files: as a DataFrame that Spark reads, as one whose files the tasks read, and as files."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from bounded import cut
from opened import opened
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streams import changed

import uncombine as uc
from uncombine.flows.flow import Flow

from .case import NOW, SCHEMA, Case, grouped
from .draw import table
from .ways import Found, rows_of

SPARK = "rows that Spark reads"

AWAY = 9
"""The weight of rows that a condition leaves out before the flow, so that they do not even report a watermark."""


def written(case: Case, folder: Path) -> str:
    """The rows of a case in files of several row groups, beside rows that the condition leaves out."""
    folder.mkdir(parents=True)
    rows = table(case.bundles)
    away = rows.set_column(SCHEMA.get_field_index("d"), "d", pa.repeat(pa.scalar(AWAY, pa.int64()), rows.num_rows))
    parts = [pa.concat_tables([rows, away])] if case.in_order else cut(pa.concat_tables([away, rows]), 3, case.seed)
    for i, part in enumerate([*parts, SCHEMA.empty_table()]):
        stored = part.rename_columns([_stored(case, name) for name in part.column_names])
        pq.write_table(stored, folder / f"{i}.parquet", row_group_size=4)
    return str(folder)


def renames(case: Case) -> bool:
    """True for half of the cases, whose files have the names of two columns the other way round."""
    return case.seed % 2 == 1


def _stored(case: Case, name: str) -> str:
    return {"x": "j", "j": "x"}.get(name, name) if renames(case) else name


def flows(case: Case, kind: str, spark: SparkSession, path: str) -> dict[str, Flow]:
    """The flow of a case over the files, in each way to read them: a "replay", or in a "batch"."""
    frame = spark.read.parquet(path)
    frame = frame.where(F.col("d") < AWAY).select(*(F.col(_stored(case, n)).alias(n) for n in reversed(SCHEMA.names)))
    settings: dict[str, Any] = {"diff": case.settings["diff"], "shards": case.shards}
    if kind == "replay":
        settings |= {"watermark": case.strategy, "processing_time": NOW, "replay": True, "close_at_end": case.ends}
    sources = {SPARK: opened(frame, files="never", native="never", **settings)}
    sources["a DataFrame's files"] = opened(frame, native="never", **settings)
    if not renames(case):
        sources["files"] = opened(path, spark=spark, filter=uc.col("d") < AWAY, **settings)
    return {name: grouped(source, case.stages) for name, source in sources.items()}


def scanned(made: dict[str, Flow], spark: SparkSession) -> dict[str, Found]:
    """The results of all ways, in one job of Spark."""
    with changed(spark):
        frames = [flow.df.withColumn("way", F.lit(name)) for name, flow in made.items()]
        rows = reduce(DataFrame.unionByName, frames).toArrow()
    return {name: Found(rows_of(rows.filter(pc.equal(rows["way"], name)).drop_columns(["way"]))) for name in made}


__all__ = ["SPARK", "flows", "scanned", "written"]
