"""Spark's start-up prints, which say nothing of the user's program, kept off stderr.

The JVM writes to the stderr that it inherits, before its log level can be set. While it starts, it therefore gets a
pipe. A thread hands each line on, except the known ones. Guarded by tests/sparkops/test_session.py.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

USUAL = re.compile(
    rb"WARNING: Using incubator modules: jdk\.incubator\.vector|"
    rb"WARNING: package sun\.security\.action not in java\.base|"
    rb"Using Spark's default log4j profile|"
    rb"Setting default log level to|Setting Spark log level to|"
    rb"To adjust logging level use sc\.setLogLevel|"
    rb"\d\d/\d\d/\d\d \d\d:\d\d:\d\d WARN (Utils: (Your hostname|Set SPARK_LOCAL_IP)|NativeCodeLoader)|"
    rb"(Starting )?Streaming TransformWithStateInPandas Python worker|"
    rb"WARNING: (A restricted method in java\.lang\.System|java\.lang\.System::load|Use --enable-native-access|"
    rb"Restricted methods will be blocked|A terminally deprecated method in sun\.misc\.Unsafe|sun\.misc\.Unsafe::|"
    rb"Please consider reporting this to the maintainers)"
)
"""The beginnings of lines that every start of Spark and every task with state prints."""

PANDAS_3 = "PySpark does not yet fully support pandas"
"""The beginning of a warning of PySpark that every program gets."""

STDERR = 2


@contextmanager
def quiet_start() -> Iterator[None]:
    """Leave the usual lines out of what programs that start meanwhile write to stderr, and a warning of this one."""
    warnings.filterwarnings("ignore", PANDAS_3, FutureWarning)
    ours = f"ignore:{PANDAS_3}:FutureWarning"
    filters = os.environ.get("PYTHONWARNINGS", "").split(",")
    if ours not in filters:  # for the Python processes that Spark starts
        os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [*filters, ours]))
    try:
        shown = os.dup(STDERR)
    except OSError:  # a program without stderr
        yield
        return
    (source, sink), started = os.pipe(), Event()
    os.dup2(sink, STDERR)
    os.close(sink)
    Thread(target=_hand_on, args=(source, shown, started), name="stderr of Spark", daemon=True).start()
    try:
        yield
    finally:
        started.set()
        os.dup2(shown, STDERR)


def _hand_on(source: int, shown: int, started: Event) -> None:
    """Copy lines until the last program that writes them has ended."""
    rest, after_usual = b"", False

    def show(line: bytes) -> bool:
        nonlocal after_usual
        usual = bool(USUAL.match(line)) or (after_usual and not line)
        after_usual = usual
        return not usual

    with suppress(OSError):
        while chunk := os.read(source, 1 << 16):
            *lines, rest = (rest + chunk).split(b"\n")
            out = b"".join(line + b"\n" for line in lines if show(line))
            if started.is_set():
                out, rest = out + rest, b""
            os.write(shown, out)
        os.write(shown, rest)
    os.close(source)
    os.close(shown)


__all__ = ["quiet_start"]
