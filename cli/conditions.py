"""Conditions from text, as `--where` takes them: `user=ada`, `score>=3`, or an expression, `col('user') == 'ada'`.

A value is read in the type of its column, so that the condition is one of columns and values, which readers of files
decide by statistics and by folders. No text is run as code.

Guarded by tests/cli/test_conditions.py.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.types as pt

from ..combiners import Expr, col
from ..combiners.read_repr import EXPRESSIONS, Unreadable, read_value
from ..errors import InvalidArgument, TypeMismatch, require_column
from ..windows import span
from ..windows.texts import quoted, reading, require_short
from ..windows.times import UTC_MICROS

_COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
_COMPARISON = re.compile(rf"(.+?)({'|'.join(_COMPARED)})(.*)", re.DOTALL)
_EXPRESSION = re.compile(rf"[~(\s]*({'|'.join(EXPRESSIONS)})\s*\(")
_FIELD = "col('place').field('city') == 'Rome'"
_FORM = "COLUMN=VALUE such as user=ada, COLUMN>=VALUE, or an expression such as col('user') == 'ada'"


@dataclass(frozen=True)
class Clock:
    """The comparison of event times in a condition: the column, its times, and the zone of times without one.

    A row whose text is no time meets it, so that it is told as a bad one.
    """

    column: str
    times: Expr
    zone: str | None = None
    parsed: bool = False
    """True if the times are computed, so that some may be none."""

    @property
    def example(self) -> str:
        """A time as `value` takes it."""
        return "2024-05-01 12:00" if self.zone else "2024-05-01T12:00:00Z"

    def value(self, text: str) -> datetime:
        """The time of a text.

        >>> Clock("ts", col("ts"), "Europe/Paris").value("2024-05-01T12:00")
        datetime.datetime(2024, 5, 1, 10, 0, tzinfo=datetime.timezone.utc)
        """
        at = datetime.fromisoformat(text.strip())
        return (at if at.tzinfo else at.replace(tzinfo=ZoneInfo(self.zone or "UTC"))).astimezone(UTC)


def condition_of(
    texts: Sequence[str], columns: pa.Schema, clock: Clock | None = None, option: str = "--where"
) -> Expr | None:
    """The condition that all of some texts make, over rows with these columns; None without any.

    Where the column of event times has texts or numbers of them, `clock` says how their times are compared. Of results,
    which `--having` names, times without a zone are by the clock of their column.

    >>> columns = pa.schema({"user": pa.string(), "score": pa.int64()})
    >>> condition_of(["user=ada", "score>=3"], columns)
    (col('user') == 'ada') & (col('score') >= 3)
    >>> condition_of(["user="], columns)
    col('user').is_null() | (col('user') == '')
    """
    made = [_condition(text, columns, clock, option) for text in texts]
    return reduce(operator.and_, made) if made else None


def _condition(text: str, columns: pa.Schema, clock: Clock | None, option: str) -> Expr:
    require_short(text, "a condition")
    if is_expression(text):
        return expression_of(text, option)
    match = _COMPARISON.fullmatch(text)
    if match is None:
        raise InvalidArgument(f"{option} takes {_FORM}, but was given {quoted(text)}")
    name, sign, value = match[1].strip(), match[2], match[3]
    require_column(name, columns.names, option)
    kind = columns.field(name).type
    if not value:
        return _without_value(col(name), sign, f"{option} {quoted(text)}", kind)
    if option == "--having" and pt.is_timestamp(kind) and kind.tz:
        clock = Clock(name, col(name), kind.tz)
    at = clock if clock is not None and clock.column == name else None
    try:
        if at is not None:
            kind = UTC_MICROS
            compared: Expr = _COMPARED[sign](at.times, at.value(value))
            return compared | at.times.is_null() if at.parsed else compared
        return _COMPARED[sign](col(name), value_of(value, kind))
    except (ValueError, ArithmeticError, LookupError):
        raise InvalidArgument(
            f"{option} {quoted(text)} compares column {name!r}, which is {kind}, with {quoted(value)}, which is none: "
            f"write a value such as {(_example(kind) if at is None else at.example)!r}"
        ) from None


def _narrowed(value: float, kind: pa.DataType) -> float:
    """The number that a column of this type has in the place of `value`."""
    return float(pa.scalar(value, pa.float64()).cast(kind, safe=False).as_py())


def _without_value(column: Expr, sign: str, text: str, kind: pa.DataType) -> Expr:
    """The condition of null, and of the empty text."""
    if sign not in ("=", "==", "!="):
        raise InvalidArgument(f"{text} has no value after {sign}: write {_FORM}")
    empty = column.is_null() | (column == "") if _is_text(kind) else column.is_null()
    return ~empty if sign == "!=" else empty


def is_expression(text: str) -> bool:
    """True for the text of an expression, and false for that of a comparison.

    >>> is_expression("col('user') == 'ada'"), is_expression("user=ada")
    (True, False)
    """
    return _EXPRESSION.match(text) is not None


def expression_of(text: str, option: str = "--where") -> Expr:
    """The expression of a text."""
    form = _FORM if option != "--by" else "NAME=EXPRESSION such as hour=col('ts').dt.hour()"
    with reading(text, form):
        try:
            made = read_value(text, EXPRESSIONS)
        except Unreadable as unreadable:
            raise InvalidArgument(
                f"{quoted(str(unreadable))} in {option} is neither a call of a public name nor a plain value"
            ) from None
    if not isinstance(made, Expr):
        raise InvalidArgument(f"{option} takes {form}, but was given {quoted(text)}")
    return made


def value_of(text: str, kind: pa.DataType) -> Any:
    """The value of a text in the type of a column."""
    if pt.is_dictionary(kind):
        return value_of(text, kind.value_type)
    if _is_text(kind):
        return text
    word = text.strip()
    if pt.is_integer(kind):
        return int(word)
    if pt.is_floating(kind):
        return _narrowed(float(word), kind)
    if pt.is_decimal(kind):
        return Decimal(word)
    if pt.is_boolean(kind):
        return {"true": True, "false": False}[word.casefold()]
    if pt.is_timestamp(kind):
        at = datetime.fromisoformat(word)
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return at if kind.tz else at.astimezone(UTC).replace(tzinfo=None)
    if pt.is_date(kind):
        return date.fromisoformat(word)
    if pt.is_duration(kind):
        return span(word).to_timedelta()
    raise TypeMismatch(f"a condition compares no column of {kind}: write an expression of it, such as {_FIELD}")


def _example(kind: pa.DataType) -> str:
    """A value of a type, for a message."""
    if pt.is_boolean(kind):
        return "true"
    if pt.is_timestamp(kind):
        return "2024-05-01T12:00:00Z"
    return "2024-05-01" if pt.is_date(kind) else "5 minutes" if pt.is_duration(kind) else "3"


def _is_text(kind: pa.DataType) -> bool:
    return pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind)


__all__ = ["Clock", "condition_of", "expression_of", "is_expression", "value_of"]


def __dir__() -> list[str]:
    return __all__
