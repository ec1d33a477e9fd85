"""Files that take the place of others by one rename, so that a reader has the one or the other, each of them whole.

Guarded by tests/tables/test_tables_parquet.py and tests/tables/test_tables_published.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4


@contextmanager
def replaced(path: Path, owner: str) -> Iterator[BinaryIO]:
    """A file to write beside `path`, whose place it takes at the end; after an error nothing of it is left.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a"
    >>> with replaced(path, "me") as file:
    ...     print(file.write(b"whole"), path.exists())
    5 False
    >>> path.read_text()
    'whole'
    """
    beside = path.parent / f".{owner}-{uuid4().hex}"
    try:
        with open(beside, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        _synced(path.parent)
    finally:
        beside.unlink(missing_ok=True)


def remove_leftovers(folder: Path, owner: str) -> None:
    """Remove the files that a process of this owner was writing when it was killed."""
    for left in folder.glob(f".{owner}-*"):
        left.unlink(missing_ok=True)


def _synced(folder: Path) -> None:
    """Make the names in a folder last, also if the machine stops."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


__all__ = ["remove_leftovers", "replaced"]
