"""Rows as values that can be compared, the rows that are left of a changelog, and rows as Python source.

Guarded by tests/testing/test_testing.py.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.types as pt

from ..errors import InvalidArgument, TypeMismatch, nearest
from ..windows import time_text, timestamp

Values = tuple[Any, ...]

BESIDE = ("pane", "step")
"""Columns in which a row and its retraction may differ."""


def canonical(value: Any, kind: pa.DataType) -> Any:
    """The value of a column as one that equals every other form of it; NaN and every other null is None."""
    if pt.is_struct(kind) and isinstance(value, Mapping):
        return tuple(canonical(value.get(field.name), field.type) for field in kind)
    if (pt.is_list(kind) or pt.is_large_list(kind)) and isinstance(value, list | tuple | np.ndarray):
        return tuple(canonical(one, kind.value_type) for one in value)
    if value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float | Decimal) and value != value):
        return None
    if pt.is_timestamp(kind) or pt.is_date(kind):
        return timestamp(value.to_pydatetime() if isinstance(value, pd.Timestamp) else value)
    if pt.is_duration(kind):
        return pd.Timedelta(value) // pd.Timedelta(microseconds=1)
    if isinstance(value, np.generic):
        value = value.item()
        return None if isinstance(value, float) and math.isnan(value) else value
    if isinstance(value, list | tuple | np.ndarray):
        return tuple(repr(one) for one in value)
    return value if not isinstance(value, Mapping) else repr(value)


def plain(value: Any, kind: pa.DataType) -> Any:
    """A canonical value in the form in which a script or a test is written."""
    if value is None:
        return None
    if pt.is_struct(kind) and isinstance(value, tuple):
        return {field.name: plain(one, field.type) for field, one in zip(kind, value, strict=True)}
    if (pt.is_list(kind) or pt.is_large_list(kind)) and isinstance(value, tuple):
        return [plain(one, kind.value_type) for one in value]
    if pt.is_timestamp(kind):
        return time_text(value)
    if pt.is_date(kind):
        return time_text(value)[:10]
    if pt.is_duration(kind):
        return timedelta(microseconds=value)
    return value


@dataclass(frozen=True)
class RemainingRows:
    """The rows that are left of a changelog, each with how often it is there."""

    names: tuple[str, ...]
    kinds: tuple[pa.DataType, ...]
    rows: Counter[Values]
    negative: tuple[int, Values] | None = None
    """The first entry of the script after which a row had been retracted more often than given, and this row."""

    def texts(self, row: Values) -> dict[str, Any]:
        """A row as a test has it."""
        return {n: plain(v, k) for n, v, k in zip(self.names, row, self.kinds, strict=True)}

    def only(self, names: Sequence[str]) -> RemainingRows:
        """The same rows with some of the columns; `window.start` is a field of the column `window`."""
        places = [_place(name, self.names, self.kinds) for name in names]
        rows: Counter[Values] = Counter()
        for row, count in self.rows.items():
            rows[tuple(_part(row[at], inner) for at, inner, _ in places)] += count
        return RemainingRows(names=tuple(names), kinds=tuple(kind for *_, kind in places), rows=rows)


def _place(name: str, names: Sequence[str], kinds: Sequence[pa.DataType]) -> tuple[int, int | None, pa.DataType]:
    """The place of a column, the place of a field in it, and their type."""
    if name in names:
        at = list(names).index(name)
        return at, None, kinds[at]
    outer, _, inner = name.partition(".")
    if inner and outer in names:
        kind = kinds[list(names).index(outer)]
        if pt.is_struct(kind) and (field := kind.get_field_index(inner)) >= 0:
            return list(names).index(outer), field, kind.field(field).type
    raise InvalidArgument(f"expected= gave column {name!r}, which the flow does not give: {nearest(name, names)}")


def _part(value: Any, inner: int | None) -> Any:
    return value if inner is None or value is None else value[inner]


def left_of(panes: pa.Table, weight: str | None) -> RemainingRows:
    """Net a changelog entry by entry; `weight` names the column of weights, or None if each row is there once."""
    names = [name for name in panes.column_names if name not in (*BESIDE, weight)]
    kinds = [panes.schema.field(name).type for name in names]
    rows = rows_of(panes.select(names), panes.num_rows)
    weights = [1] * panes.num_rows if weight is None else panes[weight].to_pylist()
    steps = panes["step"].to_pylist()
    net: Counter[Values] = Counter()
    negative = None
    for i, (row, count) in enumerate(zip(rows, weights, strict=True)):
        net[row] += count
        last = i + 1 == len(rows) or steps[i + 1] != steps[i]
        if last and negative is None and (below := next((row for row in net if net[row] < 0), None)) is not None:
            negative = steps[i], below
    return RemainingRows(
        names=tuple(names), kinds=tuple(kinds), rows=Counter({row: n for row, n in net.items() if n}), negative=negative
    )


def rows_of(table: pa.Table, count: int) -> list[Values]:
    """The rows of a table as tuples of canonical values."""
    columns = [[canonical(v, f.type) for v in c.to_pylist()] for f, c in zip(table.schema, table.columns, strict=True)]
    return list(zip(*columns, strict=True)) if columns else [()] * count


def expected_rows(answer: Any, left: RemainingRows) -> RemainingRows:
    """The result of the function of expected rows: a DataFrame, an Arrow table, or rows as dicts."""
    if isinstance(answer, pa.Table):
        answer = answer.to_pandas()
    if isinstance(answer, pd.Series):
        answer = answer.to_frame()
    if isinstance(answer, pd.DataFrame):
        index = [name for name in answer.index.names if name is not None and name not in answer.columns]
        if index and all(name.partition(".")[0] in left.names for name in map(str, index)):
            answer = answer.reset_index()
        names, values = [str(name) for name in answer.columns], list(answer.itertuples(index=False, name=None))
    elif isinstance(answer, Iterable) and not isinstance(answer, str | Mapping):
        dicts = list(answer)
        if any(not isinstance(row, Mapping) for row in dicts):
            raise TypeMismatch(f"expected= gives a DataFrame, or rows as dicts, but gave {dicts[:1]!r}")
        names = list(dict.fromkeys(name for row in dicts for name in row))
        values = [tuple(row.get(name) for name in names) for row in dicts]
    else:
        raise TypeMismatch(f"expected= gives a DataFrame, or rows as dicts, but gave {type(answer).__name__}")
    if not names and not values:
        return RemainingRows(names=left.names, kinds=left.kinds, rows=Counter())
    kinds = [_place(name, left.names, left.kinds)[2] for name in names]
    rows = (tuple(canonical(v, k) for v, k in zip(row, kinds, strict=True)) for row in values)
    return RemainingRows(names=tuple(names), kinds=tuple(kinds), rows=Counter(rows))


def unit_of(frames: Iterable[pd.DataFrame]) -> float:
    """The largest float of rows, of which the rounding of a sum near zero is a part; 1 for larger ones, and for none.

    >>> unit_of([pd.DataFrame({"x": [1e-12, -2e-12, float("nan")]})]), unit_of([pd.DataFrame({"x": [5]})])
    (2e-12, 1.0)
    """
    columns = [np.abs(column.to_numpy(np.float64)) for frame in frames for _, column in _floats(frame)]
    largest = max((float(column[np.isfinite(column)].max(initial=0.0)) for column in columns), default=0.0)
    return min(largest, 1.0) or 1.0


def _floats(frame: pd.DataFrame) -> Iterable[tuple[Any, pd.Series[Any]]]:
    return frame.select_dtypes("float").items()


def differences(
    left: RemainingRows, expected: RemainingRows, tolerance: float, least: float
) -> tuple[list[Values], list[Values]]:
    """The rows that are missing, and those that are too much.

    Floats are equal if they differ by the part `tolerance` of the larger one, or by `least`.
    """
    missing = list((expected.rows - left.rows).elements())
    extra = []
    for row in (left.rows - expected.rows).elements():
        at = next((i for i, other in enumerate(missing) if _near(row, other, tolerance, least)), None)
        if at is None:
            extra.append(row)
        else:
            del missing[at]
    return missing, extra


def _near(one: Any, other: Any, tolerance: float, least: float) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(_near(a, b, tolerance, least) for a, b in zip(one, other, strict=True))
    numbers = (int, float, Decimal)
    if isinstance(one, numbers) and isinstance(other, numbers) and (isinstance(one, float) or isinstance(other, float)):
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=least)
    return bool(one == other)


def literal(value: Any) -> str:
    """A value as Python source."""
    match value:
        case Mapping():
            return "{" + ", ".join(f"{literal(name)}: {literal(part)}" for name, part in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(literal, value)) + "]"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case float() if not math.isfinite(value):
            return f'float("{value}")'
        case datetime():
            return literal(time_text(timestamp(value)))
        case date():
            return f"datetime.date({value.year}, {value.month}, {value.day})"
        case timedelta():
            return f"datetime.timedelta(microseconds={value // timedelta(microseconds=1)})"
        case Decimal():
            return f'Decimal("{value}")'
        case _:
            return repr(value)


__all__ = ["RemainingRows", "canonical", "differences", "expected_rows", "left_of", "literal", "rows_of", "unit_of"]
