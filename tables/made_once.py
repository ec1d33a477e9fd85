"""The parts of a catalog that each of its writers makes if they are not there, and that only one can make.

Guarded by tests/tables/test_tables_iceberg.py.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_BY_ANOTHER = re.compile("already exists|unique|is locked", re.IGNORECASE)
"""The words of a database for what another writer has made, or makes just now."""

ATTEMPTS, PAUSE = 20, 0.05
"""A catalog and a namespace are a few tables and rows, each of which another writer can make first; and the longest
pause in seconds, of which each writer takes another part."""


def made_once(make: Callable[[], T]) -> T:
    """Make a catalog that is not there yet; again if another writer has just made a part of it.

    >>> made_once(lambda: "a catalog")
    'a catalog'
    """
    for left in reversed(range(ATTEMPTS)):
        try:
            return make()
        except Exception as error:  # of a database, of which pyiceberg has several
            if not left or not _BY_ANOTHER.search(f"{type(error).__name__} {error}"):
                raise
        time.sleep(PAUSE * random.random())
    raise AssertionError


__all__ = ["made_once"]
