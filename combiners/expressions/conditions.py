"""Conditions that cannot be meant: a comparison with null or NaN has one answer for all rows.

Guarded by tests/combiners/expressions/test_conditions.py.
"""

from __future__ import annotations

import math
from typing import Any

from ...errors import InvalidArgument
from .expr import Expr

_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})


def condition_of(value: Any, who: str) -> Expr:
    """A condition that was given to `who`; raise for another value, and for a comparison with null or NaN.

    >>> from uncombine import col
    >>> condition_of(col("x") == float("nan"), "where()")
    Traceback (most recent call last):
        ...
    uncombine.errors.InvalidArgument: where() compares with NaN in col('x') == float('nan'), which is false ...
    """
    if not isinstance(value, Expr):
        raise InvalidArgument(f"{who} takes an expression such as col('x') > 2, but was given {value!r}")
    require_meant(value, who)
    return value


def require_meant(value: object, who: str) -> None:
    """Raise for an expression with a part that compares with null or NaN."""
    if not isinstance(value, Expr):
        return
    for literal in (part.args[0] for part in value.args if isinstance(part, Expr) and part.op == "lit"):
        if value.op in _COMPARISONS and literal is None:
            reason = "nothing equals null" if value.op in ("==", "!=") else "nothing is less or greater than null"
            raise InvalidArgument(
                f"{who} keeps no row by {value!r}, because {reason}: write x.is_null() or ~x.is_null()"
            )
        if value.op in _COMPARISONS and isinstance(literal, float) and math.isnan(literal):
            answer = "true" if value.op == "!=" else "false"
            raise InvalidArgument(
                f"{who} compares with NaN in {value!r}, which is {answer} in each row: write x.is_nan() or ~x.is_nan()"
            )
    for part in value.args:
        require_meant(part, who)


__all__ = ["condition_of", "require_meant"]
