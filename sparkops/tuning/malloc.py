"""Memory that a process keeps between steps."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from functools import cache

import pyarrow as pa

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3

FREE_BYTES = 512 << 20
"""The largest number of bytes that are kept."""


CHOSEN = "ARROW_DEFAULT_MEMORY_POOL"
"""The environment variable with which a user chooses Arrow's allocator."""


@cache
def keep_memory() -> None:
    """Let the C library keep freed memory for the next step instead of returning it to the system.

    A step allocates and frees arrays of some megabytes. If they come from the system each time, the system maps their
    pages one by one, which takes up to a third of the time of a step. Arrow's own allocator returns memory some
    milliseconds after it is freed, so Arrow takes it from the C library too, unless the user has chosen an allocator.

    The settings are for the whole process, so they suit processes that do nothing else, such as Spark's workers. Where
    the C library has no such setting, nothing is changed.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, 32 << 20)
        mallopt(_TRIM_THRESHOLD, FREE_BYTES)
        if CHOSEN not in os.environ:
            pa.set_memory_pool(pa.system_memory_pool())
