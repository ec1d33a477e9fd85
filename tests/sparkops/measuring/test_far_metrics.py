"""The metrics of a query through Spark Connect, in a program that ends by itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from programs import program

from uncombine.sparkops.stored.column_expressions import EXPRESSIONS


@pytest.mark.spark
@pytest.mark.full
@pytest.mark.skipif(not EXPRESSIONS, reason="streams through Spark Connect need Spark 4.1")
def test_metrics_through_spark_connect(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    rows = pa.table({"ts": pa.array([0, 30, None, 400], pa.timestamp("s", "UTC")), "k": ["a", "a", "b", "b"]})
    pq.write_table(rows, tmp_path / "in" / "1.parquet")
    command = [sys.executable, program("far_metrics"), str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert ran.returncode == 0, ran.stderr[-4000:]
    points, spans = json.loads(ran.stdout.splitlines()[-1])
    numbers = {(name, *values): number for name, values, number in points}
    stage = ("far", "flow", "1")
    assert numbers["uncombine.rows.in", *stage] == 4
    assert numbers["uncombine.rows.left_out", *stage, "bad"] == 1
    assert numbers["uncombine.panes.shown", *stage, "Repeatedly(AfterWatermark())", "on_time"] == 1
    assert [numbers[f"uncombine.{name}.timestamp", *stage] for name in ("watermark", "latest")] == [340, 400]
    assert (numbers["uncombine.query.running", "far"], numbers["uncombine.query.failures", "far"], spans) == (0, 0, 1)
