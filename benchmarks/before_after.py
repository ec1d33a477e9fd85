"""Times the library's side of every row in two checkouts: `python benchmarks/before_after.py OTHER [suite ...]`.

OTHER is another checkout that has its own environment in `.venv`. Each checkout runs its suites in a separate process
and measures a row on request, so the two are timed A B A B ... in one run.

Two processes that run the same code differ by up to 15 %, because their memory has other addresses. So a suite runs in
several pairs of processes, one pair after the other. The time of a checkout is that of its fastest process, the median
of its runs there; the ratio is of these times, this checkout to the other. The last column has the ratios of the pairs.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RUNS = {"pair": (1, 5), "wall": (2, 3), "both": (0, 1)}
"""The number of runs that do not count and of those that do, for each function that measures."""


def main() -> None:
    """Measure the suites named, or those without Spark."""
    parser = argparse.ArgumentParser(description="Compare two checkouts, row by row.")
    parser.add_argument("other", help="the folder of the other checkout")
    parser.add_argument("suites", nargs="*", metavar="suite", help="as for run.py")
    parser.add_argument("--only", default="", help="a regular expression that the name of a row must match")
    parser.add_argument("--processes", type=int, default=5, help="pairs of processes for each suite")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        serve(chosen.serve, chosen.suites[0], chosen.only)
        return
    for name in chosen.suites or ["combiners", "panes"]:
        print(f"\n# {name}\n\n| what | this | other | ratio | of the pairs |\n|---|---:|---:|---:|---|", flush=True)
        found: dict[str, list[tuple[float, float]]] = {}
        for _ in range(chosen.processes):
            for what, ours, theirs in compare(HERE.parent, Path(chosen.other).resolve(), name, chosen.only):
                found.setdefault(what, []).append((ours, theirs))
                print(f"{what}: {ours * 1e3:.1f} / {theirs * 1e3:.1f} ms, {ours / theirs:.2f}", file=sys.stderr)
        for what, pairs in found.items():
            ours, theirs = (min(side) for side in zip(*pairs, strict=True))
            each = " ".join(f"{a / b:.2f}" for a, b in pairs)
            print(
                f"| {what} | {ours * 1e3:.1f} ms | {theirs * 1e3:.1f} ms | {ours / theirs:.2f} | {each} |", flush=True
            )


def compare(this: Path, other: Path, suite: str, only: str) -> Iterator[tuple[str, float, float]]:
    """The rows of a suite that both checkouts have, and the seconds of each, in one pair of processes."""
    with tempfile.TemporaryDirectory() as folder:
        address = f"{folder}/socket"
        with Listener(address) as listener:
            ends = [_started(listener, address, checkout, suite, only) for checkout in (this, other)]
            try:
                yield from _rows(*(connection for _, connection in ends))
            finally:
                for process, connection in ends:
                    connection.close()
                    process.wait()


def _started(
    listener: Listener, address: str, checkout: Path, suite: str, only: str
) -> tuple[subprocess.Popen[bytes], Connection]:
    python = checkout / ".venv" / "bin" / "python"
    command = [str(python), __file__, str(checkout), suite, "--only", only, "--serve", address]
    path = {**os.environ, "PYTHONPATH": str(checkout / "src")}  # for a checkout whose environment is that of another
    process = subprocess.Popen(command, cwd=checkout, stdout=subprocess.DEVNULL, env=path)
    return process, listener.accept()


def _rows(this: Connection, other: Connection) -> Iterator[tuple[str, float, float]]:
    left, right = this.recv(), other.recv()
    while left is not None and right is not None:
        if left != right:  # only this checkout has the row
            this.send("next")
            left = this.recv()
            continue
        what, kind = left
        uncounted, counted = RUNS[kind]
        pairs = [(_asked(this), _asked(other)) for _ in range(uncounted + counted)][uncounted:]
        ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
        yield what, ours, theirs
        this.send("next")
        other.send("next")
        left, right = this.recv(), other.recv()


def _asked(connection: Connection) -> float:
    connection.send("run")
    seconds: float = connection.recv()
    return seconds


def serve(address: str, suite: str, only: str) -> None:
    """Run a suite of the checkout in which this process was started, and measure a row on request."""
    folder = Path.cwd() / "benchmarks"
    sys.path.insert(0, str(folder))
    harness = importlib.import_module("harness")
    pinned = importlib.import_module("run").SUITES[suite]
    with Client(address) as connection:

        def row(what: str, kind: str, measure: Callable[[], float]) -> Any:
            if re.search(only, what):
                connection.send((what, kind))
                while connection.recv() == "run":
                    connection.send(measure())
            return harness.Row(what, 1, 1, None, "")

        clock = time.process_time if pinned else time.perf_counter
        harness.pair = harness.wall = lambda what, ours, other, *rest, **options: row(
            what, "pair" if pinned else "wall", lambda: _timed(ours, clock)
        )
        if pinned:
            harness.one_thread()
        harness.memory = lambda *given: 1
        module = importlib.import_module(suite)
        if hasattr(module, "both"):
            run, count = importlib.import_module("streams").run, getattr(module, "BATCHES", None)
            module.both = lambda what, ours, other, against, most, batches=count: row(
                what, "both", lambda: statistics.median(run(ours(), batches)[2:]) / 1e3
            )
            module.run = lambda df, batches: [1.0] * batches  # of rows that are not compared
        for _ in module.rows():
            pass
        connection.send(None)


def _timed(call: Callable[[], Any], clock: Callable[[], float]) -> float:
    gc.collect()
    start = clock()
    call()
    return clock() - start


if __name__ == "__main__":
    main()
