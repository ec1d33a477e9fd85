"""Values for the examples of the law kit: few, so that equal ones meet often, and some that are hard to add up."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import MAX_PREC, Context, Decimal
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ...errors import InvalidArgument


@dataclass(frozen=True)
class TypedValues:
    """Values of one Arrow type, from which `check_laws` draws a column."""

    type: pa.DataType
    strategy: SearchStrategy[Any]
    wide: SearchStrategy[Any] | None = None
    """Large and odd values, for a part of the examples."""


_EXACT = Context(prec=MAX_PREC)
"""Decimals without rounding."""

_CENTS = ("0.00", "1.00", "-1.00", "0.10", "99999999.99", "-99999999.99")
_TIMES = [
    dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(2024, 2, 29),
    dt.datetime(2024, 2, 29, microsecond=1), dt.datetime(1, 1, 1),
]  # fmt: skip

_FEW: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 1, 2, 3, -1, -3],
    pa.float64(): [0.0, 1.0, 0.1, 1e16, -1e16, 3.5, -0.0],
    pa.string(): ["", "a", "b", "ab", "é", "a long text, longer than a word of memory"],
    pa.bool_(): [False, True],
    pa.decimal128(10, 2): [Decimal(text) for text in _CENTS],
    pa.date32(): [dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(1582, 10, 4)],
    pa.timestamp("us"): _TIMES,
    pa.timestamp("us", "UTC"): [time.replace(tzinfo=dt.UTC) for time in _TIMES],
    pa.duration("us"): [dt.timedelta(0), dt.timedelta(seconds=1), dt.timedelta(days=-1)],
    pa.binary(): [b"", b"\0", b"\0\0", b"a", b"\xff"],
    pa.int8(): [0, 1, -1, 127, -128],
    pa.uint64(): [0, 1, 2, 2**63, 2**64 - 1],
    pa.float32(): [0.0, 1.0, 0.5, 16777216.0, -16777216.0, -0.0],
}  # fmt: skip

# Numbers that float32, int32 or float64 cannot hold exactly; texts that join, split or sort in unexpected ways.
_WIDE: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 1, -1, 3, 2**24 + 1, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, -(2**62) + 1],
    pa.uint64(): [0, 1, 3, 2**53, 2**53 + 1, 2**63, 2**64 - 1],
    pa.string(): ["", "a", "b", "a,b", ",", "a|b", "a b\n", "\0", "A", "9", "10", "e\u0301", "é", "ß", "\U0001f40d"],
    pa.float64(): [0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -3.0, 2.0**53],
}  # fmt: skip

_EXTREME: dict[pa.DataType, list[Any]] = {
    pa.int64(): [2**63 - 1, -(2**63)],
    pa.float64(): [1e300, -1e300, 5e-324, 1.7976931348623157e308, 1e100],
}

# They are rare: one of them in a group hides the effect of its finite values.
_SPECIAL = [float("inf"), float("nan"), float("-inf")]

TYPES: tuple[pa.DataType, ...] = tuple(_FEW)
"""The types that `check_laws` tries on a combiner if `values` does not name them."""


def values_of(kind: pa.DataType, extreme: bool = False) -> TypedValues:
    """A few values of a type, without null; `extreme` adds the ends of its range, for combiners that are exact.

    >>> import pyarrow as pa
    >>> values_of(pa.bool_()).strategy
    sampled_from([False, True])
    """
    if kind not in _FEW and not pa.types.is_decimal(kind):
        names = ", ".join(map(str, TYPES))
        raise InvalidArgument(
            f"there are no ready-made values of type {kind}, only of {names}, and all decimals: give "
            f"typed({kind}, strategy)"
        )
    few, wide = _FEW[kind] if kind in _FEW else _decimals(kind), _WIDE.get(kind, [])
    ends = _EXTREME.get(kind, []) if extreme else []
    if pa.types.is_floating(kind):
        few = (few + ends) * 4 + _SPECIAL
        ends = []
    return TypedValues(
        type=kind, strategy=st.sampled_from(few), wide=st.sampled_from(wide + ends) if wide + ends else None
    )


def _decimals(kind: pa.DataType) -> list[Any]:
    """A few values of any type of decimals, with both ends of its range."""
    most = 10**kind.precision - 1
    return [Decimal(digits).scaleb(-kind.scale, _EXACT) for digits in (0, 1, -1, 3, 7, most, -most)]


def typed(kind: pa.DataType, strategy: SearchStrategy[Any]) -> TypedValues:
    """Values from any strategy, as a column of this type.

    >>> import pyarrow as pa
    >>> from hypothesis import strategies as st
    >>> from uncombine.combiners.laws import typed
    >>> typed(pa.int8(), st.integers(-5, 5)).type
    DataType(int8)
    """
    if not isinstance(kind, pa.DataType) or not isinstance(strategy, SearchStrategy):
        raise InvalidArgument(
            f"typed(kind, strategy) takes an Arrow type and a hypothesis strategy, not {kind!r} and {strategy!r}"
        )
    return TypedValues(kind, strategy)


def as_typed(given_values: Any, extreme: bool = False) -> TypedValues:
    """The values of a column as the user gives them: a strategy, an Arrow type, or both; or an Arrow array of them."""
    if isinstance(given_values, TypedValues):
        return given_values
    if isinstance(given_values, pa.Array | pa.ChunkedArray):
        return _of_array(given_values)
    if isinstance(given_values, pa.DataType):
        return values_of(given_values, extreme)
    if isinstance(given_values, SearchStrategy):
        return TypedValues(_inferred(given_values), given_values)
    raise InvalidArgument(
        "values= takes a hypothesis strategy, an Arrow type, an Arrow array of values, or a tuple or dict of them, not "
        f"{given_values!r}"
    )


def _of_array(array: pa.Array | pa.ChunkedArray) -> TypedValues:
    """The values of an array. Its nulls are left out: columns hold nulls where the combiner allows them."""
    values = [value for value in array.to_pylist() if value is not None]
    if not values:
        raise InvalidArgument("values= has an Arrow array without a value: give pa.array([1, 2, 3])")
    return TypedValues(array.type, st.sampled_from(values))


def _inferred(strategy: SearchStrategy[Any]) -> pa.DataType:
    """The Arrow type of the values that a strategy draws, found by drawing some."""
    drawn: list[Any] = []

    @settings(
        max_examples=10, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.lists(strategy, min_size=5, max_size=20))
    def draw(values: list[Any]) -> None:
        drawn.extend(values)

    draw()
    try:
        kind = pa.infer_type(drawn)
        pa.array(drawn, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise InvalidArgument(
            f"no Arrow type holds the values that {strategy!r} draws, so name one with typed(kind, strategy): {error}"
        ) from None
    return pa.decimal128(38, kind.scale) if pa.types.is_decimal(kind) else kind
