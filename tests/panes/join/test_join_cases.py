"""Single rules of the join operator, and larger joins against pandas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from uncombine.errors import InvalidArgument, OutOfRange, TypeMismatch, UncombineError, UnknownColumn
from uncombine.lookbacks.sorted_rows import Ranges
from uncombine.panes.join import output
from uncombine.panes.join.join import Join
from uncombine.panes.join.operator import JoinOperator
from uncombine.panes.state.operator_state import OperatorState
from uncombine.panes.state.store_rows import StoreRows
from uncombine.windows.times import MAX_TIME

STAMP = pa.timestamp("us", "UTC")
LEFT = pa.schema([("k", pa.string()), ("ts", STAMP), ("x", pa.int64()), ("diff", pa.int64())])
RIGHT = pa.schema([("k", pa.string()), ("ts", STAMP), ("y", pa.int64()), ("diff", pa.int64())])
OPTIONS: dict[str, Any] = {"left_diff": "diff", "right_diff": "diff"}

AGE = pa.field("age", pa.month_day_nano_interval())
"""A column that cannot be hashed."""

Bundle = list[tuple[Any, ...]]


def in_windows(kind: pa.DataType) -> pa.Schema:
    """The columns of rows whose windows have bounds of this type."""
    return LEFT.append(pa.field("window", pa.struct([("start", kind), ("end", kind)])))


def table(schema: pa.Schema, rows: Bundle) -> pa.Table:
    """Rows (key, time, value, weight); the weight is 1 if left out."""
    columns = zip(*((*row, 1)[:4] for row in rows), strict=True) if rows else [[]] * 4
    return pa.table([pa.array(c, pa.int64()).cast(f.type) if i else pa.array(c, f.type)
                     for i, (c, f) in enumerate(zip(columns, schema, strict=True))], schema=schema)  # fmt: skip


class Play:
    """A join that is fed step by step; rows of output are lists of their values, times in microseconds."""

    def __init__(self, join: Join, left: pa.Schema = LEFT, right: pa.Schema = RIGHT) -> None:
        self.operator = JoinOperator(join, left, right)
        self.state: OperatorState = self.operator.initial()

    def step(self, left: Bundle, right: Bundle, watermark: int) -> list[tuple[Any, ...]]:
        bundle = (table(self.operator.schemas[0], left), table(self.operator.schemas[1], right))
        stepped = self.operator.step(self.state, bundle, watermark)
        self.state, self.late, self.bundle = stepped.state, stepped.left_out["late"], bundle
        columns = [
            (column.combine_chunks().view(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
            for column in stepped.panes.columns
        ]
        return list(zip(*columns, strict=True))


def joined(*given: Any, **options: Any) -> Join:
    """A join by k of inputs with weights."""
    return Join("k", *given, **OPTIONS, **options)


def within(low: int, high: int) -> tuple[str, str]:
    return f"{low} us", f"{high} us"


def test_rule_44_both_bounds_are_included() -> None:
    play = Play(joined(within=within(-2, 3)))
    rows = play.step([("a", 10, 0)], [("a", time, time) for time in range(6, 16)], 0)
    assert [row[4] for row in rows] == [8, 9, 10, 11, 12, 13]
    assert [row[5] for row in rows] == [10, 10, 10, 11, 12, 13]


def test_rule_47_rows_leave_when_the_watermark_has_passed_their_matches() -> None:
    lateness = {"allowed_lateness": "4 us"}
    play = Play(joined(within=within(-2, 3), **lateness))
    play.step([("a", 10, 0)], [("b", 10, 0)], 16)
    assert play.operator.count_entries(play.state) == 2
    play.step([], [], 17)  # after 10 + 2 + 4 of the right row
    assert play.operator.count_entries(play.state) == 1
    assert len(play.step([], [("a", 13, 1)], 17)) == 1  # the last match of the left row
    play.step([], [], 18)
    assert play.state.stores["left"].rows().num_rows == 0


def test_rule_47_a_match_that_has_left_still_counts() -> None:
    """The right row leaves first; the left row has had a match all the same, and another one shows no null row."""
    for unmatched in ("at_once", "final"):
        play = Play(joined("left", within(-9, 5), unmatched))
        assert [row[-1] for row in play.step([("a", 20, 1)], [("a", 11, 1)], 20)] == [1]
        assert [row[-1] for row in play.step([], [], 21)] == []
        assert play.state.stores["right"].rows().num_rows == 0
        assert play.state.stores["right_seen"].rows().num_rows == 1
        assert play.step([], [], 25) == []
        assert [row[5] for row in play.step([], [("a", 25, 2)], 25)] == [25]
        assert play.step([], [], MAX_TIME) == []
        assert play.operator.count_entries(play.state) == 0


def test_rule_46_a_null_row_comes_goes_and_comes_again() -> None:
    play = Play(joined("left", within(0, 5)))
    assert play.step([("a", 1, 7, 2)], [], 0) == [("a", 1, 7, None, None, 1, 2)]
    assert play.step([], [("a", 3, 8, 3)], 0) == [("a", 1, 7, None, None, 1, -2), ("a", 1, 7, 3, 8, 3, 6)]
    assert play.step([], [("a", 3, 8, -1)], 0) == [("a", 1, 7, 3, 8, 3, -2)]
    assert play.step([], [("a", 3, 8, -2)], 0) == [("a", 1, 7, 3, 8, 3, -4), ("a", 1, 7, None, None, 1, 2)]


def test_rule_45_a_retraction_may_come_before_its_row() -> None:
    play = Play(joined("full", within(0, 5)))
    assert play.step([("a", 1, 7, -1)], [("a", 2, 8)], 0) == [("a", None, None, 2, 8, 2, 1)]
    assert play.step([("a", 1, 7, 1)], [], 0) == []
    assert play.step([("a", 1, 7, 1)], [], 0) == [
        ("a", None, None, 2, 8, 2, -1),
        ("a", 1, 7, 2, 8, 2, 1),
    ]
    assert play.step([("a", 1, 7, 5), ("a", 1, 7, -6)], [], 0) == [
        ("a", 1, 7, 2, 8, 2, -1),
        ("a", None, None, 2, 8, 2, 1),
    ]


def test_rule_44_null_keys_match_nothing_and_nan_matches_nan() -> None:
    left, right = (schema.set(0, pa.field("k", pa.float64())) for schema in (LEFT, RIGHT))
    keys = [None, float("nan"), -0.0]
    for how, expected in (("inner", 2), ("full", 4), ("anti", 1), ("semi", 2)):
        play = Play(joined(how, within(0, 0)), left, right)
        other = [None, float("nan"), 0.0]
        rows = play.step([(key, 1, 0) for key in keys], [(key, 1, 0) for key in other], 0)
        assert len(rows) == expected, how


def test_rule_47_late_and_bad_rows_are_counted() -> None:
    play = Play(joined(within=within(0, 5), allowed_lateness="3 us"))
    play.step([], [], 10)
    rows = play.step([("a", 6, 0), ("a", 7, 1), ("a", None, 2)], [("a", 6, 3), ("a", 7, 4)], 10)
    assert [(row[2], row[4]) for row in rows] == [(1, 4)]
    assert (play.state.counts.dropped, play.state.counts.bad) == (2, 1)
    assert play.late.tolist() == [0, 3]
    assert (play.bundle[0]["x"][0].as_py(), play.bundle[1]["y"][0].as_py()) == (0, 3)


def test_rule_48_the_output_watermark() -> None:
    lateness = {"allowed_lateness": "4 us"}
    inner = Play(joined(within=within(-2, 30), **lateness))
    inner.step([("a", 90, 0)], [], 100)
    assert inner.operator.hold(inner.state) == 96
    for how, unmatched in (("left", "at_once"), ("left", "final"), ("anti", "final"), ("semi", "at_once")):
        outer = Play(joined(how, within(-2, 30), unmatched, **lateness))
        outer.step([("a", 99, 0)], [], 100)
        assert outer.operator.hold(outer.state) == 96  # no row in the state is older
        outer.step([], [], 120)
        assert outer.operator.hold(outer.state) == 99
        outer.step([], [], 134)
        assert outer.operator.hold(outer.state) == 130


STAGE = pa.schema(
    [("k", pa.string()), ("window", pa.struct([("start", STAMP), ("end", STAMP)])), ("event_time", STAMP)]
)


def test_rule_45_output_that_comes_to_nothing_is_not_emitted() -> None:
    """A row moves to another time, and a match whose values are all null comes: both leave the output as it was."""
    bare = pa.schema([("k", pa.string()), ("event_time", STAMP), ("x", pa.int64()), ("diff", pa.int64())])
    stages = {"left_time": "event_time", "right_time": "event_time"}
    play = Play(joined("inner", within(0, 9), **stages), bare, bare)
    assert play.step([("a", 3, 7)], [("a", 9, 8)], 0) == [("a", 7, 8, 9, 1)]
    assert play.step([("a", 3, 7, -1), ("a", 4, 7)], [], 0) == []
    assert play.step([("a", 4, 7, -1), ("a", 4, 6)], [], 0) == [("a", 7, 8, 9, -1), ("a", 6, 8, 9, 1)]
    play = Play(joined("left", within(-9, 0), **stages), bare, bare)
    assert play.step([("a", 3, 7)], [], 0) == [("a", 7, None, 3, 1)]
    assert play.step([], [("a", 2, None)], 0) == []


def test_rule_47_a_window_expires_for_both_sides_at_once() -> None:
    """A row whose time is after the end of its window is late once the window has expired."""
    stages = {"left_time": "event_time", "right_time": "event_time", "allowed_lateness": "2 us"}
    operator = JoinOperator(Join("k", "full", **stages), STAGE, STAGE)
    row = pa.Table.from_pylist([{"k": "a", "window": {"start": 0, "end": 10}, "event_time": 15}], STAGE)
    taken = operator.step(operator.initial(), (row, STAGE.empty_table()), 11).state
    assert operator.count_entries(taken) == 1
    gone = operator.step(taken, (row.slice(0, 0), row.slice(0, 0)), 12).state
    assert operator.count_entries(gone) == 0
    assert operator.step(gone, (row, row), 12).state.counts.dropped == 2


def test_lengths_of_any_size() -> None:
    for bounds in (("-100000000 days", "100000000 days"), ("0 s", "100000000 days")):
        play = Play(joined("full", bounds, allowed_lateness="100000000 days"))
        rows = play.step([("a", 1, 7), ("b", 0, 1)], [("a", 2**57, 8)], 2**57)
        assert [row[-1] for row in rows] == [1, 1]
        assert play.operator.count_entries(play.state) == 3
        play.step([], [], MAX_TIME)
        assert play.operator.count_entries(play.state) == 0


def test_weights_multiply_until_they_are_too_large() -> None:
    play = Play(joined(within=within(0, 0)))
    assert play.step([("a", 1, 0, 2**31)], [("a", 1, 0, 2**30)], 0)[0][-1] == 2**61
    with pytest.raises(OutOfRange, match="multiply to"):
        play.step([("a", 1, 1, 2**32)], [], 0)


@pytest.mark.parametrize("how", ["inner", "left", "right", "outer"])
def test_thousands_of_rows_against_pandas(how: Any) -> None:
    rng = np.random.default_rng(len(how))
    sides = []
    for name in ("x", "y"):
        frame = pd.DataFrame({"k": rng.choice([f"key {i}" for i in range(300)], 4000)})
        frame["ts"] = pd.to_datetime(rng.integers(0, 1000, 4000), unit="us", utc=True)
        sides.append(frame.assign(**{name: np.arange(4000)}))
    left, right = sides
    pairs = left.merge(right, on="k", suffixes=("_left", "_right"))
    pairs = pairs[(pairs.ts_right - pairs.ts_left).between(pd.Timedelta("-20us"), pd.Timedelta("50us"))]
    missing = [pairs]
    for side, (name, other) in zip(sides, (("x", "left"), ("y", "right")), strict=True):
        if how in (other, "outer"):
            alone = side[~side[name].isin(pairs[name])]
            missing.append(alone.rename(columns={"ts": f"ts_{other}"}))
    expected = pd.concat(missing)[pairs.columns]
    join = Join("k", "full" if how == "outer" else how, within(-20, 50))
    schemas = [pa.Schema.from_pandas(side, preserve_index=False) for side in sides]
    operator = JoinOperator(join, *schemas)
    state, out = operator.initial(), []
    for first in range(0, 4000, 1000):
        some = [pa.Table.from_pandas(s[first : first + 1000], t) for s, t in zip(sides, schemas, strict=True)]
        stepped = operator.step(state, some, 0)
        state = stepped.state
        out.append(stepped.panes.to_pandas())
    found = pd.concat(out).fillna({"x": -1, "y": -1})
    net = found.groupby(["x", "y"])["diff"].sum()
    assert net.isin([0, 1]).all()
    ids = [tuple(row) for row in expected.fillna({"x": -1, "y": -1})[["x", "y"]].itertuples(index=False)]
    assert sorted(net[net == 1].index) == sorted(ids)


@pytest.mark.weekly
def test_a_key_with_100_000_rows_makes_no_pairs_outside_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    pairs = Ranges.pairs

    def counted(self: Ranges, *given: Any) -> Any:
        made.append(int(self.sizes.sum()))
        return pairs(self, *given)

    monkeypatch.setattr(Ranges, "pairs", counted)
    play = Play(joined(within=within(0, 10)))
    many = [("a", 100 * i, i) for i in range(100_000)]
    assert play.step(many, [], 0) == []
    assert [row[2] for row in play.step([], [("a", 500_004, 1)], 0)] == [5000]
    rows = play.step([], [("a", 100 * i + 7, i) for i in range(100_000)], 0)
    assert len(rows) == 100_000
    assert sum(made) == 100_001


@pytest.mark.weekly
def test_a_small_bundle_reads_the_rows_of_its_keys_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for how, unmatched in (("inner", "at_once"), ("full", "at_once"), ("full", "final")):
        play = Play(joined(how, within(-50, 50), unmatched))
        many = [(f"key {i}", 100 + i % 7, i) for i in range(20_000)]
        play.step(many, many, 0)
        read: list[int] = []
        reading = StoreRows.read

        def counted(self: StoreRows, *given: Any, reading: Any = reading, read: list[int] = read) -> pa.Table:
            out = reading(self, *given)
            read.append(out.num_rows)
            return out

        with monkeypatch.context() as patched:
            patched.setattr(StoreRows, "read", counted)
            play.step([("key 5", 105, 5, -1)], [("key 6", 106, 8)], 90)
        assert 0 < sum(read) < 40


def test_output_in_pieces_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> pa.Table:
        operator = JoinOperator(joined("full", within(-3, 3)), LEFT, RIGHT)
        sides = [[(f"{i % 5}", i % 11, i) for i in range(start, 60 + start)] for start in (0, 3)]
        bundle = (table(LEFT, sides[0]), table(RIGHT, sides[1]))
        return operator.step(operator.initial(), bundle, 0).panes

    whole = run()
    for limit, size in (("PIECE", 7), ("_TEXT", 5)):
        with monkeypatch.context() as patched:
            patched.setattr(output, limit, size)
            assert run().equals(whole)
            assert run()["k"].num_chunks > 3


def test_values_that_no_one_needs_are_not_kept() -> None:
    right = RIGHT.remove(3).append(pa.field("event_time", pa.string()))
    operator = JoinOperator(Join("k", "semi", within(0, 1), left_diff="diff"), LEFT, right)
    assert operator.initial().stores["right"].schema.names == ["time", "weight", "key.0"]  # type: ignore[union-attr]


def test_nested_values_and_dictionaries() -> None:
    tags = pa.array([["a"], None], pa.list_(pa.large_string()))
    pairs = pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64()))
    keys = pa.array(["k", "m"]).dictionary_encode()
    left = pa.table({"k": keys, "ts": pa.array([1, 2], STAMP), "tags": tags, "pairs": pairs, "n": pa.array([1, -1])})
    right = table(RIGHT, [("k", 1, 5)])
    join = Join("k", "left", within(0, 0), left_diff="n", right_diff="diff")
    operator = JoinOperator(join, left.schema, RIGHT)
    stepped = operator.step(operator.initial(), (left, right), 0)
    assert stepped.panes.select(["k", "tags", "pairs", "y", "diff"]).to_pylist() == [
        {"k": "k", "tags": ["a"], "pairs": [("a", 1)], "y": 5, "diff": 1}
    ]
    again = left.set_column(4, "n", pa.array([-1, 2]))
    rows = operator.step(stepped.state, (again, right.slice(0, 0)), 0).panes
    assert rows.select(["k", "tags", "y", "diff"]).to_pylist() == [
        {"k": "k", "tags": ["a"], "y": 5, "diff": -1},
        {"k": "m", "tags": None, "y": None, "diff": 1},
    ]


@pytest.mark.parametrize(
    ("options", "left", "right", "error", "words"),
    [
        ({"how": "outer"}, LEFT, RIGHT, InvalidArgument, "known are"),
        ({"how": "iner"}, LEFT, RIGHT, InvalidArgument, "did you mean 'inner'"),
        ({"unmatched": "later"}, LEFT, RIGHT, InvalidArgument, "unmatched= is 'later'"),
        ({"unmatched": "final"}, LEFT, RIGHT, InvalidArgument, "leave unmatched= out"),
        ({"within": "5 minutes"}, LEFT, RIGHT, InvalidArgument, "within= takes the least and the greatest"),
        ({"within": ("5 s", "1 s")}, LEFT, RIGHT, InvalidArgument, "give the lesser bound first"),
        ({"within": None}, LEFT, RIGHT, InvalidArgument, "no column 'window'"),
        ({"within": None}, STAGE, LEFT, InvalidArgument, "right input has no column 'window'"),
        ({"allowed_lateness": "-1 s"}, LEFT, RIGHT, InvalidArgument, "cannot be negative"),
        ({"suffixes": ("_a", "_a")}, LEFT, RIGHT, InvalidArgument, "two different texts"),
        ({"suffixes": ("", "_LEFT")}, LEFT, RIGHT, None, ""),
        ({"on": ()}, LEFT, RIGHT, InvalidArgument, "on= names no column"),
        ({"on": ["k", "k"]}, LEFT, RIGHT, InvalidArgument, "twice"),
        ({"on": 5}, LEFT, RIGHT, InvalidArgument, "on= takes the name"),
        ({"on": [("a", "b", "c")]}, LEFT, RIGHT, InvalidArgument, "pairs"),
        ({"on": "z"}, LEFT, RIGHT, UnknownColumn, "on= of the left input needs column 'z'"),
        ({"on": "zz"}, LEFT, RIGHT, UnknownColumn, r"write on=\[\('left name', 'right name'\)\]"),
        ({"on": {"k": "y"}}, LEFT, RIGHT, TypeMismatch, "cast one of them"),
        ({"on": "diff", "left_diff": "diff"}, LEFT, RIGHT, InvalidArgument, "which is the weight"),
        ({"left_time": "x"}, LEFT, RIGHT, TypeMismatch, "left_time= takes a timestamp"),
        ({"right_time": "z"}, LEFT, RIGHT, UnknownColumn, "right_time="),
        ({"right_diff": "k"}, LEFT, RIGHT, TypeMismatch, "int64"),
        ({}, LEFT, RIGHT, InvalidArgument, "rename it, or name it as left_diff="),
        ({"how": "left"}, LEFT.append(AGE), RIGHT, TypeMismatch, "a join with retractions' hashes its input"),
        ({"within": None}, in_windows(pa.int64()), in_windows(STAMP), TypeMismatch, "not a struct of timestamps"),
        ({"within": None}, in_windows(STAMP), LEFT.append(pa.field("window", STAMP)), TypeMismatch, "not a struct of"),
    ],
)  # fmt: skip
def test_wrong_use_is_refused_when_built(
    options: dict[str, Any], left: pa.Schema, right: pa.Schema, error: type[UncombineError] | None, words: str
) -> None:
    given = {"on": "k", "within": ("0 s", "1 s"), **(OPTIONS if options else {}), **options}
    if left is STAGE:
        given |= {"left_time": "event_time", "left_diff": None}
    if error is None:
        names = JoinOperator(Join(**given), left, right).output_schema.names
        assert names == ["k", "ts", "x", "ts_LEFT", "y", "event_time", "diff"]
        return
    with pytest.raises(error, match=words):
        JoinOperator(Join(**given), left, right)


def test_a_join_of_rows_that_are_only_added_hashes_no_values() -> None:
    left, right = (LEFT.remove(3).append(AGE), RIGHT.remove(3))
    assert "age" in JoinOperator(Join("k", within=within(0, 1)), left, right).output_schema.names


def test_times_of_other_units_are_no_keys_of_one_type() -> None:
    other = RIGHT.append(pa.field("at", pa.timestamp("ms")))
    with pytest.raises(TypeMismatch, match="cast one of them"):
        JoinOperator(Join({"ts": "at"}, within=within(0, 1), **OPTIONS), LEFT, other)


def test_a_bundle_of_other_columns_is_refused() -> None:
    operator = JoinOperator(Join("k", within=within(0, 1), **OPTIONS), LEFT, RIGHT)
    empty = LEFT.empty_table(), RIGHT.empty_table()
    with pytest.raises(TypeMismatch, match="the right table"):
        operator.step(operator.initial(), (empty[0], empty[0]), 0)
    with pytest.raises(TypeMismatch, match="two tables"):
        operator.step(operator.initial(), empty[:1], 0)
    with pytest.raises(InvalidArgument, match="each_batch"):
        operator.step(operator.initial(), empty, 0, each_batch=True)


@pytest.mark.weekly
@pytest.mark.parametrize("unmatched", ["at_once", "final"])
def test_the_state_stays_as_small_as_the_bounds(unmatched: str) -> None:
    play = Play(joined("full", within(-20, 30), unmatched, allowed_lateness="10 us"))
    held, kept = [], []
    for now in range(0, 1500, 10):
        rows = [(f"key {i % 7}", now + i % 10, i) for i in range(20)]
        play.step([(*row, 1) for row in rows], [*rows[::2], (*rows[0], -2)], now)
        held.append(play.operator.count_entries(play.state))
        chunks = [chunk for store in play.state.stores.values() for chunk in (store.chunks if store else ())]
        kept.append(sum(len(chunk.alive) for chunk in chunks))
    # A left row stays 40 us and is a witness for 20 more; a right row 30, and 30 more: at most 3 rows in 1 us.
    assert max(held) == max(held[20:40]) <= 20 * 7 + 10 * 7
    assert max(kept) <= 4 * max(held)


def test_the_same_step_gives_the_same_bytes_and_leaves_its_state_alone() -> None:
    rng = np.random.default_rng(2)

    def rows() -> Bundle:
        return [(f"key {rng.integers(9)}", int(rng.integers(30)), int(rng.integers(3))) for _ in range(60)]

    play = Play(joined("full", within(-4, 4)))
    held = rows()
    play.step(held, rows(), 5)
    before = {name: store.rows() for name, store in play.state.stores.items() if store}
    bundle = (table(LEFT, [(*row, -1) for row in held[::2]] + rows()), table(RIGHT, rows()))
    first, second = (play.operator.step(play.state, bundle, 12) for _ in range(2))
    assert first.panes.num_rows > 50
    assert first.panes.equals(second.panes)
    assert {name: store.rows() for name, store in play.state.stores.items() if store} == before
    for name, store in first.state.stores.items():
        assert store is None or store.rows().equals(second.state.stores[name].rows())  # type: ignore[union-attr]
