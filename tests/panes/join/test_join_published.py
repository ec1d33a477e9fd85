"""The joins that the tests of Apache Apex' merge accumulations describe, each window by itself.

Their cases are `PojoInnerJoinTest` and `PojoOuterJoinTest`: people by id on the left, nicknames and ages on the right.
Apex shows a missing number as 0 and a missing text as null; here both are null, and a key is never missing.
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any

import pyarrow as pa
import pytest

from uncombine.panes.join.join import Join
from uncombine.panes.join.operator import JoinOperator
from uncombine.windows.times import MAX_TIME

STAMP = pa.timestamp("us", "UTC")
WINDOW = pa.struct([("start", STAMP), ("end", STAMP)])
STAGE = [("window", WINDOW), ("event_time", STAMP)]
LEFT = pa.schema([("id", pa.int64()), ("name", pa.string()), *STAGE])
RIGHT = pa.schema([("id", pa.int64()), ("nick", pa.string()), ("age", pa.int64()), *STAGE])

PEOPLE = [(1, "Josh"), (2, "Bob")]
NICKS = [(1, "NickJosh", 12), (3, "NickBob", 13)]

PUBLISHED: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("inner", [(1, "Josh", "NickJosh", 12)]),
    ("left", [(1, "Josh", "NickJosh", 12), (2, "Bob", None, None)]),
    ("right", [(1, "Josh", "NickJosh", 12), (3, None, "NickBob", 13)]),
    ("full", [(1, "Josh", "NickJosh", 12), (2, "Bob", None, None), (3, None, "NickBob", 13)]),
    ("semi", [(1, "Josh")]),
    ("anti", [(2, "Bob")]),
]

BY_TWO: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("left", [(1, "Josh", 12), (2, "Bob", None)]),
    ("right", [(1, "Josh", 12), (3, "Bob", 13)]),
    ("full", [(1, "Josh", 12), (2, "Bob", None), (3, "Bob", 13)]),
]
"""Keys of two columns, of which one has another name on the right: `PojoLeftOuterJoinTestWithMap` and so on."""


def table(schema: pa.Schema, rows: list[tuple[Any, ...]], end: int) -> pa.Table:
    stage = {"window": {"start": end - 10, "end": end}, "event_time": end - 1}
    return pa.Table.from_pylist([{**dict(zip(schema.names, row, strict=False)), **stage} for row in rows], schema)


def play(join: Join, bundles: list[tuple[pa.Table, pa.Table]]) -> Counter[tuple[Any, ...]]:
    """The netted output of bundles and of the end of time: the end of the window, then the columns."""
    operator = JoinOperator(join, LEFT, RIGHT)
    state, net = operator.initial(), Counter[tuple[Any, ...]]()
    for bundle, watermark in [
        *((bundle, 0) for bundle in bundles),
        ((LEFT.empty_table(), RIGHT.empty_table()), MAX_TIME),
    ]:
        stepped = operator.step(state, bundle, watermark)
        state = stepped.state
        ends = stepped.panes["window"].combine_chunks().field("end").view(pa.int64()).to_pylist()
        columns = [name for name in stepped.panes.column_names if name not in ("window", "event_time", "diff")]
        rows = zip(*(stepped.panes[name].to_pylist() for name in columns), strict=True)
        for end, row, diff in zip(ends, rows, stepped.panes["diff"].to_pylist(), strict=True):
            net[end, *row] += diff
    assert operator.count_entries(state) == 0
    return +net


@pytest.mark.parametrize("unmatched", ["at_once", "final"])
@pytest.mark.parametrize(("how", "expected"), PUBLISHED, ids=[how for how, _ in PUBLISHED])
def test_published_joins_in_two_windows(how: str, expected: list[tuple[Any, ...]], unmatched: str) -> None:
    if unmatched == "final" and how in ("inner", "semi"):
        unmatched = "at_once"
    join = Join("id", how, unmatched=unmatched, left_time="event_time", right_time="event_time")
    one_by_one = [(table(LEFT, [row], end), RIGHT.empty_table()) for end in (10, 20) for row in PEOPLE]
    one_by_one += [(LEFT.empty_table(), table(RIGHT, [row], end)) for end in (10, 20) for row in NICKS]
    for order in list(permutations(range(8)))[::5000]:
        found = play(join, [one_by_one[place] for place in order])
        assert found == Counter({(end, *row): 1 for end in (10, 20) for row in expected})


@pytest.mark.parametrize(("how", "expected"), BY_TWO, ids=[how for how, _ in BY_TWO])
def test_published_joins_by_two_keys(how: str, expected: list[tuple[Any, ...]]) -> None:
    join = Join({"id": "id", "name": "nick"}, how, left_time="event_time", right_time="event_time")
    nicks = [(1, "Josh", 12), (3, "ECE" if how == "left" else "Bob", 13)]
    found = play(join, [(table(LEFT, PEOPLE, 10), table(RIGHT, nicks, 10))])
    assert found == Counter({(10, *row): 1 for row in expected})


def test_rows_of_two_windows_do_not_match() -> None:
    join = Join("id", "full", left_time="event_time", right_time="event_time")
    found = play(join, [(table(LEFT, PEOPLE[:1], 10), table(RIGHT, NICKS[:1], 20))])
    assert found == Counter({(10, 1, "Josh", None, None): 1, (20, 1, None, "NickJosh", 12): 1})
