"""Timing two ways of doing a thing in turn, so that a ratio holds when the machine's speed drifts."""

from __future__ import annotations

import gc
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of a table: what was measured, ours and the other's, their ratio, and the most it should be."""

    what: str
    ours: float
    other: float
    target: float | None
    against: str
    unit: str = "ms"

    @property
    def ratio(self) -> float:
        return self.ours / self.other

    @property
    def kept(self) -> str:
        if self.target is None:
            return ""
        return "yes" if self.ratio <= self.target else "NO"


def one_thread() -> None:
    """Run on one processor with one thread, where the system lets us."""
    import pyarrow as pa

    os.environ["OMP_NUM_THREADS"] = "1"
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def pair(
    what: str, ours: Callable[[], Any], other: Callable[[], Any], against: str, target: float | None, runs: int = 7
) -> Row:
    """Both in turn, A B A B ..., after one run each that does not count; the medians, in milliseconds."""
    ours(), other()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs):
        for call, kept in zip((ours, other), times, strict=True):
            gc.collect()
            start = time.perf_counter()
            call()
            kept.append((time.perf_counter() - start) * 1e3)
    return Row(what, statistics.median(times[0]), statistics.median(times[1]), target, against)


def peak_memory(code: str) -> float:
    """Bytes by which running `code` raises the peak of a fresh process, above what `setup` in it left."""
    script = f"import resource\n{code}\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return float(done.stdout.strip().splitlines()[-1])


def peak_now() -> int:
    """The peak memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def table(rows: Iterator[Row]) -> Iterator[str]:
    """The rows as a Markdown table, line by line as they are measured."""
    yield "| what | ours | other | ratio | at most | kept | other is |"
    yield "|---|---:|---:|---:|---:|---|---|"
    for row in rows:
        target = "" if row.target is None else f"{row.target:g}"
        numbers = f"{row.ours:.1f} {row.unit} | {row.other:.1f} {row.unit} | {row.ratio:.2f}"
        yield f"| {row.what} | {numbers} | {target} | {row.kept} | {row.against} |"
