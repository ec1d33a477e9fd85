"""Memory that a process keeps for itself between steps."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3

KEPT = 256 << 20
"""Bytes that are kept at most."""


@cache
def keep_memory() -> None:
    """Have the C library keep what is freed, for the next step, where it otherwise gives it back to the system.

    A step takes and frees arrays of some megabytes. Got from the system each time, their pages come one by one, for
    up to a third of the time of a step. For processes that do nothing else, such as Spark's workers: it holds for
    everything in the process. Where the C library has no such setting, nothing happens.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, 32 << 20)
        mallopt(_TRIM_THRESHOLD, KEPT)
