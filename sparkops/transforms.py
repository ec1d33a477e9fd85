"""What a flow does to rows between its groupings: functions of Arrow tables, as values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..combiners.aggregate import as_table
from ..combiners.expressions import Expr
from ..errors import InvalidArgument, TypeMismatch, require_column
from ..panes.parcels import parts
from ..triggers import truth


@dataclass(frozen=True)
class Transform(ABC):
    """One step from table to table."""

    @abstractmethod
    def apply(self, table: pa.Table) -> pa.Table:
        """The table after the step."""

    def before(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        """The columns that it needs for these columns of its result; None is all."""
        return columns

    def carrying(self, table: pa.Table, column: str) -> pa.Table:
        """The same with one more column that goes along with its rows."""
        return self.apply(table)


@dataclass(frozen=True)
class Map(Transform):
    """A function of the user's."""

    function: Callable[[pa.Table], Any]

    def apply(self, table: pa.Table) -> pa.Table:
        result = self.function(table)
        try:
            return as_table(result)
        except TypeMismatch:
            raise TypeMismatch(
                f"map() takes a function from Arrow table to Arrow table or pandas DataFrame, "
                f"and {_name(self.function)} gave {type(result).__name__}"
            ) from None

    def before(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        return None

    def carrying(self, table: pa.Table, column: str) -> pa.Table:
        # The function may do with rows what it likes, so it sees those with one value at a time.
        out = []
        for value, part in parts(table, column):
            result = self.apply(part.drop_columns([column]))
            out.append(result.append_column(column, pa.repeat(pa.scalar(value, pa.int64()), result.num_rows)))
        return pa.concat_tables(out) if out else table.slice(0, 0)


@dataclass(frozen=True)
class Where(Transform):
    """Only the rows for which a predicate holds."""

    predicate: Expr | Callable[[pa.Table], Any]

    def apply(self, table: pa.Table) -> pa.Table:
        return table.filter(pa.array(np.asarray(truth(self.predicate, table))))

    def before(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        if columns is None or not isinstance(self.predicate, Expr):
            return None
        return columns | frozenset(self.predicate.columns)


@dataclass(frozen=True)
class Select(Transform):
    """Only some of the columns, in this order."""

    names: tuple[str, ...]

    def apply(self, table: pa.Table) -> pa.Table:
        for name in self.names:
            require_column(name, table.column_names, "select()")
        return table.select(list(self.names))

    def carrying(self, table: pa.Table, column: str) -> pa.Table:
        return Select((*self.names, column)).apply(table)

    def before(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        return frozenset(self.names)


@dataclass(frozen=True)
class WithColumns(Transform):
    """More columns, or others in their place, each worked out of those before."""

    columns: Mapping[str, Expr | Callable[[pa.Table], Any]]

    def apply(self, table: pa.Table) -> pa.Table:
        out = table
        for name, value in self.columns.items():
            column = value.evaluate(table) if isinstance(value, Expr) else value(table)
            if isinstance(column, pa.Scalar):
                column = pa.repeat(column, table.num_rows)
            elif not isinstance(column, pa.Array | pa.ChunkedArray):
                column = pa.array(column)
            if name in out.column_names:
                out = out.set_column(out.column_names.index(name), name, column)
            else:
                out = out.append_column(name, column)
        return out

    def before(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        expressions = [value for value in self.columns.values() if isinstance(value, Expr)]
        if columns is None or len(expressions) < len(self.columns):
            return None
        return (columns - frozenset(self.columns)) | {name for e in expressions for name in e.columns}


def applied(transforms: Iterable[Transform], table: pa.Table) -> pa.Table:
    """The table after all of them."""
    for transform in transforms:
        table = transform.apply(table)
    return table


def predicate_of(value: object) -> Expr | Callable[[pa.Table], Any]:
    """A predicate as `where()` takes it."""
    if isinstance(value, Expr) or callable(value):
        return value
    raise InvalidArgument(
        f"where() takes an expression of uc.col or a function of an Arrow table, not {type(value).__name__}: "
        "filter a DataFrame by its own columns before it becomes a flow"
    )


def _name(function: object) -> str:
    return getattr(function, "__name__", repr(function))
