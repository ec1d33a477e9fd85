"""The columns of rows and results that triggers read, checked before any data flows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..combiners.expressions.expr import Expr
from ..errors import TypeMismatch, UnknownColumn, nearest, require_column
from .language import Predicate, Trigger, shown, walk
from .leaves import AfterBytes, OnPunctuation, OnResult, OnSignal

_BINARY = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)


def check_inputs(trigger: Trigger, rows: pa.Schema, results: pa.Schema) -> None:
    """Raise for a part of the trigger that reads a column which the rows, or the results, do not have."""
    for part in walk(trigger):
        match part:
            case AfterBytes(of=names):
                for name in rows.names if names is None else names:
                    require_column(name, rows.names, f"{part!r}")
                    width_of(rows.field(name).type, name)
            case OnPunctuation(predicate=Expr() as predicate):
                for name in predicate.columns:
                    require_column(name, rows.names, f"{part!r}")
                _require_boolean(part, predicate, rows)
            case OnResult(predicate=Expr() as predicate):
                for name in predicate.columns:
                    _require_result(name, part, rows, results)
                _require_boolean(part, predicate, results)


def check_signals(part: OnSignal, signals: pa.Schema) -> None:
    """Raise for a trigger that reads a column which the signals do not have."""
    if isinstance(part.when, Expr):
        for name in part.when.columns:
            require_column(name, signals.names, f"{part!r}")
        _require_boolean(part, part.when, signals)


def _require_result(name: str, part: Trigger, rows: pa.Schema, results: pa.Schema) -> None:
    if name in results.names:
        return
    if name in rows.names:
        hint = f"known are {', '.join(map(repr, results.names))}; use OnPunctuation for a column of the rows"
    else:
        hint = nearest(name, results.names)
    raise UnknownColumn(f"{part!r} needs column {name!r}, which is neither a key nor a result: {hint}", name)


def _require_boolean(part: Trigger, predicate: Expr, schema: pa.Schema) -> None:
    kind = predicate.type(schema)
    if not pa.types.is_boolean(kind):
        raise TypeMismatch(
            f"{part!r} needs a predicate that gives booleans, but {predicate!r} gives {kind}: write a comparison"
        )


def truth(predicate: Predicate, table: pa.Table) -> np.ndarray:
    """A predicate evaluated over the rows of a table; null counts as false."""
    answer = predicate.evaluate(table) if isinstance(predicate, Expr) else predicate(table)
    if isinstance(answer, pa.ChunkedArray):
        answer = answer.combine_chunks()
    if not isinstance(answer, pa.Array):
        answer = pa.array(answer)
    if pa.types.is_null(answer.type):  # an empty list has no type
        answer = answer.cast(pa.bool_())
    if not pa.types.is_boolean(answer.type) or len(answer) != table.num_rows:
        raise TypeMismatch(
            f"the predicate {shown(predicate)} must give one boolean a row, but gave {len(answer)} values of type "
            f"{answer.type} for {table.num_rows} rows"
        )
    return np.asarray(answer.fill_null(False))


def width_of(kind: pa.DataType, name: str) -> int | None:
    """The bytes that each value of this type counts; None for text and binary, where each value has its own size."""
    if pa.types.is_dictionary(kind):
        return width_of(kind.value_type, name)
    if pa.types.is_null(kind):
        return 0
    if _is_text(kind) or any(holds(kind) for holds in _BINARY):
        return None
    try:
        return max(kind.bit_width // 8, 1)
    except ValueError:
        raise TypeMismatch(
            f"AfterBytes counts text, binary and fixed-width columns, but {name!r} is {kind}: name the columns in of="
        ) from None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def bytes_of(column: Any, name: str) -> np.ndarray:
    """The bytes of each value of a column; 0 for null."""
    width = width_of(column.type, name)
    if width is None:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        lengths = pc.binary_length(column.cast(pa.large_string() if _is_text(kind) else pa.large_binary()))
        return np.asarray(pc.fill_null(lengths, 0)).astype(np.int64)
    return np.where(np.asarray(pc.is_valid(column)), width, 0)
