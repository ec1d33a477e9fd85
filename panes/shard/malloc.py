"""Memory that a process keeps between steps."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3

KEPT = 512 << 20
"""The largest number of bytes that are kept."""


@cache
def keep_memory() -> None:
    """Let the C library keep freed memory for the next step instead of returning it to the system.

    A step allocates and frees arrays of some megabytes. If they come from the system each time, the system maps their
    pages one by one, which takes up to a third of the time of a step. The setting is for the whole process, so it suits
    processes that do nothing else, such as Spark's workers. A C library without such a setting is left as it is.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, 32 << 20)
        mallopt(_TRIM_THRESHOLD, KEPT)
