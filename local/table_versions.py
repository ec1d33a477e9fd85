"""A table of a lakehouse as the source of a run in this process: threads read the files of its versions.

Guarded by tests/lakehouse/test_delta_changes.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..changelogs.flows import UnreadSource
from ..combiners.rows.plain_types import plain_table
from ..errors import InvalidArgument
from ..files.reading import LeaveOut, ignore
from ..flows.changelog_reading import Reading
from ..flows.event_time import EventTime
from ..flows.settings import Settings
from ..lakehouse.changed_files import Part
from ..lakehouse.table_changes import TableChanges, check_columns
from ..lakehouse.table_rows import TableRows
from ..panes.watermarks.watermark_strategies import IngressTime
from .read_source import MadeRows, ReadSource
from .topics import columns_named


@dataclass(frozen=True, eq=False, kw_only=True)
class LocalVersions(ReadSource):
    """The rows and changes of a table."""

    changes: TableChanges
    table_rows: TableRows

    def describe(self) -> str:
        return self.changes.words

    def readers(
        self,
        columns: Sequence[str],
        coded: frozenset[str] = frozenset(),
        needed: frozenset[str] | None = None,
        leave_out: LeaveOut = ignore,
    ) -> list[Iterator[pa.Table]]:
        return [self._read(part, columns) for part in parts_now(self.changes, self.table_rows)]

    def _read(self, part: Part, columns: Sequence[str]) -> Iterator[pa.Table]:
        for rows in self.table_rows(part, self.made.needs(columns)):
            yield self.made(plain_table(rows), columns)


def parts_now(changes: TableChanges, table_rows: TableRows, last: int | None = None) -> list[Part]:
    """The parts of the versions that a bounded flow reads, up to the end that it names or to a last one."""
    versions = table_rows.versions
    end = changes.last(versions) if last is None else last
    begin = changes.first(versions)
    return versions.snapshot(end) if begin is None else versions.changes(begin, end)


def with_weights(settings: Settings, changelog: bool) -> Settings:
    """The options of a flow over a table, whose rows have weights; raises for those that would lose retractions."""
    if changelog:
        raise InvalidArgument(
            "changelog= reads messages, and the rows of uc.TableChanges have weights already: leave it out, or read a "
            "table of messages as files, by uc.Files"
        )
    if isinstance(settings.strategy, IngressTime):
        raise InvalidArgument(
            "watermark=IngressTime() gives a retraction another event time than its row has: name a column of the "
            "table in time="
        )
    computed = () if settings.event_time is None else settings.event_time.value.columns
    check_columns([settings.time, *computed])
    return settings


def rows_of(changes: TableChanges, settings: Settings) -> TableRows:
    """The rows of a table, with the columns that a flow names; raises for a flow that would not see retractions."""
    if settings.diff is None:
        raise InvalidArgument(
            "the rows of uc.TableChanges have weights, and this flow has none: give uc.flow() diff= where it starts"
        )
    return changes.opened(settings.diff, columns_named(settings))


def versions_opened(changes: TableChanges, settings: Settings) -> UnreadSource:
    """The table, looked at, with the columns of its rows; raises if a version that is to be read is lost."""
    changes.check_bounded()
    table_rows = rows_of(changes, settings)
    parts_now(changes, table_rows)

    def source(reading: Reading | None, event_time: EventTime | None) -> LocalVersions:
        return LocalVersions(
            made=MadeRows(table_rows.schema, reading, event_time),
            streaming=settings.strategy is not None,
            changes=changes,
            table_rows=table_rows,
        )

    return UnreadSource(table_rows.schema, source, strict=True)


__all__ = ["LocalVersions", "parts_now", "rows_of", "versions_opened", "with_weights"]
