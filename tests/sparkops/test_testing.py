"""The law kit of flows on Spark: the same scripts, replayed."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import uncombine as uc
from uncombine.errors import FlowViolation
from uncombine.sparkops import source as sources_on_spark
from uncombine.testing import check_flow, check_script

TIME = pa.timestamp("us", "UTC")
ROWS = pa.schema({"ts": TIME, "seen": TIME, "k": pa.string(), "x": pa.int64(), "w": pa.int64()})


def source(**options: Any) -> uc.Flow:
    return uc.flow(ROWS, watermark="1 minute", processing_time="seen", diff="w", **options)


def sums(flow: uc.Flow) -> uc.Flow:
    early = uc.AfterWatermark(early=uc.AfterCount(2), late=uc.AfterCount(1))
    minutes = flow.window(uc.Fixed("1 minute"), early, mode="retracting", allowed_lateness="1 minute")
    return minutes.combine(by="k", x=uc.Sum("x"))


def minutes(rows: pd.DataFrame) -> pd.Series:
    start = rows.ts.dt.floor("1min").rename("window.start")
    return rows.groupby(["k", start], dropna=False).x.sum(min_count=1)


def test_scripts_are_replayed_on_spark(spark: SparkSession) -> None:
    both = sums(uc.union(left=source(), right=source()))
    check_flow(both, lambda frames: minutes(pd.concat(frames.values())), spark=spark, examples=8, replays=1)


def test_other_rows_on_spark_are_a_violation(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The replay here is a run in this process that loses the last row."""

    def lossy(session: Any, flow: uc.Flow, script: Any) -> pa.Table:
        assert session is spark
        return flow.run([*script, uc.Watermark(None)]).panes.slice(1).drop_columns(["step"])

    monkeypatch.setattr(sources_on_spark, "replayed", lossy)
    with pytest.raises(FlowViolation, match="a replay on Spark gives other rows than a run in this process") as found:
        check_flow(sums(source()), minutes, spark=spark, examples=20)
    assert sum(len(entry.rows) for entry in found.value.script if isinstance(entry, uc.Elements)) <= 2
    module: dict[str, Any] = {"flow": sums(source()), "expected": minutes}
    exec(found.value.test, module)
    with pytest.raises(FlowViolation, match="a replay on Spark"):
        module["test_flow"](spark)
    with pytest.raises(FlowViolation, match="only in this process"):
        check_script(found.value.script, sums(source()), minutes, spark=spark)
