"""Draws expressions of texts, times, lengths of time, numbers and conditions, and rows at the edges of their types."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

import uncombine as uc
from uncombine import Expr, col

STAMP = pa.timestamp("us", "UTC")
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "ts": (
        STAMP,
        [
            None,
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(1582, 10, 4, 23, 30, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
            datetime(1970, 1, 1, tzinfo=UTC),
            datetime(2016, 1, 3, 12, tzinfo=UTC),
            datetime(2020, 12, 31, 6, 7, 8, 9, tzinfo=UTC),
            datetime(2024, 2, 29, 13, 45, 30, 5, tzinfo=UTC),
            datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
            datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
        ],
    ),
    "at": (STAMP, [None, datetime(2024, 10, 27, 0, 30, tzinfo=UTC), datetime(2024, 10, 27, 1, 30, tzinfo=UTC)]),
    "gap": (
        pa.duration("us"),
        [None, timedelta(0), timedelta(microseconds=-1), timedelta(days=-3, hours=5, microseconds=7), timedelta(400)],
    ),
    "day": (pa.date32(), [None, date(1, 1, 1), date(1969, 12, 29), date(2000, 2, 29), date(2021, 1, 3)]),
    "text": (
        pa.string(),
        [None, "", "a", "A,b", " a ", ",", "é", "e\u0301", "ß", "a\U0001f600b", "\uffff", "a.b,c,,", "\u2003a", "\\E"],
    ),
    "word": (pa.string(), [None, "", "Ada", "bob", "a\U0001f40d"]),
    "n": (pa.int64(), [None, -7, -1, 0, 1, 2, 3, 123]),
    "small": (pa.int16(), [None, -32768, -1, 0, 1, 32767]),
    "flag": (pa.bool_(), [None, True, False]),
}
"""The type of each column, and its values."""

SCHEMA = pa.schema({name: kind for name, (kind, _) in COLUMNS.items()})

Draw = Callable[["random.Random", int], Expr]


def rows(rng: random.Random, count: int) -> pa.Table:
    """So many rows of the values of each column."""
    columns = [[rng.choice(values) for _ in range(count)] for _, values in COLUMNS.values()]
    return pa.table(columns, schema=SCHEMA)


def expression(rng: random.Random, depth: int = 3) -> Expr:
    """An expression of any kind."""
    return rng.choice([text, text, number, number, condition, time, time, length, day])(rng, depth)


def text(rng: random.Random, depth: int) -> Expr:
    """An expression of texts."""
    if depth <= 0 or rng.random() < 0.15:
        return col(rng.choice(["text", "text", "word"]))
    inner = text(rng, depth - 1)
    some = rng.choice(["a", ",", "b", ".", "\U0001f600", "é", "zz"])
    made: list[Callable[[], Expr]] = [
        lambda: inner.str.to_lowercase(),
        lambda: inner.str.to_uppercase(),
        lambda: inner.str.strip_chars(rng.choice([None, " ", "a,", "\U0001f600b", ""])),
        lambda: inner.str.strip_chars_start(rng.choice([None, "a ", "é"])),
        lambda: inner.str.strip_chars_end(rng.choice([None, ",.", "b"])),
        lambda: inner.str.replace(some, rng.choice(["", "<>", "aa"]), literal=True),
        lambda: inner.str.replace_all(some, rng.choice(["", "<>", "\\1$0"]), literal=True),
        lambda: inner.str.replace_all("[a-c]+", "x"),
        lambda: inner.str.slice(rng.randint(-3, 3), rng.choice([None, 0, 1, 2])),
        lambda: inner.str.slice(rng.randint(0, 3), rng.choice([None, 1, 2])),
        lambda: inner.str.split_part(some, rng.choice([0, 1, 2, -1])),
        lambda: uc.concat(inner, rng.choice(["-", ""]), text(rng, depth - 1), separator=rng.choice(["", "", "/"])),
        lambda: uc.when(condition(rng, depth - 1), inner, "else"),
        lambda: inner.fill_null("?"),
        lambda: inner.call("utf8_reverse"),
    ]
    return rng.choice(made)()


def number(rng: random.Random, depth: int) -> Expr:
    """An expression of whole numbers that are not large."""
    if depth <= 0:
        return col(rng.choice(["n", "small"]))
    inner = time(rng, depth - 1)
    made: list[Callable[[], Expr]] = [
        lambda: text(rng, depth - 1).str.len_chars(),
        lambda: text(rng, depth - 1).str.len_bytes(),
        lambda: getattr(inner.dt, rng.choice(["year", "quarter", "month", "week", "day", "ordinal_day", "weekday"]))(),
        lambda: getattr(inner.dt, rng.choice(["hour", "minute", "second", "microsecond"]))(),
        lambda: getattr(day(rng, depth - 1).dt, rng.choice(["year", "quarter", "month", "week", "day", "weekday"]))(),
        lambda: number(rng, depth - 1) % rng.choice([2, 7]),
        lambda: length(rng, depth - 1) // rng.choice([timedelta(hours=5), timedelta(microseconds=-3)]),
    ]
    return rng.choice(made)()


def condition(rng: random.Random, depth: int) -> Expr:
    """An expression that is true or false."""
    if depth <= 0:
        return col("flag")
    compare = rng.choice(["__eq__", "__ne__", "__lt__", "__ge__"])
    some = rng.choice(["a", "", ",", "\U0001f600", "é"])
    made: list[Callable[[], Expr]] = [
        lambda: text(rng, depth - 1).str.contains(some, literal=True),
        lambda: text(rng, depth - 1).str.contains("^a|b$"),
        lambda: text(rng, depth - 1).str.starts_with(some),
        lambda: text(rng, depth - 1).str.ends_with(some),
        lambda: getattr(number(rng, depth - 1), compare)(rng.choice([0, 1, 5])),
        lambda: getattr(text(rng, depth - 1), compare)(rng.choice(["a", "", "é"])),
        lambda: getattr(length(rng, depth - 1), compare)(rng.choice([timedelta(0), timedelta(days=1)])),
        lambda: getattr(time(rng, depth - 1), compare)(time(rng, depth - 1)),
        lambda: condition(rng, depth - 1) & ~condition(rng, depth - 1),
        lambda: expression(rng, depth - 1).is_null(),
    ]
    return rng.choice(made)()


def time(rng: random.Random, depth: int) -> Expr:
    """An expression of times in UTC; in some the times are near enough to 1970 for all units."""
    if depth <= 0 or rng.random() < 0.2:
        return col(rng.choice(["ts", "at"]))
    inner = time(rng, depth - 1)
    every = rng.choice(["15 minutes", "1 hour", "7 hours", "1 day", "5 days", "1 week", "2 weeks", "3 us"])
    made: list[Callable[[], Expr]] = [
        lambda: inner.dt.truncate(every),
        lambda: inner.dt.truncate(rng.choice(["1 month", "1 quarter", "1 year", "2 months"])),
        lambda: inner + rng.choice([timedelta(hours=3), timedelta(days=-1, microseconds=1)]),
        lambda: inner - length(rng, depth - 1),
        lambda: length(rng, depth - 1) + inner,
    ]
    return rng.choice(made)()


def length(rng: random.Random, depth: int) -> Expr:
    """An expression of lengths of time."""
    if depth <= 0 or rng.random() < 0.2:
        return col("gap")
    made: list[Callable[[], Expr]] = [
        lambda: time(rng, depth - 1) - time(rng, depth - 1),
        lambda: length(rng, depth - 1) + timedelta(seconds=1),
        lambda: length(rng, depth - 1) - length(rng, depth - 1),
        lambda: length(rng, depth - 1) * rng.choice([2, -1, col("small") % 3]),
        lambda: length(rng, depth - 1) / rng.choice([3, 0.5]),
        lambda: -length(rng, depth - 1),
        lambda: abs(length(rng, depth - 1)),
    ]
    return rng.choice(made)()


def day(rng: random.Random, depth: int) -> Expr:
    """An expression of dates."""
    if depth <= 0 or rng.random() < 0.3:
        return col("day")
    made: list[Callable[[], Expr]] = [
        lambda: time(rng, depth - 1).dt.date(),
        lambda: day(rng, depth - 1).dt.truncate(rng.choice(["1 week", "1 month", "1 quarter", "1 year"])),
    ]
    return rng.choice(made)()
