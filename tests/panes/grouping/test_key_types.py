"""Columns of every type as keys: rows are grouped and joined as Python's values are, or the type is refused."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.errors import TypeMismatch

KINDS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.null(), [None]),
    (pa.bool_(), [True, False]),
    (pa.int8(), [-128, 0, 127]),
    (pa.uint64(), [0, 2**64 - 1]),
    (pa.float16(), [0.0, -1.5]),
    (pa.float64(), [0.0, 0.1, 1e300]),
    *((kind, [Decimal("1.00"), Decimal("-2.50")]) for kind in (pa.decimal32(5, 2), pa.decimal64(12, 2))),
    *((kind, [Decimal("1.00"), Decimal("-2.50")]) for kind in (pa.decimal128(38, 2), pa.decimal256(50, 2))),
    *((kind, ["", "a", "é"]) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    *((kind, [b"", b"\0"]) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())),
    (pa.binary(2), [b"ab", b"\0\0"]),
    (pa.dictionary(pa.int8(), pa.string()), ["a", "b"]),
    *((kind, [dt.date(1969, 12, 31), dt.date(2024, 2, 29)]) for kind in (pa.date32(), pa.date64())),
    *((kind, [dt.time(0, 0, 1), dt.time(23, 59)]) for kind in (pa.time32("s"), pa.time64("us"))),
    (pa.timestamp("us"), [dt.datetime(2024, 2, 29), dt.datetime(1969, 12, 31, 23)]),
    (pa.duration("us"), [dt.timedelta(0), dt.timedelta(seconds=-1)]),
    (pa.month_day_nano_interval(), [pa.MonthDayNano([1, 0, 0]), pa.MonthDayNano([0, 30, 5])]),
    (pa.struct([("a", pa.int8()), ("b", pa.decimal32(5, 2))]), [{"a": 1, "b": Decimal("1.00")}, {"a": 1, "b": None}]),
    (pa.struct([("a", pa.month_day_nano_interval())]), [{"a": pa.MonthDayNano([1, 0, 0])}, {"a": None}]),
    (pa.list_(pa.int8()), [[], [1]]),
    (pa.list_(pa.int8(), 1), [[1], [2]]),
    (pa.large_list(pa.string()), [[], ["a"]]),
    (pa.map_(pa.string(), pa.int8()), [[], [("a", 1)]]),
]

MINUTE = uc.Fixed("1 minute")
EACH = uc.Repeatedly(uc.AfterCount(1))


def counted(panes: Any) -> Counter[str]:
    out: Counter[str] = Counter()
    for row in panes.to_pylist():
        out[repr(row["k"])] += row["n"] * row.get("diff", 1)
    return Counter({key: count for key, count in out.items() if count})


def stepped(panes: Any) -> Counter[str]:
    return Counter(repr(row["k"]) for row in panes.to_pylist())


def of_script(table: pa.Table, **options: Any) -> Any:
    flow = uc.flow(table.schema).window(MINUTE, **options).combine(by="k", n=uc.Count())
    return flow.run([uc.Elements(table.slice(0, 7)), uc.Elements(table.slice(7)), uc.Watermark(None)])


def of_changelog(table: pa.Table) -> Any:
    weighed = table.append_column("w", pa.array([1] * table.num_rows))
    flow = uc.flow(weighed, diff="w").window(uc.Sessions("1 minute")).combine(by="k", n=uc.Count())
    return flow.run()


def joined(table: pa.Table) -> Any:
    left = uc.flow(table).join(uc.flow(table), on="k", within=("0 seconds", "0 seconds"))
    return left.run()


WAYS: dict[str, Callable[[pa.Table], Any]] = {
    "aggregate": lambda table: counted(uc.aggregate(table, by="k", n=uc.Count())),
    "final": lambda t: counted(uc.flow(t).window(MINUTE).combine(by="k", n=uc.Count()).run()),
    "panes": lambda table: counted(of_script(table, trigger=EACH, mode="retracting")),
    "changelog": lambda table: counted(of_changelog(table)),
    "join": lambda table: stepped(joined(table)),
    "in_order": lambda table: stepped(uc.flow(table).in_order(by="k").run()),
    "distinct": lambda table: stepped(uc.flow(table).distinct("k", within="1 hour").run()),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("kind", "values"), KINDS, ids=[str(kind) for kind, _ in KINDS])
def test_a_key_of_any_type_is_grouped_or_refused(kind: pa.DataType, values: list[Any], way: str) -> None:
    draw = random.Random(str(kind))
    chosen = [None, *values, *(draw.choice([None, *values]) for _ in range(20))]
    clock = pa.timestamp("us", "UTC")
    table = pa.table({"ts": pa.array(range(len(chosen)), clock), "k": pa.array(chosen, kind)})
    table = table.cast(pa.schema([("ts", clock), ("k", kind)]))
    refused = None
    try:
        found = WAYS[way](table)
    except TypeMismatch as error:
        refused = str(error)
    if refused is not None:
        assert "'k'" in refused or way == "aggregate"
        assert pa.types.is_nested(kind) or pa.types.is_interval(kind)
        return
    expected = Counter(repr(value) for value in table["k"].to_pylist())
    if way == "join":  # a row matches itself alone, as its time tells it from others, and null matches nothing
        del expected["None"]
    elif way == "distinct":
        expected = Counter(set(expected))
    assert found == expected
