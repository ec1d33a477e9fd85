"""Advice: what to write instead of a method that other libraries have, and for a column that nobody named.

Guarded by tests/combiners/test_hints.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import NoSuchStep

_FUNCTION = "write a function of an Arrow table, such as lambda rows: pc.utf8_lower(rows['x'])"


def _each(names: str, advice: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), advice)


OF_EXPRESSIONS: Mapping[str, str] = {
    **_each("isnull isNull isna is_na", "write x.is_null()"),
    **_each("notnull notna isNotNull is_not_null is_valid", "write ~x.is_null()"),
    **_each("isnan isNaN", "write x.is_nan()"),
    **_each("fillna nvl ifnull coalesce", "write x.fill_null(0), or uc.coalesce(x, y)"),
    **_each("astype try_cast", "write x.cast('int64')"),
    **_each("is_in isIn", "write x.isin([...])"),
    **_each("getField get_field getItem get", "write x.field('name')"),
    **_each("otherwise when", "write uc.when(condition, then, otherwise)"),
    **_each("alias name rename label", "write the name before it, as in with_columns(name=...)"),
    "between": "write (x >= low) & (x <= high)",
    "eqNullSafe": "write (x == y) | (x.is_null() & y.is_null())",
    **_each("str dt lower upper strip trim replace split substr slice concat length", _FUNCTION),
    **_each("contains startswith startsWith endswith endsWith like ilike rlike match", _FUNCTION),
    **_each("round floor ceil sqrt log exp clip map apply hour minute day month year date truncate", _FUNCTION),
}

OF_COMBINERS: Mapping[str, str] = {
    **_each("filter filter_ when", "write .where(uc.col('x') > 0)"),
    **_each("alias name as_ label rename", "write the name before it, as in total=uc.Sum('x')"),
    **_each("over partitionBy partition_by", "write the keys as by=, and the time as flow.window(...)"),
    **_each("distinct unique", "write uc.CountDistinct('x') or uc.CollectSet('x')"),
    **_each("round cast fillna coalesce apply", "write .map(function), which gets the results as an Arrow array"),
}


def no_such_method(owner: str, value: object, name: str, advice: Mapping[str, str]) -> AttributeError:
    """The error for an attribute that an expression or a combiner does not have.

    >>> no_such_method("an expression", 5, "isnull", OF_EXPRESSIONS)
    NoSuchStep('an expression has no isnull: write x.is_null()')
    """
    if name in advice:
        return NoSuchStep(f"{owner} has no {name}: {advice[name]}")
    return AttributeError(f"{type(value).__name__!r} object has no attribute {name!r}")


DIFF = "diff"
"""The name that the library gives to columns of weights."""

NAME_WEIGHTS = f"diff='{DIFF}' if it has the weights of the rows"


def uncounted(what: str, column: str, remedy: str) -> str:
    """The warning about a column that looks like one of changes, where the rows are not read as changes.

    >>> uncounted("the table", "diff", NAME_WEIGHTS)[:66]
    "the table has a column 'diff', and every row counts as an addition"
    """
    return (
        f"{what} has a column {column!r}, and every row counts as an addition: give {remedy}, or rename the column if "
        "it says nothing of changes"
    )


__all__ = ["DIFF", "NAME_WEIGHTS", "OF_COMBINERS", "OF_EXPRESSIONS", "no_such_method", "uncounted"]
