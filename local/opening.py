"""The opening of a flow without Spark, over anything that has rows, or the columns of rows to come.

Guarded by tests/test_doors.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ..changelogs.flows import MessageTypes, UnreadSource
from ..combiners.aggregate import as_table
from ..combiners.rows.plain_types import plain_schema, plain_table
from ..errors import UnknownColumn
from ..files.files import Files, is_path
from ..flows.changelog_reading import Reading
from ..flows.event_time import EventTime
from ..flows.settings import Settings
from ..kafka.kafka import Kafka
from ..lakehouse.table_changes import TableChanges
from .data_files import files_opened
from .local_inputs import times_read
from .script import Clock, Elements, Entry, Watermark, check_script, rows_table, tables_of, with_times
from .sources import LocalSource
from .table_versions import versions_opened
from .topics import topics_opened


def opened(rows: Any, settings: Settings, messages: MessageTypes | None = None) -> UnreadSource:
    """Anything that a flow takes without Spark, ready to be read; `messages` is for those of a changelog."""
    if is_path(rows):
        rows = Files(rows)
    if isinstance(rows, Files):
        return files_opened(rows, settings, messages)
    if isinstance(rows, Kafka):
        return topics_opened(rows, settings, messages is not None)
    if isinstance(rows, TableChanges):
        return versions_opened(rows, settings)
    streaming = settings.strategy is not None
    if isinstance(rows, pa.Schema):
        return _of_schema(plain_schema(rows), streaming)
    if _is_script(rows):
        return _of_script(rows, settings, streaming)
    return _of_table(rows, settings, streaming)


def _of_schema(schema: pa.Schema, streaming: bool, script: Sequence[Entry] | None = None) -> UnreadSource:
    """Rows that come in a script."""

    def source(reading: Reading | None, event_time: EventTime | None) -> LocalSource:
        columns = schema if event_time is None else event_time.schema
        return LocalSource(columns if reading is None else reading.schema, streaming, reading=reading, script=script)

    return UnreadSource(schema, source, strict=False)


def _of_script(script: Sequence[Entry], settings: Settings, streaming: bool) -> UnreadSource:
    entries = check_script(script)
    own = [entry for entry in entries if isinstance(entry, Elements) and entry.input in (None, settings.name)]
    tables = tables_of(own, times_read(settings))
    schema = next((table.schema for table in tables if table is not None and table.num_columns), None)
    if schema is None:
        raise UnknownColumn(
            "the script has no rows, so their columns are unknown: give uc.flow() their schema, and write "
            "flow.run(script)"
        )
    return _of_schema(plain_schema(schema), streaming, script)


def _of_table(rows: Any, settings: Settings, streaming: bool) -> UnreadSource:
    times = times_read(settings)
    if isinstance(rows, list | tuple) and all(isinstance(row, Mapping) for row in rows):
        table = rows_table(rows, times, "the rows")
    else:
        table = as_table(rows)

    def source(reading: Reading | None, event_time: EventTime | None) -> LocalSource:
        read = table if reading is None else reading(plain_table(table))
        rows = plain_table(with_times(read, times))
        rows = rows if event_time is None else event_time(rows)
        return LocalSource(
            schema=rows.schema,
            streaming=streaming,
            rows=rows,
            reading=None if reading is None else replace(reading, strict=False),
        )

    return UnreadSource(plain_schema(table.schema), source, strict=True)


def _is_script(rows: Any) -> bool:
    """True for a list with an entry of a script."""
    return isinstance(rows, list | tuple) and any(isinstance(entry, Elements | Watermark | Clock) for entry in rows)


__all__ = ["opened"]
