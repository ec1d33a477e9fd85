"""A cluster of two executors on this machine: executors that die, and tasks that run twice."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apps import App, kill, running
from killed_app import batches, closed, left_over, recomputed
from streams import written

BATCHES = 16
CLUSTER = ("--pipeline", "two_stages", "--set", "spark.master=local-cluster[2,1,1200]")
TWICE = {
    "spark.speculation": "true",
    "spark.speculation.interval": "10ms",
    "spark.speculation.minTaskRuntime": "10ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
}
"""Settings under which the second of two tasks is soon started once more."""


def killed_executors(app: App, seed: int, kills: int) -> int:
    """How many executors were killed while the query went on, each at a moment of its own."""
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


def on_cluster(folder: Path, *settings: str, kills: int = 0, seed: int = 0) -> tuple[pa.Table, list[pa.Table]]:
    """The rows of the sink of `two_stages` on a cluster, and the rows of its source."""
    tables = closed(batches(seed, BATCHES))
    files = written(tables, folder / "files")
    out, result = folder / "out", folder / "result.parquet"
    out.mkdir()
    with running(out, files, out, result, *CLUSTER, *settings) as app:
        assert killed_executors(app, seed, kills) == kills, app.said()
        app.process.wait()
        assert app.process.returncode == 0, app.said()
    return pq.read_table(result), tables


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2))
def test_four_executors_killed(tmp_path: Path, seed: int) -> None:
    panes, tables = on_cluster(tmp_path, kills=4, seed=seed)
    assert left_over(panes) == recomputed(tables)


@pytest.mark.soak
def test_tasks_that_run_twice(tmp_path: Path) -> None:
    settings = [part for name, value in TWICE.items() for part in ("--set", f"{name}={value}")]
    panes, tables = on_cluster(tmp_path, *settings)
    assert left_over(panes) == recomputed(tables)
