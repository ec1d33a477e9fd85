"""Timing of two calls in turn, so that their ratio holds when the speed of the machine changes."""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from uncombine.sparkops.tuning.malloc import keep_memory


@dataclass(frozen=True)
class Row:
    """One line of a table: the name of the measure, our value and the other one, their ratio, and the goal for it."""

    HEAD: ClassVar[tuple[str, str]] = (
        "| what | ours | other | ratio | at most | kept | other is |",
        "|---|---:|---:|---:|---:|---|---|",
    )

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

    def __str__(self) -> str:
        target = "" if self.target is None else f"{self.target:g}"
        digits = 2 if self.unit == "s" else 1
        numbers = f"{self.ours:.{digits}f} {self.unit} | {self.other:.{digits}f} {self.unit} | {self.ratio:.2f}"
        return f"| {self.what} | {numbers} | {target} | {self.kept} | {self.against} |"


@dataclass(frozen=True)
class Curve:
    """One line of a table: what a size does to time and memory."""

    HEAD: ClassVar[tuple[str, str]] = (
        "| what | sizes | seconds | exponent | memory | exponent |",
        "|---|---|---|---:|---|---:|",
    )

    what: str
    sizes: tuple[float, ...]
    seconds: tuple[float, ...]
    peaks: tuple[int, ...]
    """The bytes of the largest process at each size."""

    def __str__(self) -> str:
        sizes = ", ".join(_short(size) for size in self.sizes)
        seconds = ", ".join(f"{value:.3g}" for value in self.seconds)
        peaks = ", ".join(f"{value / 2**20:,.0f}".replace(",", " ") for value in self.peaks)
        return (
            f"| {self.what} | {sizes} | {seconds} | {exponent(self.sizes, self.seconds):.2f} "
            f"| {peaks} MiB | {exponent(self.sizes, self.peaks):.2f} |"
        )


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The slope of values over sizes in the upper half of the sizes, both as logarithms: 1 for what is linear."""
    last = max(2, (len(sizes) + 1) // 2)
    x, y = ([math.log(value) for value in part[-last:]] for part in (sizes, values))
    return statistics.linear_regression(x, y).slope


def _short(size: float) -> str:
    for least, unit in ((1e6, "M"), (1e3, "k")):
        if size >= least:
            return f"{size / least:g} {unit}"
    return f"{size:g}"


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
    what: str,
    ours: Callable[[], Any],
    other: Callable[[], Any],
    against: str,
    target: float | None,
    runs: int = 5,
    before: int = 3,
) -> Row:
    """Do as `pair` does, in wall-clock time, for work that other processes do. The machine should be idle.

    The JVM compiles code that runs often, so some runs of each, made `before`, do not count.
    """
    for _ in range(before):
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


def point(prepare: Callable[[Any], Any], work: Callable[[Any], Any], size: Any) -> tuple[float, int]:
    """The seconds of `work(prepare(size))`, and the peak of the bytes that it adds, each in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        seconds, peak = pool.submit(_seconds, prepare, work, size), pool.submit(_added, prepare, work, size)
        return seconds.result(), peak.result()


def _seconds(prepare: Callable[[Any], Any], work: Callable[[Any], Any], size: Any) -> float:
    one_thread()
    keep_memory()  # as Spark's workers do, where steps run
    data = prepare(size)
    work(data)
    times = []
    for _ in range(3):
        gc.collect()
        started = time.process_time()
        work(data)
        times.append(time.process_time() - started)
    return statistics.median(times)


def _added(prepare: Callable[[Any], Any], work: Callable[[Any], Any], size: Any) -> int:
    one_thread()
    data = prepare(size)
    work(data)
    return max(_peak(work, data), 1 << 20)  # less than a mebibyte says nothing


def _memory(prepare: Callable[[int], Any], work: Callable[[Any], Any], rows: int) -> int:
    one_thread()
    work(prepare(1000))  # modules that are loaded at first use do not count
    return _peak(work, prepare(rows))


def _peak(work: Callable[[Any], Any], data: Any) -> int:
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = _resident("VmRSS")
    work(data)
    return _resident("VmHWM") - before


def _resident(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def table(rows: Iterator[Row | Curve]) -> Iterator[str]:
    """The rows as lines of a Markdown table, one by one as they are measured."""
    head = True
    for row in rows:
        if head:
            yield from row.HEAD
            head = False
        yield str(row)
