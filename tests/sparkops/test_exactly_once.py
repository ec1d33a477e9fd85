"""Applications killed at any moment and started again: the file sink has each row once, as if nothing had happened."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from killed_app import SCHEMA, panes
from pyspark.sql import SparkSession
from streams import START, started, written

APP = Path(__file__).with_name("killed_app.py")
SECOND = 1_000_000
MOMENTS = ("offsets", "state", "sink", "commits", "later")


def batches(seed: int, count: int) -> list[pa.Table]:
    """Rows of some keys that come out of order, a minute to a batch, one in ten a minute late."""
    rng = np.random.default_rng(seed)
    out = []
    for i in range(count):
        size = 300
        ago = np.where(rng.random(size) < 0.1, 60, 0)
        times = START + (i * 60 + rng.integers(0, 70, size) - ago) * SECOND
        table = {
            "k": rng.choice([f"k{n}" for n in range(30)], size),
            "ts": times,
            "v": rng.integers(0, 100, size),
            "at": np.full(size, START + i * 60 * SECOND),
        }
        out.append(pa.table({name: pa.array(values).cast(SCHEMA.field(name).type) for name, values in table.items()}))
    return out


def reached(out: Path, batch: int, moment: str) -> bool:
    """Whether a query has come to this moment of this batch, by the files that it writes."""
    match moment:
        case "state":
            state = out / "checkpoint" / "state"
            return any(state.glob(f"*/*/{batch + 1}*")) or any(state.glob(f"*/*/.{batch + 1}*"))
        case "sink":
            return any((out / "panes" / "_spark_metadata").glob(f"{batch}*"))
        case "later":
            return (out / "checkpoint" / "commits" / str(batch)).exists()
        case _:
            return (out / "checkpoint" / moment / str(batch)).exists()


def kill_all(session: int) -> None:
    """Kill every process of a session: the application, its JVM and all workers."""
    while True:
        members = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and os.getsid(int(entry.name)) == session:
                    state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                    members += [int(entry.name)] if state not in ("Z", "X") else []
        if not members:
            return
        for member in members:
            with suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)


def run(files: Path, out: Path, result: Path, kill_at: tuple[int, str] | None, delay: float = 0.0) -> bool:
    """The application, killed when it has come to that moment; whether it was."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(APP.parent), os.environ.get("PYTHONPATH", "")])}
    with open(out / "said", "ab") as said:
        command = [sys.executable, str(APP), str(files), str(out), str(result)]
        app = subprocess.Popen(command, env=env, stdout=said, stderr=said, cwd=out, start_new_session=True)
    try:
        while app.poll() is None:
            if kill_at is not None and reached(out, *kill_at):
                with suppress(subprocess.TimeoutExpired):
                    app.wait(delay)
                return app.poll() is None
            with suppress(subprocess.TimeoutExpired):
                app.wait(0.005)
    finally:
        kill_all(app.pid)
        app.wait()
    assert app.returncode == 0, (out / "said").read_text()[-3000:]
    return False


def committed(out: Path) -> int:
    """The number of the next batch."""
    folder = out / "checkpoint" / "commits"
    done = [int(path.name) for path in folder.glob("*") if path.name.isdigit()] if folder.exists() else []
    return max(done, default=-1) + 1


def disturbed(folder: Path, files: Path, seed: int, kills: int, most: int) -> pa.Table:
    """The rows of the sink after so many kills at random moments."""
    r = random.Random(seed)
    out = folder / f"out{seed}"
    out.mkdir()
    result = folder / f"result{seed}.parquet"
    killed = 0
    for left in range(kills, 0, -1):
        first = committed(out)
        batch = first + r.randrange(max(1, (most - first) // left))
        moment = MOMENTS[(seed + left) % len(MOMENTS)]
        killed += run(files, out, result, (batch, moment), r.random() * (2.0 if moment == "later" else 0.3))
        assert not result.exists()
    assert killed == kills
    run(files, out, result, None)
    return pq.read_table(result)


def undisturbed(spark: SparkSession, folder: Path, files: Path) -> pa.Table:
    started(panes(spark, files), folder / "undisturbed").awaitTermination()
    return spark.read.parquet(str(folder / "undisturbed" / "panes")).toArrow()


def ordered(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def test_two_kills(spark: SparkSession, tmp_path: Path) -> None:
    files = written(batches(0, 7), tmp_path / "files")
    want = ordered(undisturbed(spark, tmp_path, files))
    assert len(want) > 500
    assert ordered(disturbed(tmp_path, files, seed=1, kills=2, most=7)) == want


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_thirty_kills(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    files = written(batches(seed, 24), tmp_path / "files")
    want = ordered(undisturbed(spark, tmp_path, files))
    assert ordered(disturbed(tmp_path, files, seed, kills=3, most=24)) == want
