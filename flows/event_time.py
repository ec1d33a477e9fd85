"""Event times that a source does not have as such: an expression computes them, before anything else sees its rows.

The result is the column `event_time`, beside the columns of the rows, so that a row whose time is bad is shown with
what it had. If the rows have a column of that name, only the expression over it may take its place.

Guarded by tests/flows/test_event_time.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from ..combiners.expressions.expr import Expr, col
from ..combiners.rows.columns import flat
from ..errors import InvalidArgument, OutOfRange, TypeMismatch
from ..panes.grouping.grouping import EVENT_TIME
from ..windows import time_column, timestamps
from ..windows.times import UTC_MICROS


@dataclass(frozen=True)
class EventTime:
    """Computes the event time of each row; a value that is no time gives null, and so a bad row.

    >>> import pyarrow as pa, uncombine as uc
    >>> rows = pa.table({"ms": [1_453_291_226_000, -(2**62)]})
    >>> times = EventTime(uc.col("ms").cast_time("ms")).over(rows.schema)
    >>> times(rows)["event_time"].cast("string").to_pylist()
    ['2016-01-20 12:00:26.000000Z', None]
    """

    value: Expr
    rows: pa.Schema = field(default_factory=lambda: pa.schema([]))
    """The columns of the rows before it."""

    def over(self, rows: pa.Schema) -> EventTime:
        """The same over rows with these columns; raises if they do not fit."""
        kind = self.value.type(rows)
        if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            raise TypeMismatch(
                f"time= takes an expression of times, but {self.value!r} is {kind}: write x.cast_time(), with a unit "
                "such as 'ms' for numbers or a format such as '%d.%m.%Y' for texts"
            )
        if not self.value.columns:
            raise InvalidArgument(f"time={self.value!r} is the same for all rows: name a column in it")
        if EVENT_TIME in rows.names and EVENT_TIME not in self.value.columns:
            raise InvalidArgument(
                f"time={self.value!r} gives its times in column {EVENT_TIME!r}, and the rows have another column of "
                "that name: give that one another name"
            )
        return EventTime(self.value, rows)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows after it."""
        at = pa.field(EVENT_TIME, UTC_MICROS)
        if EVENT_TIME not in self.rows.names:
            return self.rows.append(at)
        return self.rows.set(self.rows.get_field_index(EVENT_TIME), at)

    def needs(self, columns: Iterable[str]) -> list[str]:
        """The columns of rows from which these columns after it are made."""
        out = dict.fromkeys(columns)
        if EVENT_TIME in out:
            del out[EVENT_TIME]
            out.update(dict.fromkeys(self.value.columns))
        return list(out)

    def __call__(self, rows: pa.Table) -> pa.Table:
        """The rows with their event times."""
        times, valid = time_column(flat(pa.chunked_array(self._computed(rows))))
        column = timestamps(times)
        if not valid.all():
            column = pc.if_else(pa.array(valid), column, pa.scalar(None, column.type))
        if EVENT_TIME in rows.column_names:
            return rows.set_column(rows.column_names.index(EVENT_TIME), EVENT_TIME, column)
        return rows.append_column(EVENT_TIME, column)

    def _computed(self, rows: pa.Table) -> list[pa.Array]:
        """The values; those of rows on which the expression fails are null."""
        try:
            column = self.value.evaluate(rows)
        except OutOfRange:
            if rows.num_rows == 1:
                return [pa.nulls(1, self.value.type(rows.schema))]
            middle = rows.num_rows // 2
            return [*self._computed(rows.slice(0, middle)), *self._computed(rows.slice(middle))]
        return column.chunks or [pa.array([], column.type)] if isinstance(column, pa.ChunkedArray) else [column]


def event_time_of(time: Expr | str, form: str | None) -> EventTime | None:
    """The computation that `time=` and `time_format=` ask for; None if `time` is the column of event times itself."""
    if isinstance(time, Expr):
        if form is not None:
            raise InvalidArgument(
                f"time_format= is for a column that time= names, but time= is {time!r}: write x.cast_time({form!r})"
            )
        return EventTime(time)
    return None if form is None else EventTime(col(time).cast_time(form))


__all__ = ["EventTime", "event_time_of"]
