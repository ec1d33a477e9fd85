"""Two hundred micro-batches of windows that come and go: the sizes of workers, state and store must not grow.

`python benchmarks/flatness.py [batches] [rows in a batch] [windows or join]` prints, for each quarter of the run, the
most memory that any Python worker held, the windows held (or the rows that a join holds), the bytes of the chunk log,
and the size of the RocksDB files.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from datasets import files

import uncombine as uc
from uncombine.sparkops.progress import progress_of


def workers() -> list[int]:
    """The resident bytes of every Python process below this one."""
    parents, sizes = {}, {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            about = dict(line.split(":", 1) for line in status.read_text().splitlines())
            python = b"pyspark.daemon" in (status.parent / "cmdline").read_bytes()
        except OSError:
            continue
        pid = int(about["Pid"])
        parents[pid] = int(about["PPid"])
        if python and "VmRSS" in about:
            sizes[pid] = 1024 * int(about["VmRSS"].split()[0])
    return [size for pid, size in sizes.items() if below(pid, parents)]


def below(pid: int, parents: dict[int, int]) -> bool:
    """True if a process is a descendant of this one."""
    while pid in parents and pid != os.getpid():
        pid = parents[pid]
    return pid == os.getpid()


def source(batches: int, rows: int, seed: int) -> uc.Flow:
    """A stream of files, each with the rows of a minute."""
    path = files(batches * rows, 20_000, batches, 60 * batches, seed)
    spark, name = uc.session("flatness", cores=2), f"source{seed}"
    lag = uc.BoundedLag("30 seconds")
    return uc.flow(uc.Files(path, max_files_per_batch=1), spark=spark, watermark=lag, streaming=True, name=name)


def windows(batches: int, rows: int) -> uc.Flow:
    """Windows with early, on-time and late panes."""
    early = uc.AfterWatermark(early=uc.AfterCount(1), late=uc.AfterCount(1))
    options = {"trigger": early, "mode": "retracting", "allowed_lateness": "2 minutes"}
    panes = source(batches, rows, 1).window(uc.Fixed("1 minute"), **options)
    return panes.combine(by="k", s=uc.Sum("v"), best=uc.Max("v"), middle=uc.Median("v"))


def join(batches: int, rows: int) -> uc.Flow:
    """A left join of two streams by key and time."""
    left, right = (source(batches, rows, seed).select("k", "ts", "v") for seed in (1, 2))
    return left.join(right, on="k", how="left", within=("0 seconds", "10 seconds"), unmatched="final")


def main(batches: int = 200, rows: int = 100_000, what: str = "windows") -> None:
    """Run the query and print the table."""
    flow = {"windows": windows, "join": join}[what](batches, rows)
    writer = flow.write_stream(checkpoint=tempfile.mkdtemp()).format("noop")
    query = writer.trigger(availableNow=True).start()
    seen: dict[int, int] = {}
    reported = {}
    while True:
        ended = query.awaitTermination(0.2)
        last = query.lastProgress
        if last is not None:
            batch = int(last["batchId"])
            seen[batch] = max([seen.get(batch, 0), *workers()])
            reported[batch] = last
        if ended:
            break
    held = {"windows": "windows", "join": "rows"}[what]
    print(f"| batches | largest worker | {held} held | chunk log | RocksDB files | median batch |")
    print("|---|---:|---:|---:|---:|---:|")
    quarter = max(batches // 4, 1)
    for first in range(0, batches, quarter):
        part = [b for b in reported if first <= b < first + quarter]
        if not part:
            continue
        stages = [progress_of(reported[b]).stages[0] for b in part]
        stores = [int(reported[b]["stateOperators"][0]["customMetrics"].get("rocksdbSstFileSize", 0)) for b in part]
        took = sorted(reported[b]["durationMs"]["triggerExecution"] for b in part)
        print(
            f"| {first} - {first + quarter - 1} | {max(seen[b] for b in part) / 2**20:.0f} MiB "
            f"| {max(s.windows_held for s in stages):,} | {max(s.state_bytes for s in stages) / 2**20:.1f} MiB "
            f"| {max(stores) / 2**20:.1f} MiB | {took[len(took) // 2]} ms |"
        )


if __name__ == "__main__":
    started = time.time()
    main(*(int(value) for value in sys.argv[1:3]), *sys.argv[3:])
    print(f"\n{time.time() - started:.0f} s in all")
