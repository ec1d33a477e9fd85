"""Values for the columns of scripts: few of each type, and plain ones, so that pandas computes with them exactly.

Guarded by tests/testing/test_testing.py.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ..errors import InvalidArgument, require_column

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
"""The event time around which scripts begin."""

_LETTERS = [chr(code) for code in range(ord("a"), ord("z") + 1)]
_NUMBERS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
_PARTS = [0.0, 1.0, 2.0, 0.5, 0.25, 3.0, 10.0, 0.1]
_OFTEN = 3
"""So many times as often as null each value of a short list comes."""


def values_of(name: str, kind: pa.DataType, keys: int, is_key: bool, nulls: bool) -> SearchStrategy[Any]:
    """Values of a column: `keys` different ones, or more if it has numbers and is no key."""
    pool = _pool(kind, keys)
    if pool is None:
        raise InvalidArgument(
            f"there are no ready-made values for column {name!r} of type {kind}: give columns={{{name!r}: strategy}}"
        )
    chosen = pool[:keys] if is_key else pool
    return st.sampled_from(chosen * _OFTEN + [None] if nulls else chosen)


def _pool(kind: pa.DataType, keys: int) -> list[Any] | None:
    """A few values of a type, the simplest first; None if there are none."""
    if pt.is_dictionary(kind):
        return _pool(kind.value_type, keys)
    if pt.is_integer(kind):
        return _NUMBERS if pt.is_unsigned_integer(kind) else [*_NUMBERS, -1, -2]
    if pt.is_floating(kind):
        return [*_PARTS, *(-value for value in _PARTS[1:4])]
    if pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind):
        return [_LETTERS[i % 26] * (1 + i // 26) for i in range(keys)]
    if pt.is_binary(kind) or pt.is_large_binary(kind):
        return [bytes([97 + i % 26]) * (1 + i // 26) for i in range(keys)]
    if pt.is_boolean(kind):
        return [False, True]
    if pt.is_decimal(kind):
        return [Decimal(number).scaleb(-kind.scale) for number in range(min(10, 10**kind.precision))]
    if pt.is_date(kind):
        return [START.date() + dt.timedelta(days=i) for i in range(3)]
    if pt.is_timestamp(kind):
        return [START + dt.timedelta(seconds=20 * i) for i in range(10)]
    if pt.is_duration(kind):
        return [dt.timedelta(seconds=20 * i) for i in range(1, 5)]
    if pt.is_list(kind) or pt.is_large_list(kind):
        inner = _pool(kind.value_type, keys)
        return None if inner is None else [[], inner[:1], inner[:2]]
    if pt.is_struct(kind):
        pools = [_pool(field.type, keys) for field in kind]
        if any(pool is None for pool in pools):
            return None
        return [{f.name: pool[i % len(pool)] for f, pool in zip(kind, pools, strict=True) if pool} for i in range(3)]
    return None


def column_values(
    schema: pa.Schema,
    names: list[str],
    strategies: Mapping[str, Any],
    keys: frozenset[str],
    many: int,
    nulls: bool,
) -> dict[str, SearchStrategy[Any]]:
    """Values for each of these columns: those that were given, or ready-made ones."""
    out = {}
    for name in names:
        field = schema.field(name)
        own = strategies.get(name)
        out[name] = own if own is not None else values_of(name, field.type, many, name in keys, nulls)
    return out


def check_given(strategies: Mapping[str, Any], names: list[str]) -> None:
    """Raise unless `columns=` names columns whose values are drawn, with a strategy for each."""
    for name, strategy in strategies.items():
        require_column(name, names, "columns=")
        if not isinstance(strategy, SearchStrategy):
            raise InvalidArgument(
                f"columns= takes a hypothesis strategy for each column, such as st.integers(0, 9), but {name!r} has "
                f"{strategy!r}"
            )


__all__ = ["START", "check_given", "column_values", "values_of"]
