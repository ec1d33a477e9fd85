"""The settings of a worker process of Spark, made by each task before it reads rows.

Guarded by tests/sparkops/tuning/test_worker.py.
"""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from pathlib import Path

from .malloc import keep_memory


def ready() -> None:
    """Make the settings of this process."""
    keep_memory()
    acknowledge()


def acknowledge() -> None:
    """Acknowledge now what has come over the TCP connections of this process.

    Spark sends a task and then its rows. A system holds back a small packet until the one before it is acknowledged,
    and Linux acknowledges some packets after 40 ms only. So without this call a task with few rows waits that long for
    them. Systems other than Linux have no such call.
    """
    now = getattr(socket, "TCP_QUICKACK", None)
    files = Path("/proc/self/fd")
    if now is None or not files.is_dir():
        return
    for file in [int(path.name) for path in files.iterdir()]:
        with suppress(OSError):  # a file that is closed by now, or a socket that is not TCP
            if stat.S_ISSOCK(os.fstat(file).st_mode):
                with socket.socket(fileno=os.dup(file)) as connection:
                    connection.setsockopt(socket.IPPROTO_TCP, now, 1)


__all__ = ["ready"]
