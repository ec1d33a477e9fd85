"""One row of each id, against plain Python."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from seeds import seeds
from stepping import SCHEMA, Driven, scripts, table_of

from uncombine.combiners.rows.columns import Column
from uncombine.combiners.rows.hashing import hash_rows_128
from uncombine.errors import InvalidArgument, TypeMismatch, UnknownColumn
from uncombine.panes.distinct.distinct import Distinct
from uncombine.panes.distinct.operator import DistinctOperator

PLAIN = SCHEMA.remove(3)
FOREVER = 10**18

SEEDS = pytest.mark.parametrize("seed", seeds(4, 200))


def micros(count: int) -> str:
    return f"{count} us"


def driven(within: int | None = 25, lateness: int = 0, stored: bool = False, **options: Any) -> Driven:
    distinct = Distinct(
        "id", None if within is None else micros(within), allowed_lateness=micros(lateness), max_future=None, **options
    )
    return Driven(DistinctOperator(distinct, SCHEMA if distinct.diff else PLAIN), stored)


@cache
def tie(row: tuple[int, Any, Any]) -> tuple[int, int]:
    """The order of rows of one id and time."""
    time, key, x = row
    stamp = pa.array([time], pa.timestamp("us", "UTC"))
    arrays = [stamp, pa.array([key], pa.string()), pa.array([x], pa.float64()), stamp]
    low, high = hash_rows_128([Column(array) for array in arrays])
    return int(low[0]), int(high[0])


def first_rows(net: Counter[tuple[int, Any, Any]], within: int) -> Counter[Any]:
    """One row of each id, and then the next that is far enough from the one before."""
    shown: Counter[Any] = Counter()
    free: dict[Any, int] = {}
    for time, key, x in sorted((row for row, weight in net.items() if weight > 0), key=lambda r: (r[0], tie(r))):
        if time >= free.get(key, -FOREVER):
            shown[time, key, x, time] = 1
            free[key] = time + within
    return shown


@pytest.mark.weekly
@SEEDS
@pytest.mark.parametrize(("within", "lateness"), [(25, 0), (25, 12), (1, 5), (None, 7)])
def test_rule_51_of_a_changelog_the_first_row_of_each_id_is_shown(seed: int, within: int | None, lateness: int) -> None:
    run = driven(within, lateness, seed % 2 == 1, diff="w")
    net: Counter[tuple[int, Any, Any]] = Counter()
    before, dropped = -FOREVER, 0
    for bundle in scripts(seed):
        for time, key, x, weight in bundle.rows:
            if time + lateness >= before:
                net[time, key, float(x)] += weight
            else:
                dropped += 1
        run.step(table_of(bundle.rows), bundle.watermark)
        before = bundle.watermark
        assert run.net == first_rows(net, FOREVER if within is None else within)
    assert run.state.counts.dropped == dropped > 0
    assert run.end() == []


@SEEDS
@pytest.mark.parametrize(("within", "lateness"), [(25, 0), (25, 12), (1, 5), (None, 7)])
def test_rule_52_rows_that_are_only_added_are_shown_as_they_come(seed: int, within: int | None, lateness: int) -> None:
    reach = FOREVER if within is None else within
    run = driven(within, lateness, seed % 2 == 1)
    shown: dict[Any, list[int]] = {}
    before, late = -FOREVER, []
    for bundle in scripts(seed, changelog=False):
        expected = []
        for place, (time, key, x, _) in sorted(enumerate(bundle.rows), key=lambda item: (item[1][0], item[0])):
            if time + lateness < before:
                continue
            if all(abs(time - other) >= reach for other in shown.setdefault(key, [])):
                shown[key].append(time)
                expected.append((place, (time, key, float(x), time, 1)))
        late += [row[:3] for row in bundle.rows if row[0] + lateness < before]
        assert run.step(table_of(bundle.rows, PLAIN), bundle.watermark) == [row for _, row in sorted(expected)]
        before = bundle.watermark
    assert run.late == late
    assert run.state.counts.dropped == len(late) > 0
    assert run.end() == []


def test_rule_52_a_retracted_row_gives_way_to_the_next_or_to_nothing() -> None:
    run = driven(within=10, diff="w")
    run.step(table_of([(3, "a", 1, 1), (5, "a", 2, 1)]), 0)
    assert run.step(table_of([(3, "a", 1, -1)]), 0) == [(3, "a", 1.0, 3, -1), (5, "a", 2.0, 5, 1)]
    assert run.step(table_of([(5, "a", 2, -1)]), 0) == [(5, "a", 2.0, 5, -1)]
    assert run.operator.count_entries(run.state) == 0


def test_rule_53_an_id_takes_24_bytes_and_leaves_when_no_row_can_come_that_it_hides() -> None:
    run = driven(within=10, lateness=5)
    run.step(table_of([(3, "a", 1, 1)], PLAIN), 17)
    known = run.state.stores["known"]
    assert known.rows().nbytes + sum(w.nbytes for c in known.chunks for w in c.wake.values()) == 24
    assert run.step(table_of([(12, "a", 1, 1)], PLAIN), 17) == []
    assert run.step(table_of([(13, "a", 1, 1)], PLAIN), 18) == [(13, "a", 1.0, 13, 1)]
    assert known.rows()["low"][0] not in run.state.stores["known"].chunks
    assert run.operator.count_entries(run.state) == 1
    run.step(PLAIN.empty_table(), 28)
    assert run.operator.count_entries(run.state) == 0


def test_rule_53_a_changelog_keeps_a_hash_of_rows_that_can_no_longer_be_retracted() -> None:
    run = driven(within=10, diff="w")
    run.step(table_of([(3, "a", 1, 1), (4, "a", 2, 1), (9, "b", 1, 1)]), 4)
    assert {name: len(store) for name, store in run.state.stores.items()} == {"known": 1, "rows": 2}
    run.step(SCHEMA.empty_table(), 10)
    assert {name: len(store) for name, store in run.state.stores.items()} == {"known": 2, "rows": 0}
    assert run.step(table_of([(12, "a", 1, 1), (13, "a", 2, 1)]), 12) == [(13, "a", 2.0, 13, 1)]


def test_ids_of_any_kind_null_and_nan_are_ids_and_zeros_are_equal() -> None:
    schema = pa.schema({"ts": pa.timestamp("ms"), "f": pa.float32(), "k": pa.dictionary(pa.int8(), pa.large_string())})
    operator = DistinctOperator(Distinct(("f", "k")), schema)
    rows = pa.table(
        {"ts": range(8), "f": [0.0, -0.0, np.nan, np.nan, None, None, 1.0, 1.0], "k": ["a"] * 6 + ["b", None]}
    )
    given = pa.Table.from_arrays(
        [
            rows["ts"].cast(schema.field("ts").type),
            rows["f"].cast(pa.float32()),
            rows["k"].dictionary_encode().cast(schema.field("k").type),
        ],
        schema=schema,
    )
    panes = operator.step(operator.initial(), operator.bundle([given], (), 0), 0).panes
    assert panes["event_time"].cast(pa.int64()).to_pylist() == [0, 2_000, 4_000, 6_000, 7_000]
    assert panes.schema.field("k").type == pa.string()


def test_ids_whose_hashes_agree_in_the_upper_half_stay_apart() -> None:
    rng = np.random.default_rng(0)
    ids = [str(i) for i in range(300_000)]
    low, _ = hash_rows_128([Column(pa.array(ids))])
    order = np.argsort(low)
    twins = np.flatnonzero(low[order][1:] >> np.uint64(32) == low[order][:-1] >> np.uint64(32))
    assert len(twins)
    pairs = [(ids[order[i]], ids[order[i + 1]]) for i in twins.tolist()]
    for changelog in (None, "w"):
        run = driven(diff=changelog)
        schema = run.operator.schema
        for side in (0, 1):
            rows = [(int(rng.integers(5)), pair[side], 1, 1) for pair in pairs]
            assert len(run.step(table_of(rows, schema), 0)) == len(pairs)


def test_with_a_watermark_of_each_batch_nothing_is_late_and_nothing_leaves() -> None:
    run = driven(within=10, diff="w")
    run.step(table_of([(50, "a", 1, 1)]), 0, each_batch=True)
    run.step(table_of([(5, "a", 1, 1)]), 0, each_batch=True)
    assert run.step(table_of([(50, "a", 1, -1), (7, "a", 1, 1)]), 0, each_batch=True) == [(50, "a", 1.0, 50, -1)]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Distinct([]), InvalidArgument, "columns of an id"),
        (lambda: Distinct("id", within="0 s"), InvalidArgument, "more than nothing"),
        (lambda: Distinct("id", bounded=False), InvalidArgument, "within='1 hour'"),
        (lambda: Distinct("id", allowed_lateness="-1 s"), InvalidArgument, "negative"),
        (lambda: DistinctOperator(Distinct("ids"), SCHEMA), UnknownColumn, "did you mean 'id'"),
        (lambda: DistinctOperator(Distinct("id", time="x"), SCHEMA), TypeMismatch, "cast it to timestamp"),
        (lambda: DistinctOperator(Distinct("id", diff="x"), SCHEMA), TypeMismatch, "int64 column of weights"),
        (
            lambda: DistinctOperator(Distinct("id"), SCHEMA.append(pa.field("diff", pa.int64()))),
            InvalidArgument,
            "diff='diff'",
        ),
    ],
)
def test_wrong_use_is_refused_when_built(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()
