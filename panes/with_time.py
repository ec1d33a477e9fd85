"""Event times that a flow computes: `with_time` replaces the time of each row, and the watermark waits for it.

Guarded by tests/panes/test_with_time.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..combiners.expressions.expr import Expr
from ..combiners.rows.columns import flat
from ..errors import InvalidArgument, TypeMismatch, require_column
from ..windows import Span, span, time_column, timestamps
from ..windows.times import UTC_MICROS
from .transforms import StorableField, Transform, function_of, values_of


@dataclass(frozen=True)
class WithTime(Transform):
    """Gives each row another event time, at most `at_most_back` before the one it had.

    A row that goes further back has no time, so that the next step counts it as a bad row. Without a next step it stays
    in the result with a null time.

    >>> import pyarrow as pa, uncombine as uc
    >>> from uncombine.panes.with_time import with_time
    >>> clock = pa.timestamp("us", "UTC")
    >>> rows = pa.table({"ts": pa.array([90, 90], clock), "begun": pa.array([85, 10], clock)})
    >>> with_time("ts", uc.col("begun"), "10 us").apply(rows)["ts"].is_null().to_pylist()
    [False, True]
    """

    time: str
    value: Expr | Callable[[pa.Table], Any]
    at_most_back: Span

    word = "with_time"

    def meaning(self, columns: frozenset[str] | None) -> Mapping[str, Any]:
        used = columns is None or self.time in columns
        return {self.time: self.value, "at_most_back": self.at_most_back} if used else {}

    @property
    def back(self) -> int:
        return int(self.at_most_back)

    @property
    def functions(self) -> bool:
        return not isinstance(self.value, Expr)

    def may_set(self, column: str) -> bool:
        return column == self.time

    def apply(self, table: pa.Table) -> pa.Table:
        require_column(self.time, table.column_names, "with_time()")
        times, valid = time_column(flat(table[self.time]))
        new_times, new_valid = time_column(self._computed(table))
        # A difference of two times in the years 1 to 9999 does not wrap around.
        valid &= new_valid & (times - new_times <= self.back)
        column = timestamps(new_times)
        if not valid.all():
            column = pc.if_else(pa.array(valid), column, pa.scalar(None, column.type))
        return table.set_column(table.column_names.index(self.time), self.time, column)

    def _computed(self, table: pa.Table) -> pa.Array | pa.ChunkedArray:
        column = values_of(self.value, table, "with_time()")
        if pa.types.is_null(column.type):  # a list without a time has no type
            return column.cast(UTC_MICROS)
        if not (pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)):
            raise TypeMismatch(
                f"with_time() takes a time for each row, but was given {column.type}: cast it to a timestamp"
            )
        return column

    def carrying(self, table: pa.Table, column: str) -> pa.Table:
        return self.apply(table.drop_columns([column])).append_column(column, table[column])

    def before(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        if columns is None or not isinstance(self.value, Expr):
            return None
        return columns | {self.time, *self.value.columns}

    def settled(self, schema: pa.Schema, storable: StorableField) -> WithTime:
        self.apply(schema.empty_table())
        return self

    def __repr__(self) -> str:
        value = self.value if isinstance(self.value, Expr) else getattr(self.value, "__name__", repr(self.value))
        return f"with_time({value!r}, at_most_back={str(self.at_most_back)!r})"


def with_time(time: str, value: object, at_most_back: Span | str) -> WithTime:
    """Check the arguments of `Flow.with_time`, and make the transform."""
    back = span(at_most_back)
    if back < 0:
        raise InvalidArgument(f"at_most_back= is a length of time that is not negative, not {back!r}")
    return WithTime(time=time, value=function_of(value, "with_time()"), at_most_back=back)


__all__ = ["WithTime", "with_time"]
