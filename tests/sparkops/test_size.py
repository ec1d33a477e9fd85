"""Large batches, keys, windows and states through Spark, with what its Python workers take at most."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from streams import START, read_stream, written

import uncombine as uc
from uncombine.sparkops.progress import progress_of

pytestmark = pytest.mark.soak
SECOND = 1_000_000
BOUND = 1_600 << 20
"""The memory that a worker may take in any case."""
SCHEMA = pa.schema({"k": pa.int64(), "ts": pa.timestamp("us", "UTC"), "v": pa.int64()})


def batch(k: Any, seconds: Any) -> pa.Table:
    size = len(seconds)
    times = START + np.asarray(seconds) * SECOND
    columns = [np.broadcast_to(k, size), times, np.arange(size) % 100]
    return pa.table([pa.array(c).cast(f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def one_file(rng: np.random.Generator) -> Iterator[pa.Table]:
    for i in range(2):
        yield batch(rng.integers(0, 100_000, 5_000_000), i * 600 + rng.integers(0, 600, 5_000_000))


def one_key(rng: np.random.Generator) -> Iterator[pa.Table]:
    for i in range(3):
        yield batch(7, i * 600 + rng.integers(0, 600, 1_000_000))


def many_windows(rng: np.random.Generator) -> Iterator[pa.Table]:
    """2 M windows that are all held, and then batches that touch few of them."""
    for i in range(4):
        yield batch(np.arange(500_000) + i * 500_000, rng.integers(0, 60, 500_000))
    for _ in range(6):
        yield batch(rng.integers(0, 2_000_000, 10_000), rng.integers(0, 60, 10_000))


def one_session(rng: np.random.Generator) -> Iterator[pa.Table]:
    """It never ends, and is a week long at last."""
    for i in range(30):
        yield batch(1, i * 20_000 + np.arange(20_000))


def sliding(rng: np.random.Generator) -> Iterator[pa.Table]:
    for i in range(4):
        yield batch(rng.integers(0, 1_000, 500_000), i * 600 + rng.integers(0, 600, 500_000))


EARLY = uc.AfterWatermark(early=uc.AfterCount(1))
CASES: dict[str, tuple[Callable[[np.random.Generator], Iterator[pa.Table]], dict[str, Any]]] = {
    "5 M rows in a file": (one_file, {"window": uc.Fixed("1 minute")}),
    "1 M rows of a key": (one_key, {"window": uc.Fixed("1 minute")}),
    "2 M windows": (many_windows, {"window": uc.Fixed("1 day")}),
    "a session without end": (one_session, {"window": uc.Sessions("1 minute"), "trigger": EARLY, "mode": "retracting"}),
    "60 windows to a row": (sliding, {"window": uc.Sliding("1 hour", "1 minute")}),
    "1 M rows of a key, one by one": (
        one_key,
        {"window": uc.Fixed("1 hour"), "granularity": "record", "trigger": EARLY, "mode": "discarding"},
    ),
}


def workers() -> list[Path]:
    """The Python workers of this test's own Spark."""
    parents, found = {}, []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit():
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(stat[1])
                if b"pyspark.daemon" in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return [Path("/proc") / str(pid) for pid in found if os.getpid() in _ancestors(pid, parents)]


def _ancestors(pid: int, parents: dict[int, int]) -> set[int]:
    seen = set()
    while pid in parents and pid not in seen:
        seen.add(pid)
        pid = parents[pid]
    return seen


def peak(process: Path) -> int:
    lines = (process / "status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


@pytest.mark.parametrize("name", CASES)
def test_workers_stay_within_bounds(name: str, spark: SparkSession, tmp_path: Path) -> None:
    made, options = CASES[name]
    files = written(list(made(np.random.default_rng(0))), tmp_path / "files")
    for process in workers():
        (process / "clear_refs").write_text("5")
    flow = uc.flow(read_stream(spark, files, SCHEMA), watermark=uc.BoundedLag("1 minute")).window(**options)
    totals = flow.combine(by="k", n=uc.Count(), total=uc.Sum("v"))
    writer = totals.write_stream(checkpoint=tmp_path / "checkpoint").format("noop")
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    took = sorted(peak(process) for process in workers())
    batches = [progress_of(found) for found in query.recentProgress]
    print(f"\n{name}: peak of workers, MiB: {[size >> 20 for size in took]}")
    for found in batches:
        print(f"  {found}")
    given = sum(pq.read_metadata(file).num_rows for file in files.iterdir())
    assert sum(found.stages[0].rows_in for found in batches) == given
    assert max(took) < BOUND
