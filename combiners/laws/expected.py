"""Results compared with a function of plain lists: a combiner can keep every law and still compute a wrong result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import InvalidArgument, OutOfRange
from ..algebra import Accumulators
from ..combiner import Bound
from .cases import Case
from .compare import near
from .examples import KEYS, Row
from .guard import TooLarge

_MOST_ROWS = 10_000

_NONE = object()
"""Stands for the result of lists on which the function gives none."""


def as_expected(case: Case) -> None:
    """The results of a and of a + b equal those of the function on the values, each repeated by its weight."""
    if case.subject.expected is None or not case.subject.extracts:
        return
    a, b = (_light(rows) for rows in (case.a, case.b))
    added = case.add(a)
    _compare(case, added, a, "add(a)")
    if b:
        _compare(case, case.merge(added, case.add(b)), a + b, "a + b")


def _light(rows: Sequence[Row]) -> list[Row]:
    """The rows with positive weights, few enough to be written out one by one."""
    light = [(group, abs(weight), values) for group, weight, values in rows]
    if sum(weight for _, weight, _ in light) <= _MOST_ROWS:
        return light
    return [(group, min(weight, 1), values) for group, weight, values in light]


def _compare(case: Case, accumulators: Accumulators, rows: Sequence[Row], text: str) -> None:
    results = case.extract(accumulators)
    if results is None:
        return
    plain_results = results.to_pylist()
    without = unseen(case, rows)
    for group in range(KEYS):
        mine = [row for row, out in zip(rows, without, strict=True) if row[0] == group and row[1] > 0 and not out]
        # A combiner without a column is given one None for each row.
        values = [row[2] or (None,) for row in mine for _ in range(row[1])]
        lists = [list(column) for column in zip(*values, strict=True)]
        if not lists:
            continue
        slack = _slack(case, lists)
        wanted = _wanted(case, lists)
        others = [_wanted(case, other) for other in orders(lists)]
        if any(other is _NONE or not _agree(wanted, other, results.type, slack) for other in [wanted, *others]):
            continue
        case.count("expected")
        if not _agree(plain_results[group], wanted, results.type, slack):
            shown = ", ".join(map(repr, lists))
            cause = case.cause(plain_results[group], wanted, mine, rounds=False)
            case.fail(f"extract({text}) of group {group}", plain_results[group], f"expected({shown})", wanted, cause)


def orders(lists: list[list[Any]]) -> list[list[list[Any]]]:
    """The rows backwards; if they may read the same, or hold NaN or null, also sorted up and down, these at an end."""
    rows = list(zip(*lists, strict=True))
    odd = [any(value is None or value != value for value in row) for row in rows]
    shown = list(map(repr, rows))
    places: list[Sequence[int]] = [range(len(rows))[::-1]]
    if any(odd) or shown == shown[::-1]:
        up = sorted(places[0], key=lambda place: (odd[place], shown[place]))
        places += [up, up[::-1]]
    return [[[column[place] for place in order] for column in lists] for order in places]


def _wanted(case: Case, lists: list[list[Any]]) -> Any:
    """The function's result, or `_NONE` if it has none."""
    assert case.subject.expected is not None
    try:
        wanted = case.subject.expected(*[list(column) for column in lists])
    except (ArithmeticError, ValueError):
        return _NONE
    except Exception as error:
        if isinstance(error, TypeError) and any(None in column for column in lists):
            return _NONE
        raise InvalidArgument(
            f"expected= takes a function of one plain list for each column that {case.subject.name} reads, but it "
            f"raised {type(error).__name__} on {lists}: {error}"
        ) from error
    if isinstance(wanted, Fraction):
        return float(wanted)
    return wanted.tolist() if isinstance(wanted, np.generic | np.ndarray) else wanted


def _slack(case: Case, lists: list[list[Any]]) -> float:
    """The combiner's tolerance plus the rounding that the function itself may have on floats."""
    views = case.subject.views
    bound = case.slack(views[0]) if len(views) == 1 else 0.0
    if bound == math.inf:
        return bound
    floats = [abs(value) for column in lists for value in column if isinstance(value, float) and math.isfinite(value)]
    return bound + 2.0**-44 * sum(floats)


def _agree(result: Any, wanted: Any, kind: pa.DataType, slack: float) -> bool:
    """True if a result equals the wanted one, both in the type of results."""
    if isinstance(wanted, float) and math.isnan(wanted) and result is None:
        return True
    if pa.types.is_decimal(kind) and isinstance(result, Decimal) and isinstance(wanted, int | float | Decimal):
        return math.isfinite(wanted) and abs(result - Decimal(wanted)) <= Decimal("0.5001").scaleb(-kind.scale)
    result, wanted = _plain(result, kind), _plain(wanted, kind)
    if near(result, wanted, slack):
        return True
    if isinstance(result, float) and isinstance(wanted, float) and math.isfinite(result) and math.isfinite(wanted):
        return abs(result - wanted) <= slack + 1e-9 * max(abs(result), abs(wanted))
    if isinstance(result, list) and isinstance(wanted, list) and pa.types.is_list(kind):
        return len(result) == len(wanted) and all(
            _agree(one, other, kind.value_type, slack) for one, other in zip(result, wanted, strict=True)
        )
    return False


def _plain(value: Any, kind: pa.DataType) -> Any:
    """A value as Arrow gives it for results of this type; unchanged if it does not fit the type."""
    if isinstance(value, tuple | set | frozenset):
        value = list(value) if isinstance(value, tuple) else sorted(value)
    if value is None or (isinstance(value, float) and not pa.types.is_floating(kind)):
        return value
    try:
        return pa.array([value], kind, from_pandas=False)[0].as_py()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return value


def unseen(case: Case, rows: Sequence[Row]) -> np.ndarray:
    """A mask of the rows that no part takes: one of its values is null, or its predicate is not true."""
    fn = case.subject.fn
    if not isinstance(fn, Bound) or not case.subject.columns:
        return np.zeros(len(rows), np.bool_)
    try:
        return _ignored(fn, pa.table(dict(zip(case.subject.columns, case.subject.arrays(rows), strict=True))))
    except OutOfRange as error:
        raise TooLarge("add", error) from None


def _ignored(fn: Bound, table: pa.Table) -> np.ndarray:
    ignored = np.ones(table.num_rows, np.bool_)
    for part in fn.plan.parts:
        nullable = (*part.fn.nullable, *[False] * len(part.inputs))
        missing = np.zeros(table.num_rows, np.bool_)
        for expr, may_be_null in zip(part.inputs, nullable, strict=False):
            missing |= np.asarray(pc.is_null(expr.evaluate(table))) & (not may_be_null)
        if part.where is not None:
            missing |= ~np.asarray(pc.fill_null(part.where.evaluate(table), False), np.bool_)
        ignored &= missing
    return ignored
