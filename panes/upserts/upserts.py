"""The options of the step that turns upserts into rows with weights, checked when they are built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import flat, numbers
from ...errors import InvalidArgument, OutOfRange, TypeMismatch, require_column
from ...windows import Span, span
from ..rows.clocks import Clocks
from ..rows.options import LONGEST, AdmittedRows, Columns, RowOptions, held_type, require_keys
from .unsent import may_be_marked


@dataclass(frozen=True, repr=False)
class Upserts(RowOptions):
    """The last row of each key: a row of weight 1 sets it, one of weight -1 deletes it, and 0 marks a bad row.

    Parameters
    ----------
    by
        The columns of the key.
    row
        The columns of a row; others are read and do not go on.
    order
        The columns by which one version of a row is later than another; without them, the order of arrival.
    keep_deletes
        The event time for which a deleted key is remembered where there is an order; None is for ever.
    mark
        The text in place of a value that was not sent because it did not change; None if there is none.

    Examples
    --------
    >>> from uncombine.panes.upserts.upserts import Upserts
    >>> Upserts(by=("id",), row=("ts", "id", "n"), diff="diff", order=("lsn",))
    Upserts(by=('id',), row=('ts', 'id', 'n'), order=('lsn',), diff='diff')
    """

    by: Sequence[str]
    row: Sequence[str]
    order: Sequence[str] = ()
    keep_deletes: Span | str | None = None
    mark: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keep_deletes is not None:
            object.__setattr__(self, "keep_deletes", span(self.keep_deletes))
        if self.keep < 0:
            raise InvalidArgument(f"keep_deletes= is {self.keep_deletes!r}, and it cannot be negative")

    def explicit_options(self) -> dict[str, str]:
        """The options that differ from their defaults, as texts. The mark is one of the format of the messages."""
        return {name: text for name, text in super().explicit_options().items() if name != "mark"}

    def may_lack(self, column: pa.Field) -> bool:
        """True if a row may have the mark in place of its value in this column."""
        return self.mark is not None and may_be_marked(column.type) and column.name not in (*self.by, *self.order)

    @property
    def keep(self) -> int:
        """The length of `keep_deletes` in microseconds."""
        return LONGEST if self.keep_deletes is None else min(int(span(self.keep_deletes)), LONGEST)

    def checked(self, schema: pa.Schema) -> Versions:
        """The columns of an input of this schema; raises if they do not fit."""
        for name in (*self.row, *self.order, str(self.diff)):
            require_column(name, schema.names, "changelog=")
        require_keys(self.by, schema, "keys=")
        for name in self.order:
            kind = schema.field(name).type
            if not (pa.types.is_integer(kind) or pa.types.is_decimal(kind) or _is_instant(kind)):
                raise TypeMismatch(f"order= takes a column of whole numbers or times, but {name!r} is {kind}: cast it")
        user = pa.schema([pa.field(name, held_type(schema.field(name).type)) for name in self.row])
        return Versions(options=self, schema=schema, user=user)


@dataclass(frozen=True)
class Versions(Columns):
    """The columns of an input: those of its rows, and those of their order."""

    options: Upserts

    @property
    def rows(self) -> pa.Schema:
        """The columns of a row."""
        return self.user

    @property
    def output(self) -> pa.Schema:
        """The columns of a row of output."""
        return self.user.append(pa.field(self.options.diff, pa.int64()))

    def take(self, bundle: pa.Table, clocks: Clocks) -> AdmittedRows:
        """The rows of a bundle that are no bad rows. None is late: the step after this one judges what it gives."""
        if bundle.schema.names != self.schema.names:
            raise TypeMismatch(
                f"the bundle has columns {bundle.schema.names}, but the operator was built for {self.schema.names}: "
                "select these, in this order"
            )
        weights = np.asarray(flat(bundle[self.options.diff]).to_numpy(zero_copy_only=False))
        bad, nowhere = np.flatnonzero(weights == 0), np.zeros(0, np.int64)
        if len(bad):
            bundle, weights = bundle.filter(pa.array(weights != 0)), weights[weights != 0]
        columns = [flat(bundle[f.name]).cast(f.type) for f in self.user]
        rows = pa.Table.from_arrays([*columns, *(bundle[name] for name in self._beside)], schema=self._with_order)
        return AdmittedRows(rows=rows, times=nowhere, weights=weights, late=nowhere, bad=bad)

    @property
    def _beside(self) -> list[str]:
        return [name for name in self.options.order if name not in self.user.names]

    @property
    def _with_order(self) -> pa.Schema:
        return pa.schema([*self.user, *(self.schema.field(name).with_nullable(True) for name in self._beside)])

    def versions(self, rows: pa.Table) -> list[np.ndarray]:
        """The columns of the order as whole numbers."""
        return [_numbers(flat(rows[name]), name) for name in self.options.order]


def _is_instant(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _numbers(column: pa.Array, name: str) -> np.ndarray:
    if _is_instant(column.type):
        return numbers(column).astype(np.int64)
    try:
        return np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid as error:
        raise OutOfRange(f"order= takes numbers that fit int64, but {name!r} has another one: {error}") from None


__all__ = ["Upserts", "Versions"]
