"""Timing of two calls in turn, so that their ratio holds when the speed of the machine changes."""

from __future__ import annotations

import gc
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of a table: the name of the measure, our value and the other one, their ratio, and the goal for it."""

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
    """Run on one processor with one thread, if the system allows it."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import pyarrow as pa

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def pair(
    what: str, ours: Callable[[], Any], other: Callable[[], Any], against: str, target: float | None, runs: int = 7
) -> Row:
    """Time both calls in turn, A B A B ..., after one run each that does not count; the medians, in milliseconds.

    The times are processor times of all threads of this process, so other work of the machine does not count.
    """
    ours(), other()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs):
        for call, kept in zip((ours, other), times, strict=True):
            gc.collect()
            start = time.process_time()
            call()
            kept.append((time.process_time() - start) * 1e3)
    return Row(what, statistics.median(times[0]), statistics.median(times[1]), target, against)


def wall(
    what: str, ours: Callable[[], Any], other: Callable[[], Any], against: str, target: float | None, runs: int = 5
) -> Row:
    """Do as `pair` does, in wall-clock time, for work that other processes do. The machine should be idle.

    The JVM compiles code that runs often, so three runs of each do not count.
    """
    for _ in range(3):
        ours(), other()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs):
        for call, kept in zip((ours, other), times, strict=True):
            start = time.perf_counter()
            call()
            kept.append(time.perf_counter() - start)
    return Row(what, statistics.median(times[0]), statistics.median(times[1]), target, against, "s")


def memory(prepare: Callable[[int], Any], work: Callable[[Any], Any], rows: int) -> int:
    """The peak of the bytes that `work(prepare(rows))` adds to those of a fresh process.

    Both are functions of a module, or partial ones, so that the process finds them.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_memory, prepare, work, rows).result()


def _memory(prepare: Callable[[int], Any], work: Callable[[Any], Any], rows: int) -> int:
    one_thread()
    work(prepare(1000))  # modules that are loaded at first use do not count
    data = prepare(rows)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = _resident("VmRSS")
    work(data)
    return _resident("VmHWM") - before


def _resident(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def table(rows: Iterator[Row]) -> Iterator[str]:
    """The rows as lines of a Markdown table, one by one as they are measured."""
    yield "| what | ours | other | ratio | at most | kept | other is |"
    yield "|---|---:|---:|---:|---:|---|---|"
    for row in rows:
        target = "" if row.target is None else f"{row.target:g}"
        digits = 2 if row.unit == "s" else 1
        numbers = f"{row.ours:.{digits}f} {row.unit} | {row.other:.{digits}f} {row.unit} | {row.ratio:.2f}"
        yield f"| {row.what} | {numbers} | {target} | {row.kept} | {row.against} |"
