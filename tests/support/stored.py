"""State that an earlier version of the library stored, and what is needed to go on with it.

`checkpoint_2.zip` holds the checkpoint of a query after its first batches, and the panes that the same query gave for
the batches after them, without a stop. `accumulators_2.zip` holds stored accumulators of two days, and `columns_2.json`
the mark and the type of the stored column of a form of each combiner. Each file has the version of its format in its
name. `write_stored.py` wrote them.
"""

from __future__ import annotations

import json
import os
import random
import re
import zipfile
from functools import reduce
from pathlib import Path
from typing import Any

import every
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import uncombine as uc
from uncombine.sparkops.stored.codec import Maker

HERE = Path(__file__).resolve().parents[1] / "data" / "stored"
CHECKPOINT, ACCUMULATORS = HERE / "checkpoint_2.zip", HERE / "accumulators_2.zip"
COLUMNS = HERE / "columns_2.json"

SECOND = 1_000_000
START = 1_453_291_200 * SECOND  # noon of 2016-01-20
SHARDS = 2
BEFORE, AFTER = 4, 2
"""Batches before the query was stopped, and batches that come after it."""

SCHEMA = pa.schema(
    {
        "user": pa.string(),
        "kind": pa.string(),
        "x": pa.float64(),
        "v": pa.int64(),
        "ts": pa.timestamp("us", "UTC"),
        "at": pa.timestamp("us", "UTC"),
    }
)


def unpacked(archive: Path, folder: Path) -> Path:
    """The folder, with the files of an archive."""
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder)
    return folder


def at_home(checkpoint: Path, rows: Path) -> None:
    """Put the places where files are now into Spark's own logs of the files it has read and of its state's schemas."""
    for log in [*(checkpoint / "sources").glob("*/*"), *(checkpoint / "state").glob("*/_metadata/v2/*")]:
        text = re.sub(r"file:[^\"]*/rows/", f"file://{rows}/", log.read_text())
        log.write_text(re.sub(r"file:[^\"]*/checkpoint/", f"file:{checkpoint}/", text))


def batches() -> list[pa.Table]:
    """Rows of some users, two minutes to a batch, some of them late; the last batch ends all windows."""
    draw = random.Random(11)
    out = []
    for batch in range(BEFORE + AFTER):
        rows = []
        for _ in range(36):
            late = draw.choice([0, 0, 0, 150])
            row = {
                "user": draw.choice(["ann", "ben", "cat", None]),
                "kind": draw.choice("pq"),
                # Sums of these depend on their order in floats, but not where they are exact.
                "x": draw.choice([1e16, -1e16, 0.1, 0.25, 3.0, None]),
                "v": draw.randrange(-5, 12),
                "ts": START + (120 * batch + draw.randrange(120) - late) * SECOND,
                "at": START + (120 * batch + 60) * SECOND,
            }
            rows.append(row)
        out.append(pa.Table.from_pylist(rows, SCHEMA))
    end = START + 86_400 * SECOND
    last = {"user": "end", "kind": "p", "x": 0.0, "v": 0, "ts": end, "at": START + 3_600 * SECOND}
    out[-1] = pa.concat_tables([out[-1], pa.Table.from_pylist([last], SCHEMA)])
    return out


EARLY_AND_LATE = uc.AfterWatermark(early=uc.AfterCount(2), late=uc.AfterCount(1))
LATENESS = "10 minutes"


def minutes(start: Any) -> Any:
    """Panes of windows, retracted, of combiners with states of every shape."""
    return start.window(uc.Fixed("1 minute"), EARLY_AND_LATE, "retracting", allowed_lateness=LATENESS).combine(
        by=("user", "kind"),
        n=uc.Count(),
        total=uc.Sum("x", exact=True),
        whole=uc.Sum("v"),
        mean=uc.Mean("x", exact=True),
        fast=uc.Mean("v"),
        median=uc.Median("v"),
        different=uc.CountDistinct("v"),
        about=uc.ApproxCountDistinct("v"),
        top=uc.TopK("v", 3),
        first=uc.First("v", "ts"),
        shares=uc.PerKey(uc.Count(), by="v"),
        often=uc.HeavyHitters("v", 2),
        share=uc.Sum("v").where(uc.col("v") > 3) / uc.Count(),
    )


def visits(start: Any) -> Any:
    """Two groupings: sessions over the changelog of windows."""
    counted = start.window(uc.Fixed("1 minute"), EARLY_AND_LATE, "retracting", allowed_lateness=LATENESS).combine(
        by="user", n=uc.Count(), total=uc.Sum("x", exact=True)
    )
    return counted.window(uc.Sessions("70 seconds"), EARLY_AND_LATE, "retracting", allowed_lateness=LATENESS).combine(
        by="user",
        minutes=uc.Count(),
        rows=uc.Sum("n"),
        total=uc.Sum("total", exact=True),
        most=uc.Max("n"),
        mean=uc.Mean("n"),
    )


def waiting(start: Any) -> Any:
    """Sessions of rows, with a trigger that counts and waits in processing time."""
    steps = uc.SequenceOf(uc.AfterCount(2), uc.AfterDelay("3 minutes"))
    trigger = uc.Repeatedly(uc.FirstOf(steps, uc.AtPeriod("10 minutes")))
    return start.window(uc.Sessions("40 seconds"), trigger, "accumulating", allowed_lateness=LATENESS).combine(
        by="user", n=uc.Count(), least=uc.Min("v"), all=uc.CollectSet("v")
    )


FLOWS = {"minutes": minutes, "visits": visits, "waiting": waiting}


def write_batches(tables: list[pa.Table], folder: Path, first: int) -> None:
    """Files in which the query finds the batches, one each, in their order."""
    folder.mkdir(parents=True)
    for i, table in enumerate(tables, first):
        path = folder / f"{i:05d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_000_000_000 + i, 1_000_000_000 + i))


def panes(spark: SparkSession, folder: Path, checkpoint: Path) -> list[str]:
    """The panes of all flows over the files of a folder, as lines of JSON in an order of their own."""
    found: list[str] = []
    frames = []
    for name, build in FLOWS.items():
        start = uc.flow(
            uc.Files(str(folder), format="parquet", schema=SCHEMA, max_files_per_batch=1),
            spark=spark,
            watermark="20 seconds",
            processing_time="at",
            streaming=True,
            tuning=uc.Tuning(shards=SHARDS),
        )
        as_micros = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS", "ignoreNullFields": "false"}
        frames.append(
            build(start).df.select(F.lit(name).alias("flow"), F.to_json(F.struct("*"), as_micros).alias("row"))
        )

    def keep(frame: DataFrame, batch: int) -> None:
        lines = [f'{{"batch":{batch},"flow":"{row.flow}","row":{row.row}}}' for row in frame.collect()]
        found.extend(sorted(lines))

    writer = reduce(DataFrame.union, frames).writeStream.foreachBatch(keep)
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", str(SHARDS))
    try:
        writer.start().awaitTermination()
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    return found


def column_of(combiner: uc.Combiner) -> list[Any]:
    """The mark of the stored accumulators of a combiner, and the type of their column."""
    made_by = Maker(combiner.bind(every.rows(1, 0).schema))
    return [made_by.mark, str(made_by.type)]


def unstored() -> list[uc.Combiner]:
    """The forms of combiners of which no column is stored, whatever the types of its inputs."""
    known = {_form(name) for name in json.loads(COLUMNS.read_text())}
    return [combiner for combiner in every.ONE_OF_EACH.values() if _form(repr(combiner)) not in known]


def _form(name: str) -> str:
    """The repr of a combiner without the types in the names of its columns."""
    return re.sub(rf"'([xyk])_(?:{'|'.join(every.KINDS)})'", r"'\1'", name)


COMBINERS: dict[str, uc.Combiner] = {
    "n": uc.Count(),
    "total": uc.Sum("x", exact=True),
    "whole": uc.Sum("v"),
    "mean": uc.Mean("x", exact=True),
    "fast": uc.Mean("v"),
    "spread": uc.Variance("v"),
    "median": uc.Median("v"),
    "most": uc.Max("v"),
    "different": uc.CountDistinct("v"),
    "about": uc.ApproxCountDistinct("v"),
    "top": uc.TopK("v", 3),
    "all": uc.CollectList("v"),
    "best": uc.ArgMax("kind", by="v"),
    "shares": uc.PerKey(uc.Count(), by="kind"),
}
"""The combiners that are accumulated by user."""


def day(number: int) -> pa.Table:
    """The rows of one of the two days."""
    return pa.concat_tables(batches()[:3] if number == 1 else batches()[3:5])
