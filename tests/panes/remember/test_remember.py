"""Functions that give another result at each call: what is retracted is what was given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from seeds import seeds
from stepping import SCHEMA, Driven, scripts, table_of, tuples

from uncombine.errors import InvalidArgument, TypeMismatch, UnknownColumn
from uncombine.panes.remember.operator import RememberOperator
from uncombine.panes.remember.remember import Remember
from uncombine.windows.times import MAX_TIME

PLAIN = SCHEMA.remove(3)
SEEDS = pytest.mark.parametrize("seed", seeds(6, 200))


class Guess:
    """Gives random results, and notes them by the row that they are for."""

    def __init__(self, seed: int, flat: bool) -> None:
        self.rng, self.flat = np.random.default_rng(seed), flat
        self.given: dict[Any, list[Any]] = {}
        self.calls = 0

    def __call__(self, table: pa.Table) -> pa.Table:
        rows = tuples(table)
        counts = self.rng.integers(0, 3, len(rows)) if self.flat else np.ones(len(rows), np.int64)
        owner = np.repeat(np.arange(len(rows)), counts)
        self.rng.shuffle(owner)
        owner = owner if self.flat else np.arange(len(rows))
        guess = self.rng.integers(0, 3, len(owner)).tolist()
        self.calls += 1
        for row in rows:
            self.given[row] = []
        for place, value in zip(owner.tolist(), guess, strict=True):
            self.given[rows[place]].append((rows[place][1], value))
        columns = {"id": table["id"].take(pa.array(owner)), "guess": pa.array(guess, pa.int64())}
        return pa.table(columns | ({"row": pa.array(owner, pa.int64())} if self.flat else {}))


def driven(function: Callable[..., Any], lateness: int = 0, stored: bool = False, **options: Any) -> Driven:
    remember = Remember(function, allowed_lateness=f"{lateness} us", max_future=None, **options)
    return Driven(RememberOperator(remember, SCHEMA if remember.diff else PLAIN), stored)


@pytest.mark.weekly
@SEEDS
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("lateness", [0, 12])
def test_rule_56_what_is_retracted_is_what_was_given(seed: int, lateness: int, flat: bool) -> None:
    guess = Guess(seed, flat)
    run = driven(guess, lateness, seed % 2 == 1, diff="w", flat=flat)
    net: Counter[Any] = Counter()
    before, dropped = -(10**18), 0
    for bundle in scripts(seed, steps=40):
        calls, known = guess.calls, {row for row, weight in net.items() if weight > 0}
        for time, key, x, weight in bundle.rows:
            if time + lateness < before:
                dropped += 1
            else:
                net[time, key, float(x)] += weight
        run.step(table_of(bundle.rows), bundle.watermark)
        before = bundle.watermark
        expected: Counter[Any] = Counter()
        for row, weight in net.items():
            for result in guess.given[row] if weight > 0 else ():
                expected[*result, row[0]] += weight
        assert run.net == expected
        assert (guess.calls > calls) == any(weight > 0 and row not in known for row, weight in net.items())
        alive = [row for row, weight in net.items() if weight and row[0] + lateness >= bundle.watermark]
        assert run.operator.count_entries(run.state) == len(alive)
    assert run.state.counts.dropped == dropped > 0
    assert run.end() == []


@pytest.mark.parametrize("flat", [False, True])
def test_rule_57_an_append_only_input_needs_no_state(flat: bool) -> None:
    guess = Guess(1, flat)
    run = driven(guess, flat=flat)
    rows = [(5, "a", 1, 1), (6, "b", 1, 1), (7, "b", 1, 1), (8, None, 1, 1)]
    given = run.step(table_of(rows, PLAIN), 6)
    assert given == [(*result, row[0], 1) for row in rows for result in guess.given[row[0], row[1], 1.0]]
    assert run.operator.count_entries(run.state) == 0
    calls = guess.calls
    assert run.step(table_of([(5, "a", 1, 1)], PLAIN), MAX_TIME) == []
    assert (guess.calls, run.state.counts.dropped) == (calls, 1)


def test_rule_56_equal_rows_have_one_result_until_all_are_retracted() -> None:
    guess = Guess(0, flat=False)
    run = driven(guess, diff="w")
    first = run.step(table_of([(5, "a", 1, 2)]), 0)
    assert run.step(table_of([(5, "a", 1, 1)]), 0) == [(*first[0][:3], 1)]
    assert run.step(table_of([(5, "a", 1, -4)]), 0) == [(*first[0][:3], -3)]
    assert run.step(table_of([(5, "a", 1, 1)]), 0) == []
    assert guess.calls == 2  # once without rows
    run.step(table_of([(5, "a", 1, 1)]), 0)
    assert guess.calls == 3


def test_rule_56_a_result_that_equals_the_one_that_it_replaces_is_not_given() -> None:
    run = driven(lambda table: table.select(["id"]), diff="w")
    run.step(table_of([(5, "a", 1, 1)]), 0)
    assert run.step(table_of([(5, "a", 1, -1), (5, "a", 2, 1)]), 0) == []
    assert run.net == {("a", 5): 1}


def test_the_function_may_give_a_data_frame_and_sees_event_time_as_a_column() -> None:
    schema = pa.schema({"event_time": pa.timestamp("us", "UTC"), "x": pa.int64(), "diff": pa.int64()})

    def function(table: pa.Table) -> Any:
        assert table.column_names == ["x", "event_time"]
        return table.to_pandas().assign(y=lambda frame: frame["x"] * 2)

    operator = RememberOperator(Remember(function, time="event_time", diff="diff"), schema)
    bundle = pa.table({"event_time": [3, 4], "x": [1, 2], "diff": [1, 1]}).cast(schema)
    assert tuples(operator.step(operator.initial(), bundle, 0).panes) == [(1, 2, 3, 1), (2, 4, 4, 1)]


def later(table: pa.Table) -> pa.Table:
    return table.set_column(1, "event_time", pa.array([7] * table.num_rows, pa.timestamp("us", "UTC")))


@pytest.mark.parametrize(
    ("function", "flat", "error", "words"),
    [
        (3, False, InvalidArgument, "takes a function of an Arrow table"),
        (lambda table: 3, False, TypeMismatch, r"map\(remember=True\) takes a function that returns an Arrow table"),
        (lambda table: pa.table({"n": [None]}), False, TypeMismatch, "without a type"),
        (lambda table: table.append_column("diff", table["x"]), False, InvalidArgument, "column 'diff'"),
        (lambda table: table.select([]), False, InvalidArgument, "no column of its own"),
        (lambda table: table, True, UnknownColumn, r"the result of flat_map\(remember=True\) needs column 'row'"),
        (lambda table: pa.table({"x": [1.0], "row": [1.0]}), True, TypeMismatch, "'row' must hold the places"),
    ],
)
def test_wrong_functions_are_refused_when_built(function: Any, flat: bool, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        driven(function, flat=flat, diff="w")


@pytest.mark.parametrize(
    ("function", "flat", "error", "words"),
    [
        (lambda table: table.slice(1), False, TypeMismatch, "gave 1 rows for 2"),
        (later, False, InvalidArgument, "changed 'event_time'"),
        (lambda table: pa.table({"x": [1], "row": [2]}).slice(0, table.num_rows), True, InvalidArgument, "from 0 to 1"),
        (
            lambda table: pa.table(
                {"x": [1], "row": [None]}, schema=pa.schema({"x": pa.int64(), "row": pa.int64()})
            ).slice(0, table.num_rows),
            True,
            InvalidArgument,
            "gave None",
        ),
    ],
)
def test_wrong_results_are_refused(function: Any, flat: bool, error: type[Exception], words: str) -> None:
    schema = pa.schema({"x": pa.int64(), "event_time": pa.timestamp("us", "UTC")})
    operator = RememberOperator(Remember(function, time="event_time", flat=flat), schema)
    bundle = pa.table({"x": [1, 2], "event_time": [3, 4]}).cast(schema)
    with pytest.raises(error, match=words):
        operator.step(operator.initial(), bundle, 0)
