"""Ctrl-C, where a call waits that it must not break.

Guarded by tests/cli/test_interrupts.py.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 0.5
"""The seconds between two looks if the user has ended a stream."""


@contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """Note the first Ctrl-C in the block, and give a function that says if it has come; a second one is raised.

    PySpark's own handler calls the JVM while another call waits for it, and writes two tracebacks.

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

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: came
    finally:
        signal.signal(signal.SIGINT, before)


__all__ = ["PATIENCE", "interrupts"]


def __dir__() -> list[str]:
    return __all__
