"""A target: the place of a live table, which takes the changes of a batch together with the number of the batch.

Guarded by tests/tables/test_tables.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

import pyarrow as pa

from ..errors import LibraryMissing, TableMismatch
from ..panes.state.seed import SeedMaker
from .changes import Changes
from .failures import attempt, is_network
from .layout import Layout

T = TypeVar("T")

BATCHES = "_uncombine_batches"
"""The table in a database that has the last batch of each live table."""

NONE_YET = -1
"""The number of the last batch of a table that has taken none."""


@dataclass(frozen=True)
class TableFacts:
    """The facts that a target keeps with a table: who writes it, its last batch, and its layout."""

    owner: str
    batch: int
    layout: str


class Target(ABC):
    """The place of a table, which needs the library of its kind only when it is used."""

    name: str
    """The words for the table in messages, without credentials."""

    @abstractmethod
    def check(self, layout: Layout) -> None:
        """Raise if the library is not installed, or if the target cannot have such a table."""

    def beside(self, table: Target) -> Target:
        """The place of a second table of the query that keeps `table`."""
        return self

    @abstractmethod
    def writer(self, layout: Layout, owner: str) -> Writer:
        """A writer of the table; nothing is opened yet."""

    def __repr__(self) -> str:
        return self.name


class Writer(ABC):
    """Writes one table. `owner` is the id of the checkpoint, or of the call, that the table belongs to."""

    adapts = False
    """True for the writer of a flow that was changed, which adds columns to the table that it takes over."""
    waits_at_start = False
    """True if the table can be away for a moment when a query starts, because others read it."""

    def __init__(self, name: str, layout: Layout, owner: str) -> None:
        self.name, self.layout, self.owner = name, layout, owner

    @abstractmethod
    def facts(self) -> TableFacts | None:
        """The facts of the table that is there, of whatever writer; None if there is none."""

    @abstractmethod
    def start(self, maker: SeedMaker | None = None) -> int:
        """Make the table, or check that it is the one of this writer; the number of its last batch.

        With the maker of a seed, the table that it wrote becomes the one of this writer, and has none of its batches.
        """

    @abstractmethod
    def apply(self, batch: int, changes: Changes) -> bool:
        """Apply a batch, all of it or nothing; False if the table has the batch already."""

    def shares(self, other: Writer) -> bool:
        """True if both tables can take a batch in one transaction."""
        return False

    def apply_both(self, batch: int, changes: Changes, other: Writer, more: Changes) -> bool:
        """Apply a batch to two tables in one transaction; False if this one has it already."""
        raise NotImplementedError

    @abstractmethod
    def once(self, changes: Changes) -> None:
        """Make the table of these changes, all of it or nothing."""

    @abstractmethod
    def read(self, limit: int | None = None) -> pa.Table:
        """The rows of the table, in the order of the keys if only the first ones are wanted."""

    def drop(self) -> None:
        """Drop the table, which is there."""
        raise TableMismatch(f"{self.name} cannot be dropped here: drop it by its own tools, or name another")

    def files(self) -> list[str] | None:
        """The Parquet files that have the rows of the table now, if the target has such files."""
        return None

    def finish(self) -> None:  # noqa: B027
        """Do what is left to do after the last batch."""

    def close(self) -> None:  # noqa: B027
        """Give back what is open; the writer can go on."""

    def attempt(self, work: Callable[[], T]) -> T:
        """Do work with this writer; an error of its library that shows a secret, or a server that is away, is ours."""
        return attempt(work, self.name, self.secrets, self.is_away)

    def secrets(self) -> Sequence[str]:
        """The texts that no message may show."""
        return ()

    def is_away(self, error: BaseException) -> bool:
        """True for an error after which another attempt may succeed."""
        return is_network(error)

    def takes_over(self, facts: TableFacts | None, maker: SeedMaker | None) -> bool:
        """True if the table is to be taken over from the maker of a seed; raises if it is another, or not as far."""
        if maker is None or (facts is not None and facts.owner == self.owner):
            return False
        if facts is None or facts.owner != maker.owner:
            raise TableMismatch(
                f"{self.name} is not the table of the query or the run that made the seed, and the state of a seed "
                "fits no other: name that one, or a copy of it"
            )
        if facts.batch != maker.batch:
            raise TableMismatch(
                f"{self.name} has the batches up to {facts.batch}, and the seed those up to {maker.batch}: let the "
                "query of the table end its last batch, stop it, and make a seed of its checkpoint then"
            )
        self.check_layout(facts)
        return True

    def check(self, facts: TableFacts) -> None:
        """Raise unless a table with these facts is the one of this writer."""
        if facts.owner != self.owner:
            raise TableMismatch(
                f"{self.name} is written with another checkpoint, or by a run, which writes its table once: go on with "
                "that checkpoint, or choose another table"
            )
        self.check_layout(facts)

    def check_layout(self, facts: TableFacts) -> None:
        """Raise unless a table with these facts has the rows of this writer."""
        changed = self.layout.differences(facts.layout)
        if changed and self.adapts and not self.layout.follows(facts.layout):
            raise TableMismatch(
                f"{self.name} cannot become the table of the changed flow ({changed}), since it takes new and dropped "
                "columns alone: write the changed flow into a new table, from flow.seed(history, to=)"
            )
        if changed and not self.adapts:
            raise TableMismatch(
                f"{self.name} was made for other rows ({changed}): start with another table and another checkpoint"
            )

    def require_columns(self, names: Collection[str]) -> None:
        """Raise unless the table has all columns of the flow."""
        for name in self.layout.schema.names:
            if name not in names:
                raise TableMismatch(
                    f"{self.name} has no column {name!r}, which the flow has: something else has dropped it; add it "
                    "again, or start with another table and another checkpoint"
                )

    def is_done(self, facts: TableFacts | None, batch: int) -> bool:
        """True if the table has the batch; raises unless it has it or the one before."""
        if facts is None:
            raise self.gone()
        self.check(facts)
        if facts.batch < batch - 1:
            raise self.lacks(facts.batch, batch)
        return facts.batch >= batch

    def lacks(self, last: int, batch: int) -> TableMismatch:
        """The error for a table whose last batch is not the one before this batch."""
        return TableMismatch(
            f"{self.name} has the batches up to {last}, but the checkpoint goes on with batch {batch}: start with "
            "another table and another checkpoint"
        )

    def foreign(self) -> TableMismatch:
        """The error for a table that is there although no live table has made it."""
        return TableMismatch(
            f"{self.name} has rows that were not written here: choose another table, or delete this one"
        )

    def gone(self) -> TableMismatch:
        """The error for a table that was there, and is there no more."""
        return TableMismatch(f"{self.name} is gone: start with a new checkpoint to make it again")

    def unfit(self, applied: int, changes: Changes) -> TableMismatch:
        """The error for changes that do not fit the rows of the table."""
        if applied > changes.rows:
            return TableMismatch(
                f"{self.name} has several rows of one key: something else has added some; delete those that the flow "
                "did not write, or start with another table and another checkpoint"
            )
        return TableMismatch(
            f"{changes.rows - applied} of {changes.rows} changes do not fit the rows of {self.name}: something else "
            "has written it, the input retracts rows that it never added, or two rows have one key: name more columns "
            "in keys="
        )


def library(name: str, extra: str) -> Any:
    """A module that an extra of the package installs; raises with the command if it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        raise LibraryMissing(
            f"a table of {extra} needs a library that is not installed: pip install 'uncombine[{extra}]'"
        ) from None


__all__ = ["BATCHES", "NONE_YET", "TableFacts", "Target", "Writer", "library"]
