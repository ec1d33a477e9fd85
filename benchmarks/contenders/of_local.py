"""This library without Spark, from Parquet files, in threads."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
from contender import THREADS, Task, serve

import uncombine as uc
from tables import facts

WINDOWS = {"windows": uc.Fixed("1 minute"), "sessions": uc.Sessions("30 seconds")}


def run(window: str, folder: str) -> pa.Table:
    windows = uc.flow(folder).window(WINDOWS[window])
    return windows.combine(by="k", s=uc.Sum("v"), c=uc.Count()).run().panes


if __name__ == "__main__":
    pa.set_cpu_count(THREADS)
    serve("uncombine", {name: Task(partial(run, name), facts) for name in WINDOWS})
