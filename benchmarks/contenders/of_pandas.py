"""pandas, which works on one thread, and pyarrow, which only reads."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
from contender import GAP, MINUTE, THREADS, Task, serve

pa.set_cpu_count(THREADS)


def read(folder: str) -> pa.Table:
    """The columns that a task needs, and nothing else."""
    return ds.dataset(folder, format="parquet").to_table(columns=["k", "ts", "v"])


def windows(folder: str) -> pd.DataFrame:
    rows = read(folder).to_pandas()
    return rows.groupby(["k", rows["ts"].dt.floor(f"{MINUTE}us").rename("start")], sort=False)["v"].agg(
        s="sum", c="size"
    )


def sessions(folder: str) -> pd.DataFrame:
    rows = read(folder).to_pandas().sort_values(["k", "ts"], ignore_index=True)
    begins = rows["k"].ne(rows["k"].shift()) | rows["ts"].diff().ge(pd.Timedelta(microseconds=GAP))
    named = {"k": ("k", "first"), "start": ("ts", "min"), "last": ("ts", "max"), "s": ("v", "sum"), "c": ("v", "size")}
    return rows.groupby(begins.cumsum(), sort=False).agg(**named)


def facts(frame: Any) -> tuple[int, float, float]:
    return len(frame), float(frame["s"].sum()), float(frame["s"].max())


if __name__ == "__main__":
    serve("pandas", {"windows": Task(windows, facts), "sessions": Task(sessions, facts), "reading": Task(read)})
