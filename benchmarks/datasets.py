"""Parquet files for measures: rows of a key, a time and values, in order of time as in logs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

START = 1_700_000_040_000_000  # a whole minute


def files(rows: int, keys: int, count: int = 6, seconds: int = 720, seed: int = 1) -> str:
    """A folder of `count` files with `rows` rows in all, over the given event time."""
    folder = Path(tempfile.mkdtemp(prefix="uncombine-bench-"))
    rng = np.random.default_rng(seed)
    each, micros = rows // count, seconds * 1_000_000 // count
    for i in range(count):
        times = np.sort(rng.integers(START + i * micros, START + (i + 1) * micros, each))
        table = pa.table(
            {
                "k": rng.integers(0, keys, each),
                "ts": pa.array(times, pa.timestamp("us", "UTC")),
                "v": rng.integers(0, 1000, each),
                "x": rng.normal(0, 1e3, each),
            }
        )
        pq.write_table(table, folder / f"part-{i}.parquet")
    return str(folder)
