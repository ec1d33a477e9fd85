"""A cluster of two executors on this machine: executors that die, and tasks that run twice."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apps import App, kill, running, two_hosts
from programs import program
from programs.killed import batches, closed, left_over, recomputed
from streams import written

BATCHES = 16
SOAK = pytest.mark.soak
TWICE = {
    "spark.speculation": "true",
    "spark.speculation.efficiency.enabled": "false",
    "spark.speculation.interval": "10ms",
    "spark.speculation.minTaskRuntime": "10ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
}
"""Settings under which the second of two tasks is soon started once more."""


def killed_executors(app: App, seed: int, kills: int) -> int:
    """The number of executors that were killed while the query went on, one at a time."""
    r = random.Random(seed)
    done = 0
    for i in range(kills):
        batch = 1 + i * (BATCHES - 2) // kills
        if not app.wait_for(batch, r.choice(["offsets", "state", "commits"])) or not app.wait(r.random()):
            break
        while not (found := app.executors()):
            if not app.wait(0.05):
                return done
        kill(r.choice(found))
        done += 1
    return done


def on_cluster(folder: Path, settings: Mapping[str, str], kills: int = 0) -> tuple[pa.Table, list[pa.Table]]:
    """The rows of the sink of `two_stages` on a cluster, and the rows of its source."""
    seed = 0
    tables = closed(batches(seed, BATCHES))
    files = written(tables, folder / "files")
    out, result = folder / "out", folder / "result.parquet"
    out.mkdir()
    given = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    with running(out, files, out, result, "--pipeline", "two_stages", *given) as app:
        assert killed_executors(app, seed, kills) == kills, app.said()
        app.process.wait()
        assert app.process.returncode == 0, app.said()
    return pq.read_table(result), tables


@pytest.mark.spark
@pytest.mark.soak
def test_four_executors_killed(tmp_path: Path) -> None:
    panes, tables = on_cluster(tmp_path, {"spark.master": "local-cluster[2,1,1200]"}, kills=4)
    assert left_over(panes) == recomputed(tables)


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.parametrize("kind", ["stream", pytest.param("batch", marks=SOAK), pytest.param("replay", marks=SOAK)])
def test_an_executor_killed_among_shards_that_are_done(kind: str, tmp_path: Path) -> None:
    """Its tasks that read run again. If they gave other rows, Spark would fail the job, since some shards are done."""
    rng = np.random.default_rng(1)
    files, out = tmp_path / "files", tmp_path / "out"
    (out / "marks").mkdir(parents=True)
    times = pa.array(np.sort(rng.integers(0, 3_600_000_000, 300_000))).cast(pa.timestamp("us", "UTC"))
    came = pa.array(np.full(300_000, 3_600_000_000)).cast(times.type)
    rows = pa.table({"ts": times, "at": came, "k": rng.integers(0, 50, 300_000), "x": rng.normal(size=300_000)})
    later = pa.array([2 * 3_600_000_000]).cast(times.type)
    end = pa.table({"ts": later, "at": later, "k": [-1], "x": [0.0]})
    written([*(rows.slice(i * 100_000, 100_000) for i in range(3)), end], files)
    with running(out, kind, files, out, script=program("losing")) as app:
        while len(list((out / "marks").iterdir())) < 3:
            assert app.wait(0.02), app.said()
        kill(app.executors()[0])
        app.process.wait()
        assert app.process.returncode == 0, app.said()
        assert "Lost executor" in app.said()  # while the application was at work
    want = rows.to_pandas().groupby("k")["x"].agg(middle="median", total="sum")
    got = pq.read_table(out / "result.parquet").to_pandas().query("k >= 0").set_index("k").sort_index()
    assert len(got) == len(want)
    assert np.allclose(got[want.columns], want, rtol=1e-9, atol=1e-9)


@pytest.mark.spark
@pytest.mark.soak
def test_tasks_that_run_twice(tmp_path: Path) -> None:
    """A second attempt runs on another host only, and only while the first goes on."""
    with two_hosts(tmp_path) as master:
        panes, tables = on_cluster(tmp_path, {"spark.master": master, **TWICE})
    assert left_over(panes) == recomputed(tables)
    logs = [log.read_text() for log in (tmp_path / "work").glob("*/*/stderr")]
    assert len(logs) == 2
    assert sum(len(re.findall(r"Running task \d+\.1 in stage", log)) for log in logs) > 5
