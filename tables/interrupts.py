"""Ctrl-C, where a call waits that it must not break.

Guarded by tests/tables/test_interrupts.py.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE = 0.5
"""The longest wait in which an interrupt is not noticed, in seconds."""

LEAST = 0.001
"""The shortest wait, in seconds: PySpark counts in whole milliseconds, and Spark refuses none."""


@contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """Note the first Ctrl-C in the block, and give a function that says if it has come; a second one is raised.

    PySpark's own handler calls the JVM while another call waits for it, and writes two tracebacks. A handler that the
    program has set itself keeps the signal, as does a block around this one, and a thread that is not the main one
    hears of none.

    >>> with interrupts() as come:
    ...     come()
    False
    """
    came = False

    def note(*_: Any) -> None:
        nonlocal came
        if came:
            raise KeyboardInterrupt
        came = True

    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not _is_plain(before):
        yield lambda: False
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: came
    finally:
        signal.signal(signal.SIGINT, before)


def _is_plain(handler: Any) -> bool:
    """True for the handlers of Python and of PySpark, which a program has that sets none."""
    return handler is signal.default_int_handler or str(getattr(handler, "__module__", "")).startswith("pyspark.")


def waited(ended: Callable[[float], bool | None], seconds: float | None) -> bool | None:
    """Wait for an end, for some seconds or as long as it takes; an interrupt is raised between two calls that wait.

    >>> waited(lambda seconds: True, None), waited(lambda seconds: True, 5), waited(lambda seconds: False, 0.01)
    (None, True, False)
    """
    if seconds is not None and seconds <= 0:
        return ended(seconds)
    with interrupts() as interrupted:
        done = ended_within(ended, math.inf if seconds is None else seconds, interrupted)
        if interrupted() and not done:
            raise KeyboardInterrupt
    return None if seconds is None else done


def unbroken(work: Callable[[], T]) -> T:
    """Do work that an interrupt must not break, such as a call into the JVM; the interrupt is raised after it.

    >>> unbroken(lambda: 5)
    5
    """
    with interrupts() as interrupted:
        done = work()
        if interrupted():
            raise KeyboardInterrupt
    return done


def ended_within(ended: Callable[[float], bool | None], seconds: float, interrupted: Callable[[], bool]) -> bool:
    """Wait for an end for some seconds, or until an interrupt, which is noticed within half a second; true at the end.

    >>> ended_within(lambda seconds: True, 60, lambda: False), ended_within(lambda seconds: True, 60, lambda: True)
    (True, False)
    """
    until = time.monotonic() + seconds
    while not interrupted() and (left := until - time.monotonic()) > 0:
        if ended(min(max(left, LEAST), PATIENCE)):
            return True
    return False


__all__ = ["LEAST", "PATIENCE", "ended_within", "interrupts", "unbroken", "waited"]


def __dir__() -> list[str]:
    return __all__
