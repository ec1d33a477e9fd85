"""Operands of expressions that no column has, or that no row can be compared with, on both sides of an operator."""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.combiners.expressions.expr import Expr
from uncombine.errors import InvalidArgument

X = uc.col("x")
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
NULLS = [None, pa.scalar(None), pa.scalar(None, pa.int64())]
NANS = [float("nan"), np.nan, np.float32("nan")]
NONE = [
    pd.NA, pd.NaT, np.datetime64("NaT"), np.timedelta64("NaT"), np.datetime64("NaT", "us"),
    Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity"), 1j, np.complex64(1), 2**70, [1], {1}, {"a": 1},
    np.array([1, 2]), np.array("a"), pa.array([1]), pa.chunked_array([[1]]), pd.Series([1, 2]), pd.Index([1]),
    pd.DataFrame({"x": [1]}), pd.Period("2020-01"), pd.Interval(0, 1),
]  # fmt: skip


def both(compare: Callable[[Any, Any], Any], value: Any) -> list[Callable[[], Any]]:
    return [lambda: compare(X, value), lambda: compare(value, X)]


@pytest.mark.parametrize("compare", [*COMPARISONS, operator.add], ids=lambda compare: compare.__name__)
@pytest.mark.parametrize("value", NONE, ids=lambda value: type(value).__name__)
def test_what_no_column_has_is_one_sentence(value: Any, compare: Callable[[Any, Any], Any]) -> None:
    for build in both(compare, value):
        with pytest.raises(InvalidArgument, match=r"is neither an expression nor|does not fit into 64 bits") as told:
            build()
        assert "\n" not in str(told.value)


@pytest.mark.parametrize("compare", COMPARISONS, ids=lambda compare: compare.__name__)
@pytest.mark.parametrize("value", NULLS, ids=lambda value: type(value).__name__)
def test_a_condition_does_not_compare_with_null(value: Any, compare: Callable[[Any, Any], Any]) -> None:
    """Each of the values that stand for null is null, and conditions with it have no row."""
    flow = uc.flow([{"ts": 0, "x": 1}])
    for build in both(compare, value):
        assert isinstance(build(), Expr)
        assert build().evaluate(pa.table({"x": [1, None]})).to_pylist() == [None, None]
        for condition in (build(), ~build() | (X > 1), (X > 1) & build()):
            for take in (flow.where, uc.Sum("x").where, lambda condition: uc.Files("/in", filter=condition)):
                with pytest.raises(InvalidArgument, match=r"keeps no row by .* null: write x\.is_null\(\) or"):
                    take(condition)


@pytest.mark.parametrize("compare", COMPARISONS, ids=lambda compare: compare.__name__)
@pytest.mark.parametrize("value", NANS, ids=lambda value: type(value).__name__)
def test_a_condition_does_not_compare_with_nan(value: Any, compare: Callable[[Any, Any], Any]) -> None:
    flow = uc.flow([{"ts": 0, "x": 1.0}])
    answer = compare is operator.ne
    for build in both(compare, value):
        assert build().evaluate(pa.table({"x": [1.0, float("nan")]})).to_pylist() == [answer, answer]
        for take in (flow.where, uc.Sum("x").where, lambda condition: uc.Files("/in", filter=condition)):
            with pytest.raises(InvalidArgument, match=rf"which is {str(answer).lower()} in each row: write x\.is_nan"):
                take(build())


@pytest.mark.parametrize("value", [pd.NA, pd.NaT, np.datetime64("NaT", "us"), np.timedelta64("NaT")], ids=repr)
def test_the_nulls_of_pandas_are_told_what_to_write(value: Any) -> None:
    for build in (*both(operator.eq, value), lambda: X.isin([1, value]), lambda: X.fill_null(value)):
        with pytest.raises(InvalidArgument, match=r"write None for null, and x\.is_null\(\) to find it"):
            build()


def test_nulls_and_nan_are_values_elsewhere() -> None:
    rows = pa.table({"x": [1.0, None, float("nan")]})
    for null in NULLS:
        assert X.isin([null, 1]).evaluate(rows).to_pylist() == [True, False, False]
        assert uc.when(X > 0, 5, null).evaluate(rows).to_pylist() == [5, None, None]
    assert X.fill_null(np.nan).is_nan().evaluate(rows).to_pylist() == [False, True, True]


def test_what_is_no_data_differs() -> None:
    """Values that hold expressions are compared with others of the library."""
    for other in (int, uc.Sum("x"), pa.int64(), object(), ..., uc.flow([{"ts": 0}])):
        assert ((other == X), (other == X), (other != X), (other != X)) == (False, False, True, True)
    assert uc.Sum(X) != uc.Sum("x")
    assert uc.Sum(X) == uc.Sum(X)


def test_a_scalar_of_numpy_may_stand_on_the_left() -> None:
    rows = pa.table({"x": [1, 3]})
    assert (np.float64(2) < X).evaluate(rows).to_pylist() == [False, True]
    assert (np.int64(2) * X).evaluate(rows).to_pylist() == [2, 6]
    assert repr(np.float32(0.5) - X) == "0.5 - col('x')"


def test_a_filter_is_a_condition() -> None:
    with pytest.raises(InvalidArgument, match="filter= takes an expression such as col"):
        uc.Files("/in", filter=True)  # type: ignore[arg-type]
