"""The versions of a table: which there are, which files each has changed, and the rows of these files.

Guarded by tests/lakehouse/test_delta_changes.py and tests/lakehouse/test_iceberg_changes.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from ..errors import VersionsLost
from ..tables.failures import attempt, is_network, says_network
from .changed_files import ChangedFile, Part

T = TypeVar("T")

NOTHING = -1
"""The version before the first one, in which a table has no rows."""


class TableVersions(ABC):
    """The versions of one table, by numbers. It travels to tasks, and keeps nothing there but caches."""

    name: str
    """The words for the table in messages, without credentials."""
    table: str
    """The identity of the table: another one in its place has another."""
    schema: pa.Schema
    """The columns of its rows, as they are when a flow is made."""

    @abstractmethod
    def newest(self, known: int | None = None) -> int:
        """The last version; `known` is one that it is not before."""

    @abstractmethod
    def at(self, time: int) -> int:
        """The last version that was committed at a time, in microseconds, or before it."""

    @abstractmethod
    def require(self, version: int) -> None:
        """Raise unless there is such a version, `NOTHING` included."""

    @abstractmethod
    def after(self, version: int, last: int) -> list[int]:
        """The versions after one of them, up to another, in their order."""

    @abstractmethod
    def snapshot(self, version: int) -> list[Part]:
        """All rows of a version, in parts; raises if a file of them is gone."""

    @abstractmethod
    def changes(self, after: int, last: int) -> list[Part]:
        """The changes of all versions after one of them up to another, in parts; raises if a file of them is gone."""

    @abstractmethod
    def rows(
        self, part: Part, file: ChangedFile, columns: Sequence[str]
    ) -> Iterator[tuple[pa.Table, np.ndarray | None]]:
        """The rows of a file of a part, with these columns, and their weights if they have some of their own."""

    def secrets(self) -> Sequence[str]:
        """The texts that no message may show."""
        return ()

    def attempt(self, work: Callable[[], T]) -> T:
        """Do work on the table; an error that shows a secret, or storage that is away, is one of ours."""
        return attempt(work, self.name, self.secrets, lambda error: is_network(error) or _is_of_storage(error))

    def lost(self, version: int, what: str) -> VersionsLost:
        """The error for changes that nobody can read any more."""
        return VersionsLost(
            f"{self.name} has lost the changes of version {version} ({what}), as when it is vacuumed or its history "
            "expires: begin again with its rows of now, from a new checkpoint and without start=, and keep its history "
            "longer than a query may stand still"
        )


def _is_of_storage(error: Any) -> bool:
    """True for an error of the network that a library for tables wraps in one of its own."""
    return type(error).__module__.partition(".")[0] in ("_internal", "deltalake", "pyiceberg") and says_network(error)


__all__ = ["NOTHING", "TableVersions"]
