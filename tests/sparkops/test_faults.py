"""Workers that die and functions that fail: the same result after another attempt, and the user's own line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bounded import bounded_flow, cut, rows, same
from programs import program
from pyspark.sql import SparkSession

import uncombine as uc

MARKERS = ("lift", "merge", "last", "lift of a replay", "replay")


@pytest.mark.full
@pytest.mark.spark
def test_workers_that_die_in_another_zone(tmp_path: Path, python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    table = rows()
    pq.write_table(table, tmp_path / "rows.parquet")
    ran = subprocess.run(
        [sys.executable, program("faulty"), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert sorted(path.name for path in tmp_path.iterdir() if not path.suffix) == sorted(MARKERS)
    results: dict[str, Any] = {"n": uc.Count(), "mid": uc.Median("x"), "total": uc.Sum("x")}
    parts = cut(table, 3, 1)
    final = bounded_flow(parts, "ts").window(uc.Sessions("1 minute")).combine(by="k", **results)
    lengths = final.window(uc.Fixed("1 hour")).combine(sessions=uc.Count(), rows=uc.Sum("n")).map(same)
    played = bounded_flow(parts, "ts", "1 minute", processing_time="at", replay=True, close_at_end=True)
    replay = played.window(uc.Fixed("1 minute"), mode="retracting").combine(by="k", **results)
    for name, flow in (("final", lengths), ("replay", replay)):
        got = pq.read_table(tmp_path / f"{name}.parquet")
        assert got.num_rows > 3
        assert sorted(map(repr, got.to_pylist())) == sorted(map(repr, flow.df.toArrow().to_pylist()))


def test_the_line_of_the_user_is_shown(spark: SparkSession) -> None:
    df = spark.createDataFrame(rows())

    def broken(table: pa.Table) -> pa.Table:
        if table.num_rows:
            raise ValueError("this is the user's")  # the line
        return table

    def windows(times: np.ndarray) -> Any:
        if len(times):
            raise ValueError("this is the user's")  # the line
        return None, times, times

    here = Path(__file__)
    lines = [i for i, text in enumerate(here.read_text().splitlines(), 1) if text.endswith("# the line")]
    flow = uc.flow(df)
    fixed = uc.Fixed("1 minute")
    ways: list[tuple[Callable[[], Any], str, int]] = [
        (lambda: flow.map(broken), "broken", lines[0]),
        (lambda: flow.map(broken).window(fixed).combine(m=uc.Median("x")), "broken", lines[0]),
        (lambda: flow.window(fixed).combine(m=uc.Median("x")).map(broken), "broken", lines[0]),
        (lambda: flow.window(uc.Custom(windows)).combine(m=uc.Median("x")), "windows", lines[1]),
    ]
    for made, name, line in ways:
        with pytest.raises(Exception, match="this is the user's") as told:
            made().df.collect()
        assert f'File "{here}", line {line}, in {name}' in str(told.value)
