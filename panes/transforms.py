"""Transforms: the steps of a flow that keep nothing between rows, as values that turn tables into tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..combiners.aggregate import as_table
from ..combiners.expressions.conditions import require_meant
from ..combiners.expressions.expr import Expr
from ..combiners.expressions.methods import Methods
from ..combiners.rows.plain_types import as_plain
from ..errors import InvalidArgument, TypeMismatch
from ..triggers import truth
from .parcels import parts

_ARROW = (pa.Table, pa.Array, pa.ChunkedArray)

StorableField = Callable[[pa.Field], pa.Field]
"""Gives the type in which an engine returns a column that was handed to it."""


@dataclass(frozen=True)
class Transform(ABC):
    """One step from table to table."""

    filters: ClassVar[bool] = False
    """True if the step leaves rows out, and changes no other."""

    @property
    def word(self) -> str | None:
        """The method of a flow that adds the step; None if the step only chooses columns."""
        return None

    def meaning(self, columns: frozenset[str] | None) -> Mapping[str, Any]:
        """The functions, expressions and numbers that decide these columns of its result; None means all."""
        return {}

    @property
    def back(self) -> int:
        """The length of time by which the event time of a row may go back, in microseconds."""
        return 0

    @property
    def functions(self) -> bool:
        """True if the step calls a function of the user."""
        return False

    def may_set(self, column: str) -> bool:
        """True if the step may give a column other values."""
        return self.functions

    def name_after(self, column: str) -> str:
        """The name that a column has after the step."""
        return column

    @abstractmethod
    def apply(self, table: pa.Table) -> pa.Table:
        """The table after the step."""

    @abstractmethod
    def carrying(self, table: pa.Table, column: str) -> pa.Table:
        """The table after the step, where `column` stays with its rows and is hidden from functions of the user."""

    def before(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        """The input columns that the step needs for these columns of its result; None means all."""
        return columns

    def sources(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        """The input columns that decide these columns of its result; `before` has those that it must be given."""
        return self.before(columns)

    def settled(self, schema: pa.Schema, storable: StorableField) -> Transform:
        """The step for rows of this schema, with a result of the same types for all rows."""
        return self


@dataclass(frozen=True)
class Map(Transform):
    """A function of the user, from table to table."""

    function: Callable[[pa.Table], Any]
    kinds: pa.Schema | None = None
    """The columns of the result, since pandas gives other types for nulls and for no rows."""
    step: str = "map()"
    """The name of the step in messages."""

    @property
    def word(self) -> str:
        return self.step.removesuffix("()")

    def meaning(self, columns: frozenset[str] | None) -> Mapping[str, Any]:
        return {"function": self.function}

    @property
    def functions(self) -> bool:
        return True

    def apply(self, table: pa.Table) -> pa.Table:
        result = called(self.function, table, self.step)
        try:
            output = as_table(result)
        except TypeMismatch:
            raise TypeMismatch(
                f"{self.step} takes a function that returns an Arrow table or a pandas DataFrame, "
                f"but {_name(self.function)} gave {type(result).__name__}"
            ) from None
        if self.kinds is None or output.schema.equals(self.kinds):
            return output
        who = f"{self.step} with {_name(self.function)}"
        if output.column_names != self.kinds.names:
            raise TypeMismatch(
                f"{who} must give the same columns for any rows, but gave {output.column_names}, and "
                f"{self.kinds.names} for a table without rows"
            )
        columns = [_typed(output[field.name], field, who) for field in self.kinds]
        return pa.Table.from_arrays(columns, schema=self.kinds)

    def settled(self, schema: pa.Schema, storable: StorableField) -> Map:
        output = self.apply(schema.empty_table()).schema
        fields = [
            _engine_field(field, schema, storable, f"{self.step} with {_name(self.function)}") for field in output
        ]
        return replace(self, kinds=pa.schema(fields))

    def before(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        return None

    def carrying(self, table: pa.Table, column: str) -> pa.Table:
        # The function may drop, add or reorder rows, so it is called once for each value of the column.
        out = []
        for value, part in parts(table, column):
            result = self.apply(part.drop_columns([column]))
            out.append(result.append_column(column, pa.repeat(pa.scalar(value, pa.int64()), result.num_rows)))
        if not out:
            return self.apply(table.drop_columns([column])).append_column(column, pa.array([], pa.int64()))
        return pa.concat_tables(out)


@dataclass(frozen=True)
class Where(Transform):
    """Keeps the rows for which a predicate is true."""

    predicate: Expr | Callable[[pa.Table], Any]

    filters = True
    word = "where"

    def meaning(self, columns: frozenset[str] | None) -> Mapping[str, Any]:
        return {"predicate": self.predicate}

    @property
    def functions(self) -> bool:
        return not isinstance(self.predicate, Expr)

    def may_set(self, column: str) -> bool:
        return False

    def apply(self, table: pa.Table) -> pa.Table:
        return table.filter(self._mask(table))

    def carrying(self, table: pa.Table, column: str) -> pa.Table:
        return table.filter(self._mask(table.drop_columns([column])))

    def _mask(self, table: pa.Table) -> pa.Array:
        with takes_arrow(self.predicate, "where()"):
            return pa.array(np.asarray(truth(self.predicate, table)))

    def before(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        if columns is None or not isinstance(self.predicate, Expr):
            return None
        return columns | frozenset(self.predicate.columns)


@dataclass(frozen=True)
class WithColumns(Transform):
    """Adds or replaces columns, all computed from the columns before the step."""

    columns: Mapping[str, Expr | Callable[[pa.Table], Any]]
    kinds: pa.Schema | None = None
    """The columns that are computed by functions."""

    word = "with_columns"

    def meaning(self, columns: frozenset[str] | None) -> Mapping[str, Any]:
        return {name: value for name, value in self.columns.items() if columns is None or name in columns}

    @property
    def functions(self) -> bool:
        return not all(isinstance(value, Expr) for value in self.columns.values())

    def may_set(self, column: str) -> bool:
        return column in self.columns

    def apply(self, table: pa.Table) -> pa.Table:
        out = table
        for name, value in self.columns.items():
            column = values_of(value, table, f"with_columns({name}=)")
            if self.kinds is not None and name in self.kinds.names:
                column = _typed(column, self.kinds.field(name), f"with_columns({name}=)")
            if name in out.column_names:
                out = out.set_column(out.column_names.index(name), name, column)
            else:
                out = out.append_column(name, column)
        return out

    def carrying(self, table: pa.Table, column: str) -> pa.Table:
        return self.apply(table.drop_columns([column])).append_column(column, table[column])

    def settled(self, schema: pa.Schema, storable: StorableField) -> WithColumns:
        output = self.apply(schema.empty_table()).schema
        made = [name for name, value in self.columns.items() if not isinstance(value, Expr)]
        fields = [_engine_field(output.field(name), pa.schema([]), storable, f"with_columns({name}=)") for name in made]
        return WithColumns(self.columns, pa.schema(fields))

    def before(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        expressions = [value for value in self.columns.values() if isinstance(value, Expr)]
        if columns is None or len(expressions) < len(self.columns):
            return None
        return (columns - frozenset(self.columns)) | {name for e in expressions for name in e.columns}


def values_of(value: Expr | Callable[[pa.Table], Any], table: pa.Table, who: str) -> pa.Array | pa.ChunkedArray:
    """The value of each row of a table, by an expression or a function of the user."""
    column = value.evaluate(table) if isinstance(value, Expr) else called(value, table, who)
    if isinstance(column, pa.Scalar):
        column = pa.repeat(column, table.num_rows)
    elif not isinstance(column, pa.Array | pa.ChunkedArray):
        column = pa.array(column)
    if len(column) != table.num_rows:
        raise TypeMismatch(f"{who} must give one value a row, but gave {len(column)} for {table.num_rows} rows")
    return column


def applied(transforms: Iterable[Transform], table: pa.Table) -> pa.Table:
    """The table after all transforms."""
    for transform in transforms:
        table = transform.apply(table)
    return table


def name_after(transforms: Iterable[Transform], column: str) -> str:
    """The name that a column has after all transforms."""
    for transform in transforms:
        column = transform.name_after(column)
    return column


def predicate_of(value: object) -> Expr | Callable[[pa.Table], Any]:
    """Check a predicate of `where()`, and return it."""
    _require_call(value, "where()")
    if isinstance(value, Expr):
        require_meant(value, "where()")
        return value
    if callable(value):
        return value
    raise InvalidArgument(
        f"where() takes an expression of uc.col or a function of an Arrow table, but was given "
        f"{type(value).__name__}: write uc.col('x') > 0, or filter a DataFrame before it becomes a flow"
    )


def _require_call(value: object, who: str) -> None:
    """Raise for a method of an expression, which could pass for a function of a table."""
    if isinstance(getattr(value, "__self__", None), Expr | Methods):
        name = getattr(value, "__name__", "")
        raise InvalidArgument(f"{who} was given the method {name} of an expression and not its value: write {name}()")


def function_of(value: object, who: str) -> Expr | Callable[[pa.Table], Any]:
    """Check a function of a table, or an expression, that was given to `who`, and return it."""
    _require_call(value, who)
    if isinstance(value, Expr) or callable(value):
        return value
    raise InvalidArgument(
        f"{who} takes an expression of uc.col or a function of an Arrow table, but was given {value!r}: write "
        "uc.col('x') * 2, or uc.coalesce(5) for the same value in each row"
    )


def _engine_field(field: pa.Field, before: pa.Schema, storable: StorableField, who: str) -> pa.Field:
    """The column in a type that the engine has. A column without a type gets that of the input column of its name."""
    # pandas has no type for the values of a category without any.
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if not pa.types.is_null(kind):
        return storable(field)
    if field.name in before.names:
        return before.field(field.name)
    raise TypeMismatch(
        f"{who} gave column {field.name!r} without a type for a table without rows: give an Arrow or NumPy array, "
        "or a pandas column of a dtype such as 'string'"
    )


def _typed(column: pa.Array | pa.ChunkedArray, field: pa.Field, who: str) -> pa.Array | pa.ChunkedArray:
    """The column in the type that the function gave for a table without rows."""
    if column.type == field.type:
        return column
    try:
        if pa.types.is_null(field.type) and column.null_count < len(column):
            raise pa.ArrowTypeError("Arrow would make all values null")
        return as_plain(_same_fields(column, field.type), field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise TypeMismatch(
            f"{who} gave column {field.name!r} as {column.type}, but as {field.type} for a table without rows: {error}"
        ) from None


def _same_fields(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """A struct with the fields of `kind`. A dict of pandas can lack some of them or have another order."""
    if not (pa.types.is_struct(column.type) and pa.types.is_struct(kind)):
        return column
    if isinstance(column, pa.ChunkedArray):
        chunks = [_same_fields(chunk, kind) for chunk in column.chunks]
        return pa.chunked_array(chunks) if chunks else pa.chunked_array([], kind)
    parts = {field.name: part for field, part in zip(column.type, column.flatten(), strict=True)}
    if strange := sorted(set(parts) - {field.name for field in kind}):
        raise pa.ArrowTypeError(f"field {strange[0]!r} is new")
    arrays = [_same_fields(parts[f.name], f.type) if f.name in parts else pa.nulls(len(column), f.type) for f in kind]
    return pa.StructArray.from_arrays(arrays, [f.name for f in kind], mask=column.is_null())


def _name(function: object) -> str:
    return getattr(function, "__name__", repr(function))


def called(function: Callable[[pa.Table], Any], table: pa.Table, who: str) -> Any:
    """The result of a function of a table, which was given to `who`."""
    with takes_arrow(function, who):
        return function(table)


@contextmanager
def takes_arrow(function: object, who: str) -> Iterator[None]:
    """Explain the error of a function that uses an Arrow table as if it were a DataFrame of pandas."""
    try:
        yield
    except (AttributeError, TypeError) as error:
        if not _is_about_arrow(error):
            raise
        name = getattr(function, "__name__", repr(function))
        raise TypeMismatch(
            f"{who} calls {name} with an Arrow table, not with a pandas DataFrame ({error}): write an expression of "
            f"uc.col, or begin the function with table.to_pandas()"
        ) from error


def _is_about_arrow(error: AttributeError | TypeError) -> bool:
    if isinstance(error, AttributeError):
        return isinstance(error.obj, _ARROW) or "'pyarrow.lib." in str(error)
    return not isinstance(error, TypeMismatch) and "'pyarrow.lib." in str(error)
