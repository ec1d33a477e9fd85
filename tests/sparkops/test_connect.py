"""Everything through a Spark Connect server, where there is no JVM to reach into."""

from __future__ import annotations

import ast
import json
import pickle
import random
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from bounded import bounded_flow, cut, rows, same
from changes import debezium_keyed, history, net, weighted
from programs import program

import uncombine as uc
from uncombine.sparkops.stored.column_expressions import EXPRESSIONS
from uncombine.sparkops.tables.live_table import FarBatches
from uncombine.sparkops.tables.table_start import TableStart
from uncombine.tables import Layout, target_of

ROOT = Path(__file__).resolve().parents[2]
CLASSIC = {"_jvm", "_jdf", "_jsc", "_jsparkSession", "_sc", "sparkContext", "_jc", "rdd"}
"""An attribute that only a session beside its JVM has."""


def plain(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.spark
@pytest.mark.full
def test_flows_through_a_connect_server(tmp_path: Path) -> None:
    table = rows()
    pq.write_table(table, tmp_path / "rows.parquet")
    events = history(random.Random(1), 30)
    pq.write_table(debezium_keyed(events), tmp_path / "changes.parquet")
    stream = pa.table({"ts": pa.array([0, 1, None, 180], pa.timestamp("s", "UTC")), "k": ["a", "a", "a", "b"]})
    (tmp_path / "stream").mkdir()
    pq.write_table(stream, tmp_path / "stream" / "1.parquet")
    (tmp_path / "stream" / "2.parquet").write_bytes(b"no Parquet")
    command = [sys.executable, program("connect"), str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr[-4000:]
    # Four rows, one of them without a time: the window of "a" is complete, and that of "b" still held.
    mark = str(datetime(1970, 1, 1, 0, 2, 59, tzinfo=UTC))
    said = json.loads(ran.stdout.splitlines()[-1])
    if EXPRESSIONS:
        assert said == [0, 1, [[4, 1, 1, 0, 1, mark], [1, 0, 0, 0, 1, mark]], [True, True]]
    else:  # as in Spark 4.0
        assert said.startswith("a streaming flow in a session of Spark Connect needs Spark 4.1: run it in a session ")
    results: dict[str, Any] = {"n": uc.Count(), "mid": uc.Median("x")}
    parts = cut(table, 3, 1)
    flow, fixed = bounded_flow(parts, "ts"), uc.Fixed("1 hour")
    sessions = flow.window(uc.Sessions("1 minute")).combine(by="k", **results)
    played = bounded_flow(parts, "ts", "1 minute", processing_time="at", replay=True, close_at_end=True)
    want = {
        "final": sessions.window(fixed).combine(sessions=uc.Count(), rows=uc.Sum("n")).map(same),
        "lowered": flow.window(fixed).combine(by="k", n=uc.Count(), hi=uc.Max("x")).map(same),
        "files": flow.window(fixed).combine(by="k", **results).map(same),
        "replay": played.where(uc.col("x") > 1).window(uc.Fixed("1 minute"), mode="retracting").combine(**results),
    }
    for name, expected in want.items():
        assert plain(pq.read_table(tmp_path / f"{name}.parquet")) == plain(expected.df.toArrow())
    left_over = uc.flow(weighted(events), diff="diff")
    by_minute = left_over.window(uc.Fixed("1 minute")).combine(by="k", n=uc.Count(), x=uc.Sum("x"))
    assert net(pq.read_table(tmp_path / "changed.parquet")) == net(by_minute.run().panes)
    assert net(pq.read_table(tmp_path / "handed on.parquet")) == net(weighted(events))
    by_key = pq.read_table(tmp_path / "key.parquet")
    assert plain(by_key) == plain(uc.aggregate(table, by="k", **results))
    assert pc.sum(by_key["n"]).as_py() == table.num_rows
    frame = table.select(["k", "ts", "x"]).to_pandas()
    later, whole = pq.read_table(tmp_path / "later.parquet").to_pylist(), frame.groupby("k", dropna=False)["x"].median()
    assert later
    for of in later:
        same_key = frame["k"].isna() if of["k"] is None else frame["k"] == of["k"]
        assert of["mid"] == frame[same_key & (frame["ts"].dt.hour > 0)]["x"].median()
    if not EXPRESSIONS:
        return
    for of in pq.read_table(tmp_path / "rolling.parquet").to_pylist():
        same_key = frame["k"].isna() if of["k"] is None else frame["k"] == of["k"]
        assert of["mid"] == frame[same_key & (frame["ts"].dt.hour <= of["hour"])]["x"].median()
    twice = sorted(map(str, pq.read_table(tmp_path / "plain.parquet").to_pylist()))
    by_pandas = [{"k": None if key != key else key, "mid": middle} for key, middle in whole.items()]
    assert twice == sorted(map(str, 2 * by_pandas))


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.skipif(not EXPRESSIONS, reason="streams through Spark Connect need Spark 4.1")
@pytest.mark.parametrize("url", ["duckdb:///{}/a.db#t", "delta:{}/t"])
def test_a_live_table_through_a_connect_server(
    url: str, tmp_path: Path, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    table = rows()
    (tmp_path / "in").mkdir()
    half = table.num_rows // 2
    pq.write_table(table.slice(0, half), tmp_path / "in" / "1.parquet")
    pq.write_table(table.slice(half), tmp_path / "2.parquet")
    command = [sys.executable, program("connect"), str(tmp_path), url.format(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert ran.returncode == 0, ran.stderr[-4000:]
    keys = [len(set(part["k"].to_pylist())) for part in (table.slice(0, half), table)]
    *said, deleted = [line for line in ran.stdout.splitlines() if line.replace(" ", "").isdigit()]
    assert deleted.endswith(f" {keys[1] - 1}")
    assert said == [f"{half} {keys[0]}", f"{table.num_rows} {keys[1]}", f"{table.num_rows + half} {keys[1]}"]


def test_batches_travel_to_a_connect_server(tmp_path: Path) -> None:
    place = target_of("postgresql://me:hush@host/db#t")
    layout = Layout(pa.schema({"k": pa.int64()}), ("k",))
    start = TableStart(place, layout, None)
    assert pickle.loads(pickle.dumps(FarBatches(start, "c"))).table.place == place


def far(row: dict[str, Any]) -> dict[str, Any]:
    """A row in the progress that a server sends."""
    values = [far(value) if isinstance(value, dict) else value for value in row.values()]
    return {"values": values, "schema": {"type": "struct", "fields": [{"name": name} for name in row]}}


def test_the_progress_that_a_server_sends_has_the_numbers() -> None:
    metrics = {"uncombine a 1": {"counts": {"rows_in": 7, "panes_late": 2, "watermark": 60_000_000}}}
    metrics |= {"uncombine a files": {"files_skipped": 3}, "another": {"counts": 1}}
    about = {"batchId": 4, "durationMs": {"triggerExecution": 1_500}}
    near = uc.progress(about | {"observedMetrics": metrics})
    assert uc.progress(about | {"observedMetrics": {name: far(row) for name, row in metrics.items()}}) == near
    assert near is not None
    assert str(near).startswith("batch 4, 1.5 s, 3 files skipped: 7 rows in, 2 panes (2 late), ")


def reached_into(source: str) -> set[str]:
    """The names of a module that belong to a session beside its JVM."""
    return {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)} & CLASSIC


def test_nothing_reaches_into_the_jvm() -> None:
    modules = sorted((ROOT / "sparkops").rglob("*.py"))
    assert {str(module): found for module in modules if (found := reached_into(module.read_text()))} == {}


def test_reaching_into_the_jvm_is_seen() -> None:
    assert reached_into("df.sparkSession._jvm.org\nspark.sparkContext.parallelize([])") == {"_jvm", "sparkContext"}
