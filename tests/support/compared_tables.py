"""Two random tables that are nearly the same, and their comparison in plain Python, a row at a time."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from uncombine.combiners.rows.plain_types import plain_table

NAN = float("nan")

TYPES: Mapping[str, tuple[pa.DataType, ...]] = {
    "text": (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())),
    "real": (pa.float64(), pa.float64()),
    "whole": (pa.int64(), pa.int32(), pa.int8(), pa.decimal128(12, 3)),
    "cents": (pa.decimal128(10, 2), pa.decimal128(20, 4), pa.decimal128(10, 2)),
    "at": (pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC"), pa.timestamp("s", "UTC")),
    "local": (pa.timestamp("us"), pa.timestamp("ms")),
    "day": (pa.date32(), pa.date64()),
    "yes": (pa.bool_(), pa.bool_()),
    "list": (pa.list_(pa.float64()), pa.large_list(pa.float64())),
    "deep": (pa.list_(pa.list_(pa.int64())), pa.list_(pa.list_(pa.int16()))),
    "part": (
        pa.struct([("a", pa.int64()), ("b", pa.float64())]),
        pa.struct([("a", pa.int32()), ("b", pa.float64())]),
    ),
    "steps": (pa.list_(pa.struct([("x", pa.float64())])), pa.large_list(pa.struct([("x", pa.float64())]))),
    "bytes": (pa.binary(), pa.large_binary()),
}
"""The types of each column; the values of a column fit all of them."""

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)

VALUES: Mapping[str, Callable[[random.Random], Any]] = {
    "text": lambda draw: draw.choice([None, "", "a", "b", "ab", "é"]),
    "real": lambda draw: draw.choice([None, NAN, 0.0, -0.0, 1.0, 1.0 + 1e-10, 1e6, 1e6 + 1e-4, math.inf, -math.inf]),
    "whole": lambda draw: draw.choice([None, 0, 1, -1, 100]),
    "cents": lambda draw: draw.choice([None, Decimal("0.00"), Decimal("1.10"), Decimal("-1.10"), Decimal("12.34")]),
    "at": lambda draw: draw.choice([None, NOON, NOON + timedelta(seconds=draw.randrange(3))]),
    "local": lambda draw: draw.choice([None, (NOON + timedelta(seconds=draw.randrange(3))).replace(tzinfo=None)]),
    "day": lambda draw: draw.choice([None, date(2024, 5, 1), date(1969, 12, 31)]),
    "yes": lambda draw: draw.choice([None, True, False]),
    "list": lambda draw: draw.choice([None, [], [None], [0.0], [-0.0], [NAN], [1.0, 2.0], [1.0 + 1e-10, 2.0]]),
    "deep": lambda draw: draw.choice([None, [], [None], [[]], [[1]], [[1], [2]], [[1, 2]]]),
    "part": lambda draw: draw.choice(
        [
            None,
            {"a": None, "b": None},
            {"a": 1, "b": NAN},
            {"a": 1, "b": -0.0},
            {"a": 1, "b": 1.0},
            {"a": 1, "b": 1 + 1e-10},
        ]
    ),
    "steps": lambda draw: draw.choice(
        [None, [], [None], [{"x": None}], [{"x": NAN}], [{"x": 1.0}], [{"x": 1 + 1e-10}]]
    ),
    "bytes": lambda draw: draw.choice([None, b"", b"a", b"a\0"]),
}


@dataclass(frozen=True)
class Pair:
    """Two tables, and the columns that identify their rows."""

    old: pa.Table
    new: pa.Table
    keys: tuple[str, ...]


def unique_pair(seed: int, size: int = 40) -> Pair:
    """Two tables in which no two rows share their keys; some rows are changed, and some missing."""
    draw = random.Random(seed)
    names = draw.sample(list(TYPES), draw.randrange(2, 7))
    keys = tuple(names[: draw.randrange(1, min(4, len(names)))])
    rows: dict[Any, dict[str, Any]] = {}
    for _ in range(size):
        row = {name: VALUES[name](draw) for name in names}
        rows.setdefault(plain([row[name] for name in keys]), row)
    old, new = [], []
    for row in rows.values():
        if draw.random() < 0.85:
            old.append(row)
        if draw.random() < 0.85:
            again = {
                name: VALUES[name](draw) if name not in keys and draw.random() < 0.2 else row[name] for name in names
            }
            new.append({name: zero(draw, value) for name, value in again.items()})
    draw.shuffle(new)
    return Pair(old=table(draw, old, names), new=table(draw, new, draw.sample(names, len(names))), keys=keys)


def repeated_pair(seed: int, size: int = 30) -> Pair:
    """Two tables with rows that are there several times; one of them may be a changelog."""
    draw = random.Random(seed)
    names = draw.sample(list(TYPES), draw.randrange(1, 4))
    some = [{name: VALUES[name](draw) for name in names} for _ in range(12)]
    old, new = ([draw.choice(some) for _ in range(draw.randrange(size))] for _ in range(2))
    return Pair(old=weighted(draw, old, names), new=weighted(draw, new, draw.sample(names, len(names))), keys=())


def weighted(draw: random.Random, rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> pa.Table:
    """The rows, now and then as a changelog, which may retract more than it gave."""
    out = table(draw, rows, names)
    if draw.random() < 0.5:
        return out
    weights = [draw.choice([1, 1, 1, 2, -1, -2, 0]) for _ in rows]
    return out.append_column("diff", pa.array(weights, draw.choice([pa.int64(), pa.int32()])))


def as_changelog(seed: int, rows: pa.Table) -> pa.Table:
    """A changelog of which these rows are left."""
    draw = random.Random(seed)
    extra = [draw.randrange(rows.num_rows) for _ in range(5)] if rows.num_rows else []
    places = [*range(rows.num_rows), *extra, *extra]
    weights = [1] * rows.num_rows + [1] * len(extra) + [-1] * len(extra)
    order = draw.sample(range(len(places)), len(places))
    taken = plain_table(rows).take(pa.array([places[at] for at in order], pa.int64()))
    return taken.append_column("w", pa.array([weights[at] for at in order], pa.int64()))


def zero(draw: random.Random, value: Any) -> Any:
    """The value; a zero may have another sign."""
    return draw.choice([0.0, -0.0]) if isinstance(value, float) and value == 0 else value


def table(draw: random.Random, rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> pa.Table:
    """The rows in columns of some of their types, in some chunks."""
    columns = []
    for name in names:
        kind = draw.choice(TYPES[name])
        plain_kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        values = pa.array([row[name] for row in rows], plain_kind)
        columns.append(values.dictionary_encode() if plain_kind is not kind else values)
    whole = pa.table(columns, names=list(names))
    cut = draw.randrange(len(rows) + 1)
    return pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])


def plain(value: Any) -> Any:
    """A value that is equal to another one if both are compared as equal."""
    match value:
        case None:
            return "null"
        case bool():
            return ("bool", value)
        case float():
            return ("float", "nan" if math.isnan(value) else value + 0.0)
        case int() | Decimal():
            return ("number", Decimal(value).normalize() + 0)
        case datetime() if value.tzinfo is not None:
            return ("instant", value.astimezone(UTC).replace(tzinfo=None))
        case list() | tuple():
            return ("list", *map(plain, value))
        case dict():
            return ("struct", *((name, plain(part)) for name, part in value.items()))
        case _:
            return (type(value).__name__, value)


def near(one: Any, other: Any, tolerance: float) -> bool:
    """True if two values are equal but for the tolerance of their floats."""
    if isinstance(one, float) and isinstance(other, float):
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(near(x, y, tolerance) for x, y in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return all(near(one[name], other[name], tolerance) for name in one)
    return bool(plain(one) == plain(other))


def keyed_difference(pair: Pair, tolerance: float = 0.0) -> tuple[int, Counter[Any]]:
    """The number of equal rows, and each difference: its words, the key, the old values and the new ones."""
    sides = [
        {plain([row[name] for name in pair.keys]): row for row in side.to_pylist()} for side in (pair.old, pair.new)
    ]
    values = [name for name in pair.old.column_names if name not in pair.keys]
    equal, out = 0, Counter[Any]()
    for key in {**sides[0], **sides[1]}:
        old, new = (side.get(key) for side in sides)
        if old is not None and new is not None and all(near(old[name], new[name], tolerance) for name in values):
            equal += 1
            continue
        words = "only in new" if old is None else "only in old" if new is None else "changed"
        both = [[plain(row and row[name]) for name in values] for row in (old, new)]
        out[(words, key, *map(tuple, both))] += 1
    return equal, out


def keyed_rows(rows: pa.Table, pair: Pair) -> Counter[Any]:
    """The differences that a comparison shows, as `keyed_difference` has them."""
    values = [name for name in pair.old.column_names if name not in pair.keys]
    out = Counter[Any]()
    for row in rows.to_pylist():
        both = [tuple(plain(row[f"{name}_{side}"]) for name in values) for side in ("old", "new")]
        out[(row["difference"], plain([row[name] for name in pair.keys]), *both)] += 1
    return out


def whole_difference(pair: Pair) -> tuple[int, Counter[Any]]:
    """The number of equal rows, and by how much the new side has more of each row, zeros left out."""
    names = [name for name in pair.old.column_names if name != "diff"]
    sides = []
    for side in (pair.old, pair.new):
        counts = Counter[Any]()
        for row in side.to_pylist():
            counts[plain([row[name] for name in names])] += row.get("diff", 1)
        sides.append(counts)
    old, new = sides
    equal = sum(min(abs(old[row]), abs(new[row])) for row in old if old[row] * new[row] > 0)
    more = {row: new[row] - old[row] for row in {**old, **new}}
    return equal, Counter({row: count for row, count in more.items() if count})


def whole_rows(rows: pa.Table, pair: Pair) -> Counter[Any]:
    """The differences that a comparison shows, as `whole_difference` has them."""
    names = [name for name in pair.old.column_names if name != "diff"]
    out = Counter[Any]()
    for row in rows.to_pylist():
        assert row["difference"] == ("only in new" if row["diff"] > 0 else "only in old")
        out[plain([row[name] for name in names])] += row["diff"]
    return out
