"""A source in this process whose rows lie elsewhere, and are read when a run asks for them.

Guarded by tests/local/test_local_files.py and tests/kafka/test_local_kafka.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from ..combiners.column_names import PLACES
from ..files.reading import LeaveOut, ignore
from ..flows.changelog_reading import Reading
from ..flows.event_time import EventTime
from ..panes.grouping.grouping import EVENT_TIME
from .sources import WithoutSpark
from .threads import in_threads


@dataclass(frozen=True)
class MadeRows:
    """The rows that are made of those which are read: messages of a changelog are taken as rows, or times computed."""

    read: pa.Schema
    """The columns of the rows that are read."""
    reading: Reading | None = None
    event_time: EventTime | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows that are made."""
        if self.reading is not None:
            return self.reading.schema
        return self.read if self.event_time is None else self.event_time.schema

    @property
    def words(self) -> str:
        """The way in which messages are read, for the line that describes a source."""
        return "" if self.reading is None else f", messages read by {self.reading.words}"

    def needs(self, columns: Sequence[str]) -> list[str]:
        """The columns to be read for these columns of the rows that are made."""
        if self.reading is not None:
            return [*self.reading.needs(columns), *(name for name in PLACES if name in self.read.names)]
        return list(columns) if self.event_time is None else self.event_time.needs(columns)

    def __call__(self, rows: pa.Table, columns: Sequence[str]) -> pa.Table:
        """These columns of the rows that are made of rows that were read."""
        if self.reading is not None:
            return self.reading(rows, columns)
        timed = rows if self.event_time is None or EVENT_TIME not in columns else self.event_time(rows)
        return timed.select(list(columns))

    def strict(self, strict: bool) -> MadeRows:
        """The same, where a message that cannot be read is an error or is left out."""
        return self if self.reading is None else replace(self, reading=replace(self.reading, strict=strict))


@dataclass(frozen=True, eq=False, kw_only=True)
class ReadSource(WithoutSpark):
    """A source that is read by several threads."""

    made: MadeRows
    streaming: bool
    schema: pa.Schema = field(init=False)
    reading: Reading | None = field(init=False)
    has_rows = many = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", self.made.schema)
        object.__setattr__(self, "reading", self.made.reading)

    def whole(self, needed: frozenset[str] | None = None, leave_out: LeaveOut = ignore) -> pa.Table:
        readers = self.readers(self.schema.names, needed=needed, leave_out=leave_out)
        return pa.concat_tables([self.schema.empty_table(), *in_threads(lambda table: table, readers)])


__all__ = ["MadeRows", "ReadSource"]
