"""A planner: it says which parts of a source the next batch of a stream reads, and which tasks read them.

Spark asks it on the driver, in a process of its own, and keeps each offset that it gives in the log of the checkpoint.
After a restart Spark hands the last offset to a new planner. So all that a planner must remember is in an offset, and
what it keeps besides is a cache.

Guarded by tests/sparkops/planners/test_data_source.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Self, TypeAlias

import pyarrow as pa

Offset: TypeAlias = Mapping[str, Any]
"""The place in a stream after a batch, as values for JSON."""


class Planner(ABC):
    """Plans the batches of a stream. It travels to the process in which Spark plans, and lives there."""

    columns: str
    """The columns of the rows that name parts, in the words of SQL."""
    rows: pa.Schema
    """The columns of the rows that name parts."""
    most: int | None = None
    """The largest number of parts in a batch; None for no limit."""

    first: Offset
    """The offset before the first batch."""
    follows: bool = False
    """True if it begins where another query has ended, whose state is there before any row."""

    def begin(self) -> Offset:
        """The offset before the first batch."""
        return self.first

    def begun(self, offset: Offset) -> Self:
        """A planner of the same source that begins at an offset."""
        planner = copy(self)
        planner.first, planner.follows = offset, True
        return planner

    @abstractmethod
    def after(self, offset: Offset, most: int | None) -> Offset:
        """The offset after the next batch, which has at most so many parts; the same one if there is nothing to do."""

    def note(self, offset: Offset) -> None:  # noqa: B027
        """Take note that all batches before an offset are done; it may be told more than once."""

    @abstractmethod
    def tasks(self, start: Offset, end: Offset) -> Sequence[pa.RecordBatch]:
        """The rows of each task of the batch between two offsets: the same parts whenever it is asked."""

    def waking(self) -> Sequence[pa.RecordBatch]:
        """The row of a first batch without anything to read: it names nothing, and each shard gets word of it."""
        return [pa.RecordBatch.from_pylist([{}], schema=self.rows)]

    @abstractmethod
    def freeze(self) -> None:
        """Take from now on what is there now for all that will ever come."""


__all__ = ["Offset", "Planner"]
