"""Seeds: the state of a run as files, compared with writing and reading the same rows as Parquet.

Each window has a key of its own, a count, a sum and the pane that was shown last. Parquet has the key, the window, the
count and the sum, with the codec of a seed. On Spark a query of five million windows gets another number
of shards, from the checkpoint to the end of the first batch of the new query, compared with the batch that made the
windows; a value of text makes each of them 100 bytes. A history of sixty million rows, as Parquet files, is written as
a seed on Spark, compared with a batch flow that gives the panes of these rows, and loaded by the first batch of a
query, compared with the start of the same query without a seed.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import Row

import uncombine as uc

TITLE = "Seeds"

SIZES = (1_000_000, 5_000_000, 20_000_000)
RESCALED = 5_000_000
HISTORY = 60_000_000
FILES = 12
KEYS = 10_000
MINUTE = 60_000_000


def rows() -> Iterator[Row]:
    folder = Path(tempfile.mkdtemp(prefix="uncombine-bench-"))
    try:
        for size in SIZES:
            yield from _here(folder, size)
        spark = uc.session("benchmark", cores=2)
        yield from _rescaled(spark, folder)
        yield from _history(spark, folder)
        spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _table(size: int) -> pa.Table:
    """Rows of so many keys, in the order of a hash, within an hour."""
    order = np.random.default_rng(1).permutation(size)
    times = pa.array(order % 60 * MINUTE).cast(pa.timestamp("us", "UTC"))
    return pa.table({"ts": times, "k": order, "x": order % 1000})


def _flow(rows: Any) -> uc.Flow:
    return uc.flow(rows, watermark="2 hours").window("1 minute").combine(by="k", n=uc.Count(), total=uc.Sum("x"))


def _here(folder: Path, size: int) -> Iterator[Row]:
    table = _table(size)
    result = _flow(table.schema).run([uc.Elements(table)])
    windows = pa.table(
        {
            "k": table["k"],
            "start": table["ts"],
            "end": table["ts"],
            "n": np.ones(size, np.int64),
            "total": table["x"],
        }
    )
    seed, file = folder / "seed", folder / "rows.parquet"

    def write() -> None:
        result.seed(str(seed))

    def write_parquet() -> None:
        pq.write_table(windows, file, compression="zstd")

    def read() -> None:
        _flow(table.schema).run([uc.Elements([])], start=str(seed))

    ours, other = _in_turn(write, write_parquet, lambda: shutil.rmtree(seed, ignore_errors=True))
    name = f"{size / 1e6:g} M windows"
    yield Row(f"write {name}", ours, other, None, "Parquet", "s")
    ours, other = _in_turn(read, lambda: pq.read_table(file))
    yield Row(f"begin with {name}", ours, other, None, "reading Parquet", "s")
    sizes = sum(path.stat().st_size for path in seed.iterdir()), file.stat().st_size
    yield Row(f"bytes of {name}", sizes[0] / 2**20, sizes[1] / 2**20, None, "Parquet", "MiB")
    shutil.rmtree(seed)


def _in_turn(
    ours: Callable[[], object], other: Callable[[], object], before: Callable[[], object] = bool, runs: int = 3
) -> tuple[float, float]:
    """The least seconds of each of two calls, made in turn; `before` is not timed."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs):
        before()
        for call, kept in zip((ours, other), times, strict=True):
            start = time.perf_counter()
            call()
            kept.append(time.perf_counter() - start)
    return min(times[0]), min(times[1])


def _rescaled(spark: Any, folder: Path) -> Iterator[Row]:
    table = _table(RESCALED)
    text = pa.array([f"{key:060}" for key in table["k"].to_pylist()])
    (folder / "in").mkdir()
    pq.write_table(table.set_column(1, "k", text), folder / "in" / "a.parquet")

    def run(name: str, shards: int, rows: str = "in", **options: Any) -> float:
        files, tuning = uc.Files(str(folder / rows), order="name"), uc.Tuning(shards=shards)
        source = uc.flow(files, spark=spark, streaming=True, watermark="2 hours", tuning=tuning)
        counts = source.window("1 minute").combine(by="k", n=uc.Count(), total=uc.Sum("x"))
        start = time.perf_counter()
        writer = counts.write_stream(checkpoint=folder / name, **options).format("noop")
        writer.trigger(availableNow=True).start().awaitTermination()
        return time.perf_counter() - start

    (folder / "few").mkdir()
    pq.write_table(pq.read_table(folder / "in" / "a.parquet").slice(0, 1), folder / "few" / "a.parquet")
    run("warm", 2, "few")
    first = run("old", 2)
    shutil.copy(folder / "few" / "a.parquet", folder / "in" / "b.parquet")
    start = time.perf_counter()
    seed = uc.checkpoint(folder / "old", spark=spark).seed(str(folder / "rescaled"))
    run("new", 3, start=seed)
    ours = time.perf_counter() - start
    yield Row(f"{RESCALED / 1e6:g} M windows to 3 shards", ours, first, None, "the batch that made them", "s")


def _history(spark: Any, folder: Path) -> Iterator[Row]:
    past, live, size = folder / "past", folder / "live", HISTORY // FILES
    past.mkdir()
    live.mkdir()
    draw = np.random.default_rng(2)
    for number in range(FILES):
        times = pa.array(draw.integers(0, 60 * MINUTE, size)).cast(pa.timestamp("us", "UTC"))
        rows = pa.table({"ts": times, "k": draw.integers(0, KEYS, size), "x": draw.integers(0, 1000, size)})
        pq.write_table(rows, past / f"{number:02}.parquet")
    pq.write_table(rows.slice(0, 1), live / "a.parquet")

    def totals(flow: uc.Flow) -> uc.Flow:
        return flow.window("1 minute").combine(by="k", n=uc.Count(), total=uc.Sum("x"))

    def forget() -> None:
        shutil.rmtree(folder / "history", ignore_errors=True)

    def batch() -> None:
        totals(uc.flow(uc.Files(str(past)), spark=spark)).df.write.format("noop").mode("overwrite").save()

    def stream() -> uc.Flow:
        return totals(uc.flow(uc.Files(str(live), order="name"), spark=spark, streaming=True, watermark="2 hours"))

    def write() -> None:
        stream().seed(uc.Files(str(past)), to=str(folder / "history"))

    def begin(**options: Any) -> None:
        shutil.rmtree(folder / "begun", ignore_errors=True)
        writer = stream().write_stream(checkpoint=folder / "begun", **options).format("noop")
        writer.trigger(availableNow=True).start().awaitTermination()

    batch()
    ours, other = _in_turn(write, batch, forget)
    yield Row(f"a seed of {HISTORY / 1e6:g} M rows of history", ours, other, None, "the same flow in batch", "s")
    begin()
    ours, other = _in_turn(lambda: begin(start=str(folder / "history")), begin)
    yield Row("the start of a query with this seed", ours, other, None, "the same start without a seed", "s")


__all__ = ["TITLE", "rows"]
