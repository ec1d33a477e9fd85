"""The rows that a source of this process has by itself, for a run without a script.

Guarded by tests/local/test_local_final.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import pyarrow as pa

from ..files.reading import LeaveOut, ignore
from ..flows.engine import Source
from ..flows.flow import Flow
from .files_until import ReadUntil


class SourceRows(ABC):
    """The rows of a source: a table, or those of files.

    Rows of files that cannot be read go to `leave_out`, if they are left out. `needed` are the columns without which a
    row is one of them; None means all columns.
    """

    @abstractmethod
    def whole(self, needed: frozenset[str] | None = None, leave_out: LeaveOut = ignore) -> pa.Table | None:
        """All rows at once; None for a source that has columns and no rows."""

    @property
    @abstractmethod
    def many(self) -> bool:
        """True if the rows can be more than one thread should combine."""

    @abstractmethod
    def readers(
        self,
        columns: Sequence[str],
        coded: frozenset[str] = frozenset(),
        needed: frozenset[str] | None = None,
        leave_out: LeaveOut = ignore,
    ) -> Sequence[Iterator[pa.Table]]:
        """These columns of all rows, in tables, from readers that do not depend on each other.

        The texts of columns in `coded` may stay dictionaries.
        """

    def ended_by(self, until: ReadUntil) -> Source[Flow] | None:
        """The source of the rows that are read until a trigger fires; None if it has no files."""
        return None


__all__ = ["SourceRows"]
