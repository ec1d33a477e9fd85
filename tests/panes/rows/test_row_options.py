"""The rows that operators over single rows take in, and the columns that they make of an input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch, UnknownColumn
from uncombine.panes.grouping.pane_columns import WINDOW
from uncombine.panes.rows.clocks import Clocks
from uncombine.panes.rows.equal_rows import groups_of, netted
from uncombine.panes.rows.options import RowOptions
from uncombine.panes.state.pane_type import PANE
from uncombine.windows.times import MIN_TIME

UTC = pa.timestamp("us", "UTC")


def clocks(before: int = MIN_TIME, now: int = MIN_TIME) -> Clocks:
    return Clocks(before, before, now)


def test_rule_50_a_row_has_the_columns_of_the_user_and_its_event_time() -> None:
    names = {"event_time": UTC, "window": WINDOW, "k": pa.dictionary(pa.int8(), pa.large_string()), "pane": PANE}
    columns = RowOptions(time="event_time", diff="diff").columns(pa.schema({**names, "diff": pa.int8()}), "it")
    assert columns.rows.names == ["window", "k", "event_time"]
    assert columns.rows.field("k").type == pa.string()
    assert columns.output == columns.rows.append(pa.field("diff", pa.int64()))
    kept = RowOptions(diff="w").columns(pa.schema({"ts": pa.date32(), "pane": pa.string(), "w": pa.int64()}), "it")
    assert kept.rows.names == ["ts", "pane", "event_time"]


def test_rule_50_bad_late_and_weightless_rows_are_not_taken() -> None:
    options = RowOptions(diff="w", allowed_lateness="5 us", max_future="10 us")
    columns = options.columns(pa.schema({"ts": UTC, "w": pa.int64()}), "it")
    times = [100, 94, 95, None, 131, 130, 110, -(2**62)]
    bundle = pa.table({"ts": pa.array(times, UTC), "w": [1, 1, -2, 1, 1, 3, 0, 1]})
    taken = columns.take(bundle, clocks(before=100, now=120))
    assert taken.times.tolist() == [100, 95, 130]
    assert taken.weights is not None
    assert taken.weights.tolist() == [1, -2, 3]
    assert (taken.late.tolist(), taken.bad.tolist()) == ([1], [3, 4, 7])
    assert len(columns.take(bundle, clocks()).bad) == 2  # a clock that has not started bounds no row


def test_rule_50_rows_that_are_equal_have_equal_hashes() -> None:
    columns = RowOptions(diff="w").columns(pa.schema({"ts": UTC, "x": pa.float64(), "w": pa.int64()}), "it")
    given = pa.table({"ts": pa.array([1] * 6, UTC), "x": [0.0, -0.0, np.nan, -np.nan, None, 1.0], "w": [1] * 6})
    low, high = columns.row_hashes(columns.take(given, clocks()).rows)
    assert groups_of(low, high)[0].codes.tolist() == [0, 0, 1, 1, 2, 3]


def test_hashes_that_agree_in_one_half_are_two() -> None:
    halves = np.array([3, 3, 3, 4], np.uint64), np.array([1, 2, 1, 1], np.uint64)
    groups, first, sums = netted(*halves, np.array([5, 7, -5, 2]))
    assert (groups.codes.tolist(), first.tolist(), sums.tolist()) == ([0, 1, 0, 2], [0, 1, 3], [0, 7, 2])


@pytest.mark.parametrize(
    ("options", "schema", "error", "words"),
    [
        ({}, {"event_time": UTC}, UnknownColumn, "time= needs column 'ts'"),
        ({}, {"ts": pa.int64()}, TypeMismatch, "cast it to timestamp"),
        ({}, {"ts": UTC, "event_time": UTC}, InvalidArgument, "give the source time='event_time', or leave"),
        ({}, {"ts": UTC, "diff": pa.int64()}, InvalidArgument, "give the source diff='diff', or leave the column out"),
        ({"diff": "w"}, {"ts": UTC, "w": pa.string()}, TypeMismatch, "int64 column of weights"),
        ({"diff": "w"}, {"ts": UTC, "m": pa.map_(pa.string(), UTC), "w": pa.int64()}, TypeMismatch, "'m' cannot be"),
        ({"late": "drop"}, {}, TypeError, "unexpected keyword argument 'late'"),
        ({"allowed_lateness": "-1 s"}, {}, InvalidArgument, "cannot be negative"),
    ],
)
def test_wrong_options_are_refused(options: Any, schema: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        RowOptions(**options).columns(pa.schema(schema), "it")


def test_a_bundle_with_other_columns_is_refused() -> None:
    columns = RowOptions().columns(pa.schema({"ts": UTC, "x": pa.int64()}), "it")
    with pytest.raises(TypeMismatch, match="select these, in this order"):
        columns.take(pa.table({"x": [1], "ts": pa.array([1], UTC)}), clocks())


def _same(table: pa.Table) -> pa.Table:
    return table


def test_a_step_shows_the_options_that_were_given() -> None:
    rows = uc.flow(pa.schema({"ts": pa.timestamp("us", "UTC"), "id": pa.string()}))
    assert "Distinct(by=('id',), within='1 hour')\n" in repr(rows.distinct("id", within="1 hour")) + "\n"
    waiting = rows.in_order(by="id", allowed_lateness="5 seconds")
    assert "InOrder(by=('id',), allowed_lateness='5 seconds')\n" in repr(waiting) + "\n"
    assert "Remember(function=_same)\n" in repr(rows.map(_same, remember=True)) + "\n"


def test_a_later_stage_counts_the_stages_of_a_union() -> None:
    rows = uc.flow(pa.schema({"ts": pa.timestamp("us", "UTC"), "id": pa.string()}))
    one = rows.window(uc.Fixed("1 minute"), mode="retracting", allowed_lateness="1 hour").combine(by="id", n=uc.Count())
    both = uc.union(one, one)
    with pytest.raises(InvalidArgument, match="of stage 3 is less than the '1 hour'"):
        both.window(uc.Fixed("1 hour"), allowed_lateness="1 minute").combine(n=uc.Count())
