"""The offset of a stream of the versions of a table: the last version that is read.

Guarded by tests/sparkops/planners/test_version_planner.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import StateMismatch
from .planner import Offset

FORM = 1
"""The number of the form of an offset; another one is refused."""


@dataclass(frozen=True)
class VersionOffset:
    """The place in a stream of versions after a batch.

    >>> VersionOffset.of(VersionOffset(table="t", version=3).stored)
    VersionOffset(table='t', version=3, begun=None)
    """

    table: str
    """The identity of the table."""
    version: int | None = None
    """The last version that is read; None before the first batch of all."""
    begun: int | None = None
    """The version after which the stream began, if it reads changes alone; None if the rows of the table came first."""

    @property
    def stored(self) -> Offset:
        """The offset as Spark keeps it."""
        return {"table": self.table, "version": self.version, "begun": self.begun, "form": FORM}

    @property
    def last(self) -> int | None:
        """The version after which the next batch begins; None if it is the rows of the table."""
        return self.begun if self.version is None else self.version

    @staticmethod
    def planned(stored: Any) -> bool:
        """True for the offset of versions, in whatever form."""
        return isinstance(stored, Mapping) and "version" in stored

    @classmethod
    def of(cls, stored: Offset, table: str | None = None) -> VersionOffset:
        """The offset that Spark has kept; raises if it is that of another source, or of another table."""
        if not cls.planned(stored) or stored.get("form") != FORM:
            raise StateMismatch(
                "the checkpoint was not written by a stream of uc.TableChanges of this version, so it does not say "
                "which versions are read: go on as it was, or start from a new checkpoint"
            )
        if table is not None and stored["table"] != table:
            raise StateMismatch(
                "the checkpoint has read another table, or the table was made again, so its versions say nothing of "
                "this one: start from a new checkpoint"
            )
        return cls(table=stored["table"], version=stored["version"], begun=stored["begun"])


__all__ = ["VersionOffset"]
