"""Rows in the order of event time, against plain Python."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from seeds import seeds
from stepping import SCHEMA, Driven, scripts, table_of

import uncombine as uc
from uncombine.errors import TypeMismatch, UnknownColumn
from uncombine.panes.in_order.in_order import InOrder
from uncombine.panes.in_order.operator import InOrderOperator
from uncombine.windows.times import MAX_TIME, MIN_TIME

PLAIN = SCHEMA.remove(3)
SEEDS = pytest.mark.parametrize("seed", seeds(6, 200))


def driven(lateness: int = 0, stored: bool = False, **options: Any) -> Driven:
    in_order = InOrder("id", allowed_lateness=f"{lateness} us", max_future=None, **options)
    return Driven(InOrderOperator(in_order, SCHEMA if in_order.diff else PLAIN), stored)


@SEEDS
@pytest.mark.parametrize("lateness", [0, 12])
@pytest.mark.parametrize("changelog", [False, True])
def test_rule_54_rows_come_out_by_time_and_arrival_once_the_watermark_has_passed_them(
    seed: int, lateness: int, changelog: bool
) -> None:
    run = driven(lateness, seed % 2 == 1, diff="w" if changelog else None)
    waiting: list[list[Any]] = []
    before, dropped, last = -(10**18), 0, -(10**18)
    for bundle in [*scripts(seed, changelog=changelog), None]:
        rows, after = (bundle.rows, bundle.watermark) if bundle else ([], MAX_TIME)
        for time, key, x, weight in rows:
            if time + lateness < before:
                dropped += 1
                continue
            row = (time, key, float(x), time)
            same = [entry for entry in waiting if changelog and entry[0] == row]
            if same:
                same[0][1] += weight
            else:
                waiting.append([row, weight])
        waiting = [entry for entry in waiting if entry[1]]  # a row that comes back after it was netted is a new one
        ready = [entry for entry in waiting if entry[0][0] + lateness < after]
        waiting = [entry for entry in waiting if entry[0][0] + lateness >= after]
        expected = [(*row, weight) for row, weight in sorted(ready, key=lambda entry: entry[0][0]) if weight > 0]
        given = run.step(table_of(rows, run.operator.schema), after)
        assert given == expected
        assert all(row[0] >= last for row in given)
        last, before = max([last, *(row[0] for row in given)]), after
        assert run.operator.count_entries(run.state) == len(waiting)
    assert run.state.counts.dropped == dropped > 0
    assert run.end() == []


def test_rule_54_equal_rows_of_an_append_only_input_all_come_out() -> None:
    run = driven()
    rows = [(5, "a", 1, 1), (5, "b", 1, 1), (5, "a", 1, 1), (4, "a", 7, 1)]
    run.step(table_of(rows, PLAIN), 0)
    assert [row[:3] for row in run.end()] == [(4, "a", 7.0), (5, "a", 1.0), (5, "b", 1.0), (5, "a", 1.0)]


def test_rule_55_a_row_and_its_retraction_meet_while_they_wait_and_take_no_state() -> None:
    run = driven(lateness=10, diff="w")
    for _ in range(5):
        run.step(table_of([(5, "a", 1, 1), (6, "a", 2, -1)]), 15)
        run.step(table_of([(5, "a", 1, -1), (6, "a", 2, 1)]), 15)
        assert run.operator.count_entries(run.state) == 0
    run.step(table_of([(6, "a", 2, 3), (6, "b", 2, -1)]), 15)
    assert run.operator.count_entries(run.state) == 2
    assert run.end() == [(6, "a", 2.0, 6, 3)]


def test_rule_55_no_row_is_late_for_a_later_stage() -> None:
    run = driven(lateness=10)
    assert run.operator.hold(run.state) == MIN_TIME
    run.step(table_of([(25, "a", 1, 1)], PLAIN), 30)
    assert run.operator.hold(run.state) == 20
    assert [row[0] for row in run.step(table_of([(21, "a", 1, 1), (19, "a", 1, 1)], PLAIN), 40)] == [21, 25]
    assert run.state.counts.dropped == 1
    run.end()
    assert run.operator.hold(run.state) == MAX_TIME


def test_rule_55_equal_rows_in_order_count_as_often_as_they_came() -> None:
    changelog = uc.flow(pa.schema({"ts": pa.timestamp("us", "UTC"), "w": pa.int64()}), diff="w")
    script = [uc.Elements([{"ts": 1, "w": 3}, {"ts": 1, "w": -1}]), uc.Watermark(None)]
    counted = changelog.in_order().window(uc.Global()).combine(n=uc.Count())
    assert counted.run(script)["n"].to_pylist() == [2]
    twice = changelog.in_order().in_order().run(script)
    assert twice["diff"].to_pylist() == [2]


def test_with_a_watermark_of_each_batch_a_bundle_comes_out_in_order() -> None:
    run = driven()
    for _ in range(2):
        given = run.step(table_of([(9, "a", 1, 1), (3, "a", 1, 1)], PLAIN), 0, each_batch=True)
        assert [row[0] for row in given] == [3, 9]


def test_rows_without_a_usable_time_are_bad() -> None:
    schema = PLAIN.set(0, pa.field("ts", pa.timestamp("us")))
    run = Driven(InOrderOperator(InOrder(max_future="1 s"), schema))
    rows = [(None, "a", 1, 1), (5, "a", 1, 1), (2_000_001, "a", 1, 1), (-(2**62), "a", 1, 1)]
    run.step(table_of(rows, schema), MAX_TIME, now=1_000_000)
    assert (run.state.counts.bad, sum(run.net.values())) == (3, 1)


def test_wrong_use_is_refused_when_built() -> None:
    with pytest.raises(UnknownColumn, match=r"in_order\(by=\)"):
        InOrderOperator(InOrder("user"), SCHEMA)
    nested = SCHEMA.append(pa.field("m", pa.map_(pa.string(), pa.int64())))
    InOrderOperator(InOrder(), nested.remove(3))
    with pytest.raises(TypeMismatch, match=r"in_order\(\) over a changelog \(diff=\).*'m'"):
        InOrderOperator(InOrder(diff="w"), nested)
