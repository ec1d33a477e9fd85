"""Samples of rows: the share of them, the rows that share their fate, and the same rows on every route."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch, UnknownColumn
from uncombine.flows.graph import graph_of, leaf_columns

TIME = pa.timestamp("us", "UTC")
ROWS = pa.table({"ts": pa.array(range(20_000), TIME), "user": [n % 500 for n in range(20_000)], "x": range(20_000)})
CHANGES = pa.schema({"ts": TIME, "user": pa.string(), "x": pa.int64(), "w": pa.int64()})


def chosen(column: Any, fraction: float = 0.5, seed: int = 0) -> list[bool]:
    """True for each value of a column that is in the sample by this key."""
    rows = pa.table({"ts": np.arange(len(column)), "row": np.arange(len(column)), "x": column})
    places = set(uc.flow(rows).sample(fraction, by="x", seed=seed).to_arrow()["row"].to_pylist())
    return [place in places for place in range(len(column))]


def mixed(word: int) -> int:
    """The finaliser of SplitMix64."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
    return word ^ word >> 31


def number(x: int, seed: int) -> float:
    """The number of an integer key, in plain Python."""
    lane = 0x243F6A8885A308D3 + mixed((0x5A3D1E << 40) + seed)
    return (mixed((x + lane + 0x9E3779B97F4A7C15) % 2**64) >> 11) / 2**53


@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
def test_rule_69_the_rows_of_a_sample_never_change(seed: int) -> None:
    for fraction in (0, 0.01, 0.5, 1):
        want = [number(x, seed) < fraction for x in range(300)]
        assert chosen(pa.array(range(300)), fraction, seed) == want
        assert sum(want) == pytest.approx(300 * fraction, abs=40)


@pytest.mark.parametrize("fraction", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("key", [None, "x"])
def test_rule_69_a_sample_has_its_fraction_of_the_rows(fraction: float, key: str | None) -> None:
    count = ROWS.num_rows
    got = uc.flow(ROWS).sample(fraction, by=key).to_arrow().num_rows
    assert abs(got - fraction * count) < 4 * math.sqrt(count * fraction * (1 - fraction))


def test_rule_69_a_key_has_all_its_rows_or_none() -> None:
    rows = uc.flow(ROWS).sample(0.2, by="user").to_arrow()
    users = set(rows["user"].to_pylist())
    assert 60 < len(users) < 140
    want = ROWS.to_pandas().query("user in @users")
    pd.testing.assert_frame_equal(rows.drop_columns("step").to_pandas(), want.reset_index(drop=True))


def test_rule_69_samples_of_one_seed_are_nested_and_those_of_two_are_independent() -> None:
    values = ROWS["x"]
    small, large, other = (np.array(chosen(values, *how)) for how in ((0.2,), (0.5,), (0.5, 1)))
    assert not (small & ~large).any()
    assert abs((large & other).sum() - 5_000) < 4 * math.sqrt(20_000 * 0.25 * 0.75)
    twice = uc.flow(ROWS).sample(0.5, by="x").sample(0.2, by="x")
    assert twice.to_arrow().num_rows == small.sum()


def test_rule_69_sketches_see_nothing_odd_in_a_sample_by_their_column() -> None:
    [row] = uc.flow(ROWS).sample(0.3, by="x").combine(n=uc.Count(), users=uc.ApproxCountDistinct("x")).collect()
    assert row["users"] == pytest.approx(row["n"], rel=0.05)


def test_rule_69_equal_values_share_their_fate() -> None:
    floats = [value for n in range(40) for value in (n / 4, 0.0, -0.0, math.nan, None)]
    fates = {repr(value): fate for value, fate in zip(floats, chosen(pa.array(floats, pa.float64())), strict=True)}
    assert fates["0.0"] == fates["-0.0"]
    assert chosen(pa.array(floats[:20], pa.float32())) == chosen(pa.array(floats[:20], pa.float64()))
    assert set(fates.values()) == {True, False}
    integers = pa.array([*range(100), None])
    texts = integers.cast(pa.string())
    times = integers.cast(pa.timestamp("s"))
    alike: list[list[Any]] = [
        [integers, integers.cast(pa.int8()), integers.cast(pa.uint32())],
        [texts, texts.cast(pa.large_string()), texts.dictionary_encode()],
        [times, times.cast(pa.timestamp("ns")), times.cast(pa.timestamp("us", "Asia/Tokyo"))],
        [integers.cast(pa.duration("s")), integers.cast(pa.duration("s")).cast(pa.duration("ns"))],
    ]
    for columns in alike:
        fates_of_all = [chosen(column) for column in columns]
        assert fates_of_all.count(fates_of_all[0]) == len(columns)


def changes(r: random.Random) -> tuple[pa.Table, Counter[tuple[int, str | None, int]]]:
    """Rows and retractions in any order, and the rows that are left."""
    left = Counter[tuple[int, str | None, int]]()
    rows = []
    for _ in range(120):
        row, weight = (r.randrange(60), r.choice(["a", "b", None]), r.randrange(8)), r.choice([1, 2])
        if left[row] > 0 or r.random() < 0.3:
            weight = -min(left[row], weight)
        left[row] += weight
        rows.append((*row, weight))
    columns = list(zip(*r.sample(rows, len(rows)), strict=True))
    arrays = [pa.array(column).cast(f.type) for column, f in zip(columns, CHANGES, strict=True)]
    return pa.table(arrays, schema=CHANGES), +left


@pytest.mark.parametrize("seed", seeds(20))
@pytest.mark.parametrize("key", ["x", ["x", "user"], ["ts", "user", "x"]])
def test_rule_69_a_retraction_shares_the_fate_of_its_row(key: str | list[str], seed: int) -> None:
    """The sample of a changelog, netted, is that of the rows that are left, in bundles cut anywhere."""
    r = random.Random(seed)
    table, left = changes(r)

    def sampled(source: uc.Flow) -> uc.Flow:
        return source.sample(0.5, by=key, seed=seed)

    cuts = sorted(r.sample(range(len(table)), 4))
    script = [uc.Elements(table.slice(a, b - a)) for a, b in zip([0, *cuts], [*cuts, len(table)], strict=True)]
    rest = pa.table(
        [pa.array(c).cast(f.type) for c, f in zip(zip(*left.elements(), strict=True), CHANGES, strict=False)],
        schema=CHANGES.remove(3),
    )
    sums = {"by": "user", "n": uc.Count(), "total": uc.Sum("x")}
    minutes = sampled(uc.flow(CHANGES, diff="w")).window("20 us", "every 1 row", "retracting").combine(**sums)
    got = minutes.run([*script, uc.Watermark(None)]).table()
    want = sampled(uc.flow(rest)).window("20 us").combine(**sums).run().table().select(got.column_names)
    assert sorted(map(str, got.to_pylist())) == sorted(map(str, want.to_pylist()))
    assert want.num_rows


def test_rule_69_panes_and_their_retractions_share_their_fate() -> None:
    shown = uc.flow(ROWS.schema).window("1 ms", "every 1 row", "retracting").combine(by="user", x=uc.Sum("x"))
    script = [uc.Elements(ROWS.slice(start, 500)) for start in range(0, 4_000, 500)] + [uc.Watermark(None)]
    for key in ("user", ["user", "window"], ["user", "window", "x"]):
        early = shown.sample(0.3, by=key)
        result = early.run(script)
        final = early.run([uc.Elements(ROWS.slice(0, 4_000)), uc.Watermark(None)])
        assert min(result["diff"].to_pylist()) == -1
        assert sorted(map(str, result.table().to_pylist())) == sorted(map(str, final.table().to_pylist()))
        assert final.num_rows


def test_a_replay_has_the_rows_of_a_run() -> None:
    rows = ROWS.slice(0, 300).append_column("seen", ROWS["ts"].slice(0, 300))
    source = uc.flow(rows, watermark="1 minute", processing_time="seen")
    one, other = (flow.sample(0.3).in_order().to_arrow() for flow in (source.replay(close_at_end=True), uc.flow(rows)))
    assert one["x"].to_pylist() == other["x"].to_pylist()
    assert 50 < one.num_rows < 130


def test_only_the_columns_of_a_sample_are_read() -> None:
    def columns(flow: uc.Flow) -> frozenset[str]:
        [step] = graph_of(flow.window("1 minute").combine(n=uc.Count())).steps
        leaf = step.feeds[0].leaf
        assert leaf is not None
        return leaf_columns(step, step.feeds[0], leaf)

    assert columns(uc.flow(ROWS).sample(0.1, by="user")) == {"ts", "user"}
    assert columns(uc.flow(ROWS).sample(0.1)) == {"ts", "user", "x"}


def test_a_sample_is_in_the_words_of_a_flow() -> None:
    flow = uc.flow(ROWS).sample(0.1, by="user", seed=3)
    assert "sample 1: fraction=0.1, by=('user',), seed=3" in flow.explain()
    assert flow.schema == uc.flow(ROWS).schema


WEIGHED = uc.flow(CHANGES, diff="w")
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "percent": (lambda: WEIGHED.sample(10), InvalidArgument, "sample() takes a fraction from 0 to 1, such as 0.1, but"),
    "not a number": (lambda: WEIGHED.sample(math.nan), InvalidArgument, "sample() takes a fraction from 0 to 1"),
    "text": (lambda: WEIGHED.sample("0.1"), InvalidArgument, "sample() takes a fraction from 0 to 1"),
    "true": (lambda: WEIGHED.sample(True), InvalidArgument, "sample() takes a fraction from 0 to 1"),
    "seed": (lambda: WEIGHED.sample(0.1, seed=-1), InvalidArgument, "sample(seed): seed must be a whole number from 0"),
    "no column": (
        lambda: WEIGHED.sample(0.1, by="usr"),
        UnknownColumn,
        "sample() needs column 'usr', which the input",
    ),
    "no key": (lambda: WEIGHED.sample(0.1, by=[]), InvalidArgument, "sample() needs a column by which it knows rows"),
    "weight": (
        lambda: WEIGHED.sample(0.1, by=["user", "w"]),
        InvalidArgument,
        "sample(by=) cannot be 'w', which a retraction does not share with its row: name other columns",
    ),
    "pane": (
        lambda: WEIGHED.window("1 minute").combine(n=uc.Count()).rename(pane="p").sample(0.1, by="p"),
        InvalidArgument,
        "sample(by=) cannot be 'p', which a retraction",
    ),
    "weights alone": (
        lambda: WEIGHED.select("w").sample(0.1),
        InvalidArgument,
        "sample() over rows that can be retracted needs by=: name columns that a row shares with its retraction",
    ),
    "type": (
        lambda: uc.flow(CHANGES.append(pa.field("m", pa.map_(pa.string(), pa.int8())))).sample(0.1),
        TypeMismatch,
        "'sample()' hashes its input, but 'm' cannot be hashed",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_use_is_refused(name: str) -> None:
    make, kind, says = REFUSED[name]
    with pytest.raises(kind) as refused:
        make()
    assert str(refused.value).startswith(says)


def test_a_processing_time_is_no_value_of_a_row_that_can_be_retracted() -> None:
    schema = CHANGES.append(pa.field("seen", TIME))
    flow = uc.flow(schema, diff="w", processing_time="seen")
    assert flow.sample(0.1, by="x").schema == CHANGES
    with pytest.raises(UnknownColumn, match="needs column 'seen', which the input does not have"):
        flow.sample(0.1, by="seen")
    assert uc.flow(schema, processing_time="seen").sample(0.1).schema == schema


@pytest.mark.parametrize("key", [None, "user"])
def test_spark_has_the_rows_of_this_process(key: str | None, spark: SparkSession) -> None:
    rows = ROWS.slice(0, 2_000).set_column(0, "ts", pa.array(range(2_000), pa.timestamp("s", "UTC")))

    def sums(flow: uc.Flow) -> uc.Flow:
        return flow.sample(0.3, by=key).window("10 minutes").combine(by="user", total=uc.Sum("x"))

    there = uc.flow(rows, spark=spark)
    sampled = there.sample(0.3, by=key)
    want = uc.flow(rows).sample(0.3, by=key).to_arrow()["x"].to_pylist()
    assert sorted(sampled.df.toArrow()["x"].to_pylist()) == sorted(want)
    assert 400 < len(want) < 800
    here = Counter(row["total"] for row in sums(uc.flow(rows)).collect())
    assert Counter(sums(there).df.toArrow()["total"].to_pylist()) == here
    assert f"sample 1: fraction=0.3, by={(key,) if key else ('ts', 'user', 'x')}, seed=0" in sums(there).explain()


COUNT = 64
SECONDS = pa.array(range(COUNT), pa.timestamp("s", "UTC"))
NUMBERS = pa.array(range(COUNT))
TWICE: dict[str, tuple[pa.Array, pa.DataType]] = {
    "in a struct": (pa.StructArray.from_arrays([SECONDS], ["t"]), pa.struct([("t", pa.timestamp("us", "UTC"))])),
    "in lists": (pa.array([[n] for n in range(COUNT)], pa.list_(pa.timestamp("s"))), pa.list_(pa.timestamp("us"))),
    "in large lists": (
        pa.array([[n] for n in range(COUNT)], pa.large_list(pa.duration("s"))),
        pa.list_(pa.duration("us")),
    ),
    "times of day": (NUMBERS.cast(pa.int32()).cast(pa.time32("s")), pa.time64("us")),
    "wide decimals": (NUMBERS.cast(pa.decimal256(30, 3)), pa.decimal128(30, 3)),
}


def numbers_of(rows: pa.Table) -> list[int]:
    return sorted(uc.flow(rows).sample(0.5, by="x").to_arrow()["n"].to_pylist())


@pytest.mark.parametrize("name", TWICE)
def test_rule_69_the_unit_and_the_width_do_not_matter_within_others(name: str) -> None:
    values, other = TWICE[name]
    samples = [numbers_of(pa.table({"ts": SECONDS, "n": NUMBERS, "x": x})) for x in (values, values.cast(other))]
    assert samples[0] == samples[1]
    assert 0.2 * COUNT < len(samples[0]) < 0.8 * COUNT


@pytest.mark.parametrize("name", [name for name in TWICE if name != "times of day"])
def test_spark_has_the_rows_of_this_process_for_every_type(name: str, spark: SparkSession) -> None:
    rows = pa.table({"ts": SECONDS, "n": NUMBERS, "x": TWICE[name][0]})
    there = uc.flow(rows, spark=spark).sample(0.5, by="x").select("ts", "n").df.toArrow()
    assert sorted(there["n"].to_pylist()) == numbers_of(rows)
