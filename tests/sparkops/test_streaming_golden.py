"""The published results of the Dataflow model's example through a streaming query, a micro-batch to an entry.

All cases are flows of one query, since a query costs much more than a flow: each micro-batch takes one file of each.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from golden import Case, cases, seen
from opened import run_script
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from streams import MARK, NOW, ORIGIN, in_order, punctuated, timed, together

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.windows import timestamp

SCHEMA = pa.schema({"value": pa.int64(), "event_time": pa.timestamp("us", "UTC")})
FIRST = timestamp("2016-01-20T12:00:00Z")
MARKED = uc.Punctuated(MARK, source=ORIGIN)
SOME = ("allowed_lateness", "sessions_retracting", "global_each_minute_discarding")
"""A part of the cases that has each mode, each kind of window and of trigger, and rows that are dropped."""


def streamed() -> dict[str, Case]:
    """The cases of an input that does not end and of which rows tell the watermark."""
    return {case.name: case for case in cases() if not case.final_only and "watermark" not in case.options}


def entries(case: Case) -> list[Any]:
    """The script without moves of the clock that the next entry makes too."""
    script = timed(case.script, FIRST)
    return [entry for entry in script[:-1] if not isinstance(entry, uc.Clock)] + script[-1:]


def flow(case: Case, df: DataFrame) -> Any:
    options = dict(case.options)
    by, time = options.pop("by"), options.pop("time")
    windowed = uc.flow(df, time=time, watermark=MARKED, processing_time=NOW, tuning=uc.Tuning(shards=1)).window(
        **options
    )
    return windowed.combine(by=by, sum=uc.Sum("value"))


def run(spark: SparkSession, chosen: list[Case], folder: Path) -> dict[str, pa.Table]:
    """The panes of some cases, each with the batch it came from."""
    flows = {case.name: (punctuated(entries(case), SCHEMA), partial(flow, case)) for case in chosen}
    return together(spark, flows, folder)


def check(case: Case, got: pa.Table) -> None:
    published = [dict(pane) for pane in case.panes]
    ours = seen(case, got, None)
    for pane, other in zip(published, ours, strict=True):
        if "timing" not in pane:
            other.pop("timing", None)
    assert ours == published
    want = run_script(entries(case), schema=SCHEMA, sum=uc.Sum("value"), **case.options)
    assert in_order(got) == in_order(want)


@pytest.mark.full
def test_published_panes(spark: SparkSession, tmp_path: Path) -> None:
    chosen = [streamed()[name] for name in SOME]
    got = run(spark, chosen, tmp_path)
    for case in chosen:
        check(case, got[case.name])


@pytest.mark.soak
def test_published_panes_of_all_cases(spark: SparkSession, tmp_path: Path) -> None:
    chosen = list(streamed().values())
    assert len(chosen) == 15
    got = run(spark, chosen, tmp_path)
    for case in chosen:
        check(case, got[case.name])


def test_a_stream_refuses_what_only_an_end_of_the_input_could_fire(spark: SparkSession) -> None:
    """The published batch over all of time is none of a stream."""
    case = next(case for case in cases() if case.name == "batch_global")
    df = spark.readStream.format("rate").load().selectExpr("value", "timestamp AS event_time")
    df = df.withColumn(MARK, F.col("event_time")).withColumn(NOW, F.col("event_time")).withColumn(ORIGIN, F.lit("a"))
    with pytest.raises(InvalidArgument, match="can never fire on Global"):
        flow(case, df)
