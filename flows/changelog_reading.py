"""The messages of a changelog, read as rows with weights.

A message says that rows of a table came, changed or left. A format of `uc.changelog` makes a `Reading` for the columns
of the messages of a source; every engine then runs it over the messages that it has.

Guarded by tests/changelogs/test_changelogs_in.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np
import pyarrow as pa

from ..combiners.column_names import PLACES
from ..combiners.rows.columns import flat
from ..errors import InvalidArgument, require_column
from ..panes.grouping.grouping import EVENT_TIME
from ..panes.parcels import AT
from .event_time import EventTime

LOGGER = logging.getLogger("uncombine")

MOST_TOLD = 50
"""The most messages that a process tells of, of those that cannot be read."""


@dataclass(frozen=True)
class WeightedRows:
    """The changes of some messages: a row each, with its weight and the place of its message."""

    rows: pa.Table
    weights: np.ndarray
    """The weights, and 0 for a message that cannot be read: a bad row, whose columns are all null."""
    places: np.ndarray
    """The place of the message of each row, in ascending order."""
    fault: str = ""
    """The reason why the first bad row is one."""


@dataclass(frozen=True)
class UpsertKeys:
    """The keys of a changelog without old values, and the columns that tell which of two versions is the later one."""

    keys: tuple[str, ...]
    order: tuple[str, ...] = ()
    keep_deletes: str | None = None
    mark: str | None = None
    """The text in place of a value that was not sent because it did not change."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that each message must have: its key and its place in the order."""
        return (*self.keys, *self.order)


@dataclass(frozen=True)
class Reading:
    """Reads messages of one schema.

    >>> import pyarrow as pa, uncombine as uc
    >>> messages = pa.table({"x": [1, 1], "row_kind": ["+I", "-D"]})
    >>> uc.changelog.Flink().reading(messages.schema)(messages).to_pydict()
    {'x': [1, 1], 'diff': [1, -1]}
    """

    message_schema: pa.Schema
    """The columns of a message."""
    row: pa.Schema
    """The columns of a row."""
    own: frozenset[str]
    """The columns of a message that the format reads for every row."""
    changes: Callable[[pa.Table, Sequence[str]], WeightedRows]
    """Gives the changes of messages, with these columns of their rows."""
    words: str
    """The format, as text."""
    extra: pa.Schema = field(default_factory=lambda: pa.schema([]))
    """Columns that the format finds in a message and that are no columns of its row."""
    upserted: UpsertKeys | None = None
    strict: bool = False
    """True if a bad row is an error, because nobody would see the count of them."""
    weight: str = "diff"
    """The name of the column of weights."""
    meaning: str = ""
    """The format with the options that decide the weights of rows, as text."""
    event_time: EventTime | None = None
    """The computation of the event times of rows; None if they have them."""

    def __post_init__(self) -> None:
        if self.upserted is not None:
            for name in self.upserted.keys:
                require_column(name, self.row.names, f"keys= of {self.words}")
            for name in self.upserted.order:
                require_column(name, [*self.row.names, *self.beside.names], f"order= of {self.words}")

    def weighted(self, name: str, strict: bool) -> Reading:
        """The reading with this name for the column of weights; raises if the name is taken."""
        if name in (*self.row.names, *self.beside.names):
            raise InvalidArgument(
                f"{self.words} gives the weights of its rows in column {name!r}, and a row has a column of that name: "
                "name the weights otherwise with diff="
            )
        return replace(self, weight=name, strict=strict)

    def timed(self, event_time: EventTime) -> Reading:
        """The reading with rows whose event times are computed, so that a retraction has the time of its row."""
        over = event_time.over(self.row)
        return replace(self, row=over.schema, event_time=over)

    def typed(self, columns: pa.Schema) -> pa.Schema:
        """The columns of other messages, of inferred types, with the types of those for which the reading was made."""
        own = self.message_schema
        typed = [own.field(f.name) if f.name in own.names else f for f in columns]
        missing = [f for f in own if f.name in self.own and f.name not in columns.names]
        return pa.schema([*typed, *(missing if len(missing) < len(self.own) else [])])

    @property
    def beside(self) -> pa.Schema:
        """The columns of a message that are no columns of its row. A row goes on without them."""
        names = {*self.own, *self.row.names, *self.extra.names}
        return pa.schema([*self.extra, *(f for f in self.message_schema if f.name not in names)])

    @property
    def schema(self) -> pa.Schema:
        """The columns of a row, those beside it, and its weight."""
        return pa.schema([*self.row, *self.beside, pa.field(self.weight, pa.int64())])

    def needs(self, columns: Sequence[str]) -> list[str]:
        """The columns of messages from which these columns of rows are made."""
        wanted = {*self._read(columns), *self.own, *(self.upserted.order if self.upserted else ())}
        return [name for name in self.message_schema.names if name in wanted]

    def __call__(self, messages: pa.Table, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of messages, with these columns; a processing time in column `AT` stays with its rows."""
        columns = self.schema.names if columns is None else columns
        changes = self.changes(messages, self._read(n for n in (*self.row.names, *self.extra.names) if n in columns))
        if self.event_time is not None and EVENT_TIME in columns:
            changes = replace(changes, rows=self.event_time(changes.rows))
        changes = self._ordered(messages, changes)
        if changes.fault:
            self._tell(messages, changes)
        out, places = {}, None
        for name in (*columns, *([AT] if AT in messages.column_names else [])):
            if name == self.weight:
                out[name] = pa.array(changes.weights, pa.int64())
            elif name in changes.rows.column_names:
                out[name] = changes.rows[name]
            else:
                places = pa.array(changes.places) if places is None else places
                whole = len(changes.places) == messages.num_rows and bool((np.diff(changes.places) == 1).all())
                out[name] = messages[name] if whole else messages[name].take(places)
        return pa.table(out)

    def _tell(self, messages: pa.Table, changes: WeightedRows) -> None:
        """Say which messages are left out, and why, or raise for the first of them; a process says it of a few."""
        for place in changes.places[changes.weights == 0]:
            if not self.strict and next(_told) >= MOST_TOLD:
                return
            message = messages.slice(int(place), 1)
            fault = self.changes(message, []).fault or changes.fault
            if PLACES[1] in messages.column_names:
                file, line = (message[name][0].as_py() for name in PLACES)
                fault = f"line {line} of {file}: {fault}"
            if self.strict:
                raise InvalidArgument(f"{fault}; on_bad_row='leave_out' of uc.Files leaves such messages out")
            LOGGER.warning("left out: a message that cannot be read: %s", fault)

    def _read(self, columns: Iterable[str]) -> list[str]:
        """The columns that messages have for these columns of rows."""
        return list(columns) if self.event_time is None else self.event_time.needs(columns)

    def _ordered(self, messages: pa.Table, changes: WeightedRows) -> WeightedRows:
        """The changes, of which those without a place in the order are bad."""
        for name in self.upserted.order if self.upserted else ():
            column = changes.rows[name] if name in changes.rows.column_names else None
            if column is None and name in messages.column_names:
                column = messages[name].take(pa.array(changes.places)) if messages[name].null_count else None
            if column is None or not column.null_count:
                continue
            missing = np.asarray(flat(pa.chunked_array([column])).is_null()) & (changes.weights != 0)
            if missing.any():
                fault = changes.fault or f"order= of {self.words}: column {name!r} is null in a row"
                changes = without(changes, missing, fault)
        return changes


_told = count()


def without(changes: WeightedRows, bad: np.ndarray, fault: str) -> WeightedRows:
    """The changes, of which these are bad rows."""
    places = pa.array(np.arange(len(bad)), mask=bad)
    return replace(changes, rows=changes.rows.take(places), weights=np.where(bad, 0, changes.weights), fault=fault)


def divided(rows: pa.Table, weight: str) -> tuple[pa.Table, pa.Table]:
    """The rows without the bad ones, and the bad ones, for a flow without a step that tells them apart."""
    weights = np.asarray(flat(rows[weight]))
    if weights.all():
        return rows, rows.slice(0, 0)
    return rows.filter(pa.array(weights != 0)), rows.filter(pa.array(weights == 0))


__all__ = ["Reading", "UpsertKeys", "WeightedRows", "divided", "without"]
