"""Names of columns as users give them: texts, and bare columns of `uc.col` or of Spark.

Guarded by tests/local/test_local_flows.py and tests/test_advice.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import InvalidArgument
from .combiner import Combiner
from .expressions.expr import Expr

PLACES = ("__file", "__line")
"""The columns in which lines of text say where they are, for messages in them that cannot be read."""


def column_names(by: Any, what: str) -> Any:
    """The names of columns. A bare column of `uc.col` or of Spark's `F.col` stands for its name."""
    if isinstance(by, Mapping):
        raise InvalidArgument(
            f"{what} takes names of columns, but was given a dict: write by='user', and n=Count() after it (a dict of "
            "combiners as **combiners)"
        )
    if isinstance(by, Iterable) and not isinstance(by, str | Expr) and not _is_of_spark(by):
        return tuple(column_name(name, what) for name in by)
    return column_name(by, what)


def key_names(by: Any, what: str = "by=") -> list[str]:
    """The names of key columns, or of others, as a list."""
    names = column_names(by, what)
    if isinstance(names, str):
        return [names]
    if not isinstance(names, tuple):
        raise InvalidArgument(f"{what} takes the name of a column or several names, but was given {by!r}")
    return list(names)


def column_name(value: Any, what: str) -> Any:
    """The name of a bare column; other values unchanged."""
    if isinstance(value, Combiner):
        raise InvalidArgument(
            f"{what} takes names of columns, but was given {value!r}: a combiner comes after the name of its result, "
            f"such as n={value!r}"
        )
    if isinstance(value, Expr):
        if value.op == "col":
            return value.args[0]
        raise InvalidArgument(
            f"{what} takes names of columns, but was given {value!r}: make it a column with with_columns()"
        )
    if _is_of_spark(value):
        match = re.fullmatch(r"Column<'`?(\w+)`?'>", str(value))
        if match is None:
            raise InvalidArgument(
                f"{what} takes names of columns, but was given {value}: make it a column of df before uc.flow(df)"
            )
        return match[1]
    return value


def check_named(who: str, unnamed: Iterable[object]) -> None:
    """Raise for a combiner, or a second key, that is given by its place."""
    for value in unnamed:
        if isinstance(value, Mapping):
            raise InvalidArgument(f"{who} takes combiners by name, but was given a dict: write **combiners")
        if isinstance(value, Combiner):
            raise InvalidArgument(
                f"{who} takes combiners by name, but was given {value!r} without one: write a name before it, such as "
                f"n={value!r}"
            )
        raise InvalidArgument(
            f"{who} takes one by= and combiners by name, but was also given {value!r}: write by=[...]"
        )


def _is_of_spark(value: object) -> bool:
    """True for a column of Spark's `F.col`, which this module knows without importing pyspark."""
    kind = type(value)
    return kind.__name__ == "Column" and kind.__module__.startswith("pyspark.")


__all__ = ["PLACES", "check_named", "column_name", "column_names", "key_names"]
