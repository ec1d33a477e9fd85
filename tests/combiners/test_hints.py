"""A method that expressions and combiners do not have, and arguments in another order, say what to write."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.advice import OF_COMBINERS, OF_EXPRESSIONS
from uncombine.errors import InvalidArgument, NoSuchStep, TypeMismatch

X, TOTAL = uc.col("x"), uc.Sum("x")
TABLE = pa.table({"user": ["a", "b"], "x": [1, 2]})


@pytest.mark.parametrize(
    ("value", "name", "says"),
    [
        (X, "isNull", "an expression has no isNull: write x.is_null()"),
        (X, "notna", "an expression has no notna: write x.is_not_null()"),
        (X, "between", "an expression has no between: write (x >= low) & (x <= high)"),
        (X, "lower", "an expression has no lower: write x.str.to_lowercase()"),
        (X, "hour", "an expression has no hour: write x.dt.hour()"),
        (X, "sqrt", "an expression has no sqrt: write x.call('sqrt')"),
        (X.str, "size", "x.str has no size: write x.str.len_chars()"),
        (X.dt, "dayofyear", "x.dt has no dayofyear: write x.dt.ordinal_day()"),
        (X + 1, "astype", "an expression has no astype: write x.cast('int64')"),
        (TOTAL, "filter", "a combiner has no filter: write .where(uc.col('x') > 0)"),
        (TOTAL / uc.Count(), "alias", "a combiner has no alias: write the name before it, as in total=uc.Sum('x')"),
    ],
)
def test_a_method_of_another_library_says_what_to_write(value: Any, name: str, says: str) -> None:
    with pytest.raises(NoSuchStep) as refused:
        getattr(value, name)
    assert str(refused.value) == says


@pytest.mark.parametrize(("value", "advice"), [(X, OF_EXPRESSIONS), (TOTAL, OF_COMBINERS)])
def test_other_names_are_attribute_errors(value: Any, advice: dict[str, str]) -> None:
    assert [name for name in advice if hasattr(value, name)] == []
    with pytest.raises(AttributeError, match="object has no attribute 'bogus'"):
        value.bogus
    assert repr(copy.deepcopy(value)) == repr(pickle.loads(pickle.dumps(value))) == repr(value)


def test_an_error_in_a_property_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object) -> object:
        return None.columns  # type: ignore[attr-defined]

    monkeypatch.setattr(uc.Sum, "capability", property(broken))
    monkeypatch.setattr(type(X), "columns", property(broken))
    for value, name in ((TOTAL, "capability"), (X, "columns")):
        with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'columns'"):
            getattr(value, name)


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        (lambda: uc.aggregate(TABLE, "user", {"n": uc.Count()}), InvalidArgument, "combiners by name, but was given a"),
        (lambda: uc.aggregate(TABLE, {"n": uc.Count()}), InvalidArgument, "write by='user', and n=Count() after it"),
        (lambda: uc.aggregate("rows.parquet"), TypeMismatch, "the table is a str: read it first, as with pyarrow"),
        (
            lambda: uc.aggregate({"x": 1}),
            TypeMismatch,
            "a dict has the values of each column, but 'x' is 1: write [row]",
        ),
        (
            lambda: uc.aggregate(TABLE, group_by="user"),
            InvalidArgument,
            "but was given 'user': write keys as by='user'",
        ),
        (lambda: uc.Sliding("1 hour", slide="1 s"), InvalidArgument, "no option 'slide': did you mean 'period'?"),
        (lambda: uc.Quantile("x", p=0.5), InvalidArgument, "Quantile() has no option 'p'"),
    ],
)
def test_arguments_of_other_libraries_say_what_to_write(wrong: Callable[[], Any], error: Any, says: str) -> None:
    with pytest.raises(error) as refused:
        wrong()
    assert says in str(refused.value)


WEIGHED = pa.table({"user": ["a", "a"], "x": [1, 2], "diff": [1, -1]})


@pytest.mark.parametrize("by", ["user", ()])
def test_weights_that_nobody_named_give_a_warning(by: Any) -> None:
    with pytest.warns(
        UserWarning, match=r"^the table has a column 'diff', and every row counts .* give diff='diff'"
    ) as w:
        uc.aggregate(WEIGHED, by=by, n=uc.Count())
    assert [warning.filename for warning in w] == [__file__]


def test_weights_that_are_named_or_change_nothing_give_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        uc.aggregate(WEIGHED, "user", "diff", n=uc.Count())
        uc.aggregate(WEIGHED, "diff", n=uc.Count())
        uc.aggregate(WEIGHED, "user", n=uc.Sum("diff"))
        uc.aggregate(WEIGHED.set_column(2, "diff", pa.array([1, 1])), "user", n=uc.Count())
        uc.aggregate(WEIGHED.set_column(2, "diff", pa.array([0.5, -1.0])), "user", n=uc.Count())
        uc.aggregate(WEIGHED.slice(0, 0), "user", n=uc.Count())
