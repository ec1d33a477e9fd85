"""A Python process of Spark imports PySpark from its folder, and not from an archive.

Spark puts the archive `pyspark.zip` first in the path of each Python process. An archive keeps no compiled modules, so
a process compiles each of 110 again, and has used 0.54 s of a processor before it connects instead of 0.14 s. On a busy
machine the process on the driver, which Spark gives 10 s to connect, came too late. Where the archive is a part of an
installed PySpark, in which the same modules are compiled, the path gets it last.

Python runs a module of this name when it starts, if its path has one.
Guarded by tests/sparkops/worker_start/test_worker_start.py.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module


def with_archives_last(path: Sequence[str]) -> list[str]:
    """The path, with the archives of an installed PySpark after the folder that it is installed in.

    >>> with_archives_last(["/lib/pyspark/python/lib/pyspark.zip", "/opt/spark/python/lib/pyspark.zip", "/lib"])
    ['/opt/spark/python/lib/pyspark.zip', '/lib', '/lib/pyspark/python/lib/pyspark.zip']
    """
    last = [entry for entry in path if _installed_in(entry) in path]
    return [*(entry for entry in path if entry not in last), *last]


def _installed_in(entry: str) -> str | None:
    """The folder that has the package PySpark of which this entry of a path is an archive."""
    folder, name = os.path.split(entry)
    parts = os.path.join("pyspark", "python", "lib")
    return os.path.dirname(folder[: -len(parts)]) if folder.endswith(parts) and name.endswith(".zip") else None


def _start() -> None:
    sys.path[:] = with_archives_last(sys.path)
    # Another module of this name, of the system or of the user, follows this one.
    here, own = os.path.dirname(os.path.abspath(__file__)), sys.modules.pop(__name__)
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
    try:
        import_module(__name__)
    except ImportError as error:
        if error.name != __name__:
            raise
    finally:
        sys.modules.setdefault(__name__, own)


if __name__ == "sitecustomize":
    _start()

__all__ = ["with_archives_last"]
