"""The options that all operators over single rows have, and the columns that they make of an input.

Guarded by tests/panes/rows/test_row_options.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa

from ...combiners.aggregate import weights_of
from ...combiners.rows.columns import Column, flat
from ...combiners.rows.hashing import hash_rows_128, require_hash
from ...combiners.rows.key_codes import normal_keys
from ...combiners.rows.plain_types import plain_type
from ...errors import InvalidArgument, TypeMismatch, require_column
from ...windows import Span, span, time_column
from ...windows.times import FIRST, LAST, MAX_TIME, MIN_TIME, UTC_MICROS
from ..grouping.grouping import DIFF, EVENT_TIME, check_time_and_weights
from ..state.pane_type import PANE
from .clocks import Clocks

LONGEST = LAST - FIRST + 1
"""Two rows are never further apart."""


class StepOptions(TypedDict, total=False):
    """The options that all steps over single rows take by name; `RowOptions` says what each is."""

    allowed_lateness: Span | str


@dataclass(frozen=True, kw_only=True, repr=False)
class RowOptions:
    """The options of an operator over single rows.

    Parameters
    ----------
    time
        The event time column.
    diff
        The weight column of a changelog input, or None: every row is an addition.
    allowed_lateness
        A row is late, and left out, if its time plus this is before the watermark.
    max_future
        The longest time by which the event time of a row may be after the processing time; other rows are bad rows.
        None means no limit.
    """

    time: str = "ts"
    diff: str | None = None
    allowed_lateness: Span | Any = field(default_factory=lambda: span("0 seconds"))
    max_future: Span | Any | None = field(default_factory=lambda: span("1 day"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "allowed_lateness", span(self.allowed_lateness))
        object.__setattr__(self, "max_future", None if self.max_future is None else span(self.max_future))
        if self.allowed_lateness < 0:
            raise InvalidArgument(f"allowed_lateness= is {self.allowed_lateness!r}, and it cannot be negative")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={text}' for name, text in self.explicit_options().items())})"

    def explicit_options(self) -> dict[str, str]:
        """The options that differ from their defaults, as texts. A function has its name, the same in every process."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        plain = {f.name: f.default if f.default_factory is MISSING else f.default_factory() for f in fields(self)}
        texts = {name: shown(value) for name, value in values.items() if plain[name] is MISSING or value != plain[name]}
        shared = RowOptions.__dataclass_fields__
        return dict(sorted(texts.items(), key=lambda item: item[0] in shared))

    @property
    def wait(self) -> int:
        """The allowed lateness in microseconds, but no more than the years of rows span."""
        return min(int(self.allowed_lateness), LONGEST)

    def columns(self, schema: pa.Schema, who: str) -> Columns:
        """Check an input of this schema for the operator `who`."""
        check_time_and_weights(schema, self.time, self.diff)
        for name, option in ((EVENT_TIME, self.time), (DIFF, self.diff)):
            if name in schema.names and option != name:
                raise InvalidArgument(
                    f"{name!r} is a column of every result of {who}: give the source "
                    f"{'time' if name == EVENT_TIME else 'diff'}={name!r}, or leave the column out with select()"
                )
        hidden = {EVENT_TIME, self.diff}
        columns = [f for f in schema if f.name not in hidden and not (f.name == "pane" and f.type == PANE)]
        user = pa.schema([pa.field(f.name, held_type(f.type), f.nullable) for f in columns])
        if self.diff is not None:
            for f in user:
                require_hash(f.type, f"{who} over a changelog (diff=)", f.name)
        return Columns(options=self, schema=schema, user=user)


def shown(value: Any) -> str:
    """A value as text. That of a function, or of an object without a repr of its own, is a name without an address."""
    kind: Any = type(value)
    if kind.__repr__ is object.__repr__ or callable(value):
        return str(getattr(value, "__qualname__", None) or kind.__qualname__)
    return repr(value)


@dataclass(frozen=True)
class AdmittedRows:
    """The rows of a bundle that an operator admits to its state, and the places of the others."""

    rows: pa.Table
    """The user's columns, and the event time."""
    times: np.ndarray
    weights: np.ndarray | None
    """The weights, none of them 0; None where every row is an addition."""
    late: np.ndarray
    """The places in the bundle of late rows."""
    bad: np.ndarray
    """The places in the bundle of bad rows."""

    def __len__(self) -> int:
        return len(self.times)


@dataclass(frozen=True)
class Columns:
    """The columns of an input as an operator over single rows takes and gives them."""

    options: RowOptions
    schema: pa.Schema
    """The columns of the input."""
    user: pa.Schema
    """The columns that go with a row: those of the input, less the weight, `event_time` and `pane`."""

    @property
    def rows(self) -> pa.Schema:
        """The columns by which a row equals its retraction."""
        return self.user.append(pa.field(EVENT_TIME, UTC_MICROS))

    @property
    def output(self) -> pa.Schema:
        """The columns of a row of output that is a row of the input."""
        return output_schema(self.user)

    def take(self, bundle: pa.Table, clocks: Clocks) -> AdmittedRows:
        """The rows of a bundle that have a usable time and are not late."""
        if bundle.schema.names != self.schema.names:
            raise TypeMismatch(
                f"the bundle has columns {bundle.schema.names}, but the operator was built for {self.schema.names}: "
                "select these, in this order"
            )
        options = self.options
        times, valid = time_column(flat(bundle[options.time]))
        if clocks.now > MIN_TIME and options.max_future is not None:
            valid = valid & (times <= min(clocks.now + int(options.max_future), MAX_TIME))
        late = valid & (times + options.wait < clocks.before)
        weights = None if options.diff is None else weights_of(bundle, options.diff)
        good = valid & ~late
        if weights is not None:
            good &= weights != 0
        if not good.all():
            bundle, times = bundle.filter(pa.array(good)), times[good]
            weights = None if weights is None else weights[good]
        columns = [flat(bundle[f.name]).cast(f.type) for f in self.user]
        rows = pa.Table.from_arrays([*columns, pa.array(times).view(UTC_MICROS)], schema=self.rows)
        return AdmittedRows(
            rows=rows, times=times, weights=weights, late=np.flatnonzero(late), bad=np.flatnonzero(~valid)
        )

    @property
    def read(self) -> tuple[str, ...]:
        """The columns of the input by which a row equals its retraction."""
        return tuple(dict.fromkeys([*self.user.names, self.options.time]))

    def row_hashes(self, rows: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """A hash of 128 bits of each row: equal rows have equal hashes, and others have others."""
        return hash_rows_128([Column(rows[name]) for name in self.rows.names])


def output_schema(user: pa.Schema) -> pa.Schema:
    """The columns of output rows with these columns of the user."""
    return pa.schema([*user, (EVENT_TIME, UTC_MICROS), (DIFF, pa.int64())])


def output(rows: pa.Table, weights: np.ndarray, schema: pa.Schema) -> pa.Table:
    """Rows of output, in their order; `rows` has the user's columns and the event time."""
    return pa.Table.from_arrays([*rows.select(schema.names[:-1]).columns, pa.array(weights, pa.int64())], schema=schema)


ROW = "row."
"""The beginning of the names of a row's columns in a store, which has columns of its own beside them."""


def stored_schema(rows: pa.Schema, own: Sequence[tuple[str, pa.DataType]]) -> pa.Schema:
    """The columns of a store of rows with some columns of the store's own."""
    return pa.schema([*(pa.field(ROW + f.name, f.type) for f in rows), *own])


def stored(rows: pa.Table, own: Mapping[str, np.ndarray], schema: pa.Schema) -> pa.Table:
    """Rows as they are stored."""
    return pa.Table.from_arrays([*rows.columns, *(pa.array(own[name]) for name in own)], schema=schema)


def restored(table: pa.Table, rows: pa.Schema) -> pa.Table:
    """The rows of stored rows, without the columns of the store's own."""
    return pa.Table.from_arrays(table.columns[: len(rows)], schema=rows)


def key_columns(by: Sequence[str] | str | Any, who: str) -> tuple[str, ...]:
    """The names of columns that were given as one name or several."""
    if not isinstance(by, str | Iterable):
        raise InvalidArgument(f"{who} takes the name of a column or several, not {by!r}")
    return (by,) if isinstance(by, str) else tuple(by)


def require_keys(by: Sequence[str], schema: pa.Schema, who: str) -> None:
    """Raise unless all columns are there, with types that can be hashed."""
    for name in by:
        require_column(name, schema.names, who)
        require_hash(schema.field(name).type, who, name)


def key_arrays(rows: pa.Table, by: Sequence[str]) -> list[pa.Array]:
    """The key columns of rows in normal form."""
    return [normal_keys(flat(rows[name])) for name in by]


def held_type(kind: pa.DataType) -> pa.DataType:
    """The type in which values are kept: a plain one, and no dictionary.

    >>> held_type(pa.dictionary(pa.int8(), pa.large_string()))
    DataType(string)
    """
    plain = plain_type(kind)
    return plain.value_type if pa.types.is_dictionary(plain) else plain


__all__ = ["DIFF", "EVENT_TIME", "AdmittedRows", "Columns", "RowOptions"]
