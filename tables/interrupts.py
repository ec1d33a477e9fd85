"""Ctrl-C, where a call waits that it must not break.

Guarded by tests/tables/test_interrupts.py.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 0.5
"""The longest wait in which an interrupt is not noticed, in seconds."""

LEAST = 0.001
"""The shortest wait, in seconds: PySpark counts in whole milliseconds, and Spark refuses none."""


@contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """Note the first Ctrl-C in the block, and give a function that says if it has come; a second one is raised.

    PySpark's own handler calls the JVM while another call waits for it, and writes two tracebacks. A thread that is not
    the main one hears of no Ctrl-C.

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

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: came
    finally:
        signal.signal(signal.SIGINT, before)


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


__all__ = ["LEAST", "PATIENCE", "ended_within", "interrupts"]


def __dir__() -> list[str]:
    return __all__
