"""Unions of flows: columns, watermarks of several inputs, weights; the result against pandas from raw rows."""

from __future__ import annotations

import random
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch
from uncombine.testing import check_flow

TIME = pa.timestamp("us", "UTC")
LEFT = pa.schema({"ts": TIME, "k": pa.string(), "x": pa.int32()})
RIGHT = pa.schema({"at": TIME, "k": pa.string(), "x": pa.int64(), "y": pa.float64()})
MINUTE = 60_000_000


def two(**options: Any) -> tuple[uc.Flow, uc.Flow]:
    left = uc.flow(LEFT, name="left", **options)
    return left, uc.flow(RIGHT, name="right", time="at", **options)


def elements(input: str, *rows: dict[str, Any], at: int | None = None) -> uc.Elements:
    return uc.Elements(list(rows), at=at, input=input)


def test_columns_that_a_flow_lacks_are_null_and_types_are_widened() -> None:
    left, right = two()
    both = uc.union(left=left, right=right, side="side")
    assert both.schema.field("x").type == pa.int64()
    assert both.schema.names == ["ts", "k", "x", "event_time", "at", "y", "side"]
    script = [elements("left", {"ts": 5, "k": "a", "x": 1}), elements("right", {"at": 7, "k": "b", "x": 2, "y": 0.5})]
    rows = both.select("event_time", "k", "x", "y", "side").run(script).panes.to_pylist()
    assert [(row["event_time"].microsecond, row["k"], row["x"], row["y"], row["side"]) for row in rows] == [
        (5, "a", 1, None, "left"),
        (7, "b", 2, 0.5, "right"),
    ]


def test_the_watermark_is_the_least_and_an_input_that_never_reported_holds_it() -> None:
    left, right = two()
    sums = uc.union(left, right).window(uc.Fixed("1 minute")).combine(x=uc.Sum("x"))
    script = [
        elements("left", {"ts": 0, "k": "a", "x": 1}),
        uc.Watermark(10 * MINUTE, input="left"),
        elements("right", {"at": 1, "k": "a", "x": 2}),
        uc.Watermark(MINUTE, input="right"),
        uc.Watermark(None),
    ]
    result = sums.run(script)
    assert [(row["x"], row["step"]) for row in result.to_pylist()] == [(3, 3)]
    assert result.counts()["dropped"] == 0


def test_an_idle_input_does_not_hold_the_watermark() -> None:
    left, right = two(watermark=uc.PerSource("k", idle_after="1 minute"))
    sums = uc.union(left, right).window(uc.Fixed("1 minute")).combine(x=uc.Sum("x"))
    script = [
        elements("right", {"at": 1, "k": "b", "x": 2}, at=0),
        elements("left", {"ts": 0, "k": "a", "x": 1}, at=0),
        elements("left", {"ts": 2 * MINUTE, "k": "a", "x": 5}, at=MINUTE - 1),
        uc.Clock(MINUTE),
    ]
    assert [(row["x"], row["step"]) for row in sums.run(script).to_pylist()] == [(3, 3)]


def test_rows_without_weights_count_one_beside_a_changelog() -> None:
    left = uc.flow(LEFT.append(pa.field("w", pa.int64())), name="left", diff="w")
    both = uc.union(left, two()[1])
    script = [
        elements("left", {"ts": 5, "k": "a", "x": 1, "w": 3}, {"ts": 5, "k": "a", "x": 1, "w": -1}),
        elements("right", {"at": 7, "k": "a", "x": 10}),
        uc.Watermark(None),
    ]
    sums = both.window(uc.Fixed("1 minute")).combine(by="k", x=uc.Sum("x"), n=uc.Count())
    assert sums.run(script).select(["x", "n"]).to_pylist() == [{"x": 12, "n": 3}]


def test_the_weights_of_a_flow_are_no_values_of_its_rows() -> None:
    """A row of weight 2 and its retraction differ in the column of the weights, and are equal all the same."""
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "w": pa.int64()})
    one, other = (uc.flow(schema, name=name, diff="w") for name in ("one", "other"))
    both = uc.union(one, other)
    assert both.schema.names == ["ts", "k", "diff"]
    rows = [{"ts": 0, "k": "a", "w": 2}, {"ts": 0, "k": "a", "w": -1}, {"ts": 0, "k": "a", "w": -1}]
    script = [uc.Elements([row], input="one") for row in rows]
    kept = both.distinct("k", within="1 hour").run([*script, uc.Watermark(None)])
    assert kept.table().num_rows == 0
    plain = uc.flow(pa.schema([("ts", schema.field("ts").type), ("w", pa.string())]), name="plain")
    assert uc.union(one, plain).schema.names == ["ts", "k", "diff", "w"]


def test_a_source_that_is_read_twice_gives_its_rows_to_both() -> None:
    left = two()[0]
    high, low = left.where(uc.col("x") > 5), left.where(uc.col("x") <= 5)
    counts = uc.union(high=high, low=low, side="side").window(uc.Fixed("1 minute")).combine(by="side", n=uc.Count())
    script = [uc.Elements([{"ts": i, "k": "a", "x": i} for i in range(9)]), uc.Watermark(None)]
    result = counts.run(script)
    assert sorted((row["side"], row["n"]) for row in result.to_pylist()) == [("high", 3), ("low", 6)]


def test_names_of_inputs() -> None:
    left, right = two()
    both = uc.union(left, right).window(uc.Global()).combine(n=uc.Count())
    with pytest.raises(InvalidArgument, match=r"the sources are \['left', 'right'\]: name one of them in input="):
        both.run([uc.Elements([{"ts": 0}])])
    with pytest.raises(InvalidArgument, match="entry 0 of the script is for input='middle'"):
        both.run([elements("middle", {"ts": 0})])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda a, b: uc.union(a), "takes two flows or more, not 1"),
        (lambda a, b: uc.union(a, 7), "takes flows, such as uc.flow"),
        (lambda a, b: uc.union(a, b.window(uc.Global())), "add .combine"),
        (lambda a, b: uc.union(a, b, side="x"), "side='x' is a column"),
        (
            lambda a, b: uc.union(a, uc.flow(RIGHT, time="at"), side="s"),
            "side= needs a name of its own for each flow",
        ),
        (lambda a, b: uc.union(l=a, r=b, side="event_time"), "side='event_time' is a column of the union"),
        (lambda a, b: uc.union(a, b.with_columns(K=uc.col("k"))), "differ by case only"),
        (
            lambda a, b: uc.union(a.window(uc.Fixed("1 minute"), uc.Always(), "discarding").combine(x=uc.Max("x")), b),
            "cannot show its changes as differences",
        ),
        (
            lambda a, b: uc.union(a, uc.flow(LEFT, watermark=uc.IngressTime())).run([]),
            "add one, such as window",
        ),
        (lambda a, b: uc.union(a, b.select("k")), "event time column 'at' of flow 'right'"),
        (lambda a, b: uc.union(a, uc.flow(LEFT, processing_time="ts")), "processing_time= is given in one"),
    ],
)
def test_wrong_use_is_refused(make: Any, says: str) -> None:
    with pytest.raises(uc.UncombineError, match=says) as told:
        make(*two())
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.int64(), pa.float64()),
        (pa.string(), pa.int64()),
        (TIME, pa.timestamp("ms", "UTC")),
        (pa.uint64(), pa.int64()),
        (pa.string(), pa.binary()),
        (pa.decimal128(38, 0), pa.decimal128(10, 2)),
    ],
)
def test_types_without_a_common_type_are_refused(one: pa.DataType, other: pa.DataType) -> None:
    flows = [uc.flow(pa.schema({"ts": TIME, "x": kind})) for kind in (one, other)]
    with pytest.raises(TypeMismatch, match="no type holds both: cast one of them"):
        uc.union(*flows)


def test_a_dictionary_is_united_with_its_values() -> None:
    kinds = [pa.dictionary(pa.int8(), pa.string()), pa.string()]
    tables = [
        pa.table({"ts": pa.array([i], TIME), "x": pa.array(["a"], pa.string()).cast(kind)})
        for i, kind in enumerate(kinds)
    ]
    for flows in (tables, tables[::-1], tables[:1] * 2):
        both = uc.union(*(uc.flow(table, name=str(i)) for i, table in enumerate(flows)))
        counted = both.window(uc.Global()).combine(by="x", n=uc.Count())
        assert counted.run()["n"].to_pylist() == [2]


def test_a_grouping_before_a_union_retracts() -> None:
    """A window that is shown again would count twice after the union."""
    left, right = two()
    early = uc.Repeatedly(uc.AfterCount(1))
    per_key = left.window(uc.Fixed("1 minute"), early).combine(by="k", x=uc.Sum("x"))
    assert uc.union(per_key, right).source.inputs[0].stages[0].grouping.mode == "retracting"
    with pytest.raises(InvalidArgument, match="use mode='retracting'"):
        uc.union(left.window(uc.Fixed("1 minute"), early, mode="accumulating").combine(x=uc.Sum("x")), right)
    total = uc.union(per_key, right).window(uc.Global(), early).combine(x=uc.Sum("x"), n=uc.Count())
    script = [
        elements("left", {"ts": 1, "k": "a", "x": 1}),
        elements("right", {"at": 2, "k": "a", "x": 10}),
        elements("left", {"ts": 3, "k": "a", "x": 2}),
        uc.Watermark(None),
    ]
    left_over = total.run(script).table()
    assert [(row["x"], row["n"]) for row in left_over.to_pylist()] == [(13, 2)]


def test_sources_without_names_or_of_one_name_keep_their_rows() -> None:
    tables = [uc.flow(pa.table({"ts": [i], "x": [10**i]})) for i in range(4)]
    nested = uc.union(uc.union(*tables[:2]), uc.union(*tables[2:])).window(uc.Global()).combine(x=uc.Sum("x"))
    assert nested.run()["x"].to_pylist() == [1111]
    same = uc.union(*(uc.flow(pa.table({"ts": [0], "x": [x]}), name="a") for x in (1, 2)))
    assert same.select("x").run()["x"].to_pylist() == [1, 2]
    with pytest.raises(InvalidArgument, match="2 sources have this name"):
        same.run([elements("a", {"ts": 0, "x": 1})])


def test_tables_come_in_the_order_of_their_processing_times() -> None:
    """A row of the first table that comes after one of the second is not late."""
    schema = pa.schema({"ts": TIME, "seen": TIME, "x": pa.int64()})
    flows = []
    for rows in ([(0, 10, 1), (90, 100, 2)], [(5, 20, 10), (95, 110, 20)]):
        table = pa.Table.from_pylist([{"ts": ts * 10**6, "seen": seen * 10**6, "x": x} for ts, seen, x in rows], schema)
        flows.append(uc.flow(table, watermark=uc.Monotonic(), processing_time="seen"))
    result = uc.union(*flows).window(uc.Fixed("1 minute")).combine(x=uc.Sum("x")).run()
    assert result["x"].to_pylist() == [11, 22]
    assert result.dropped == 0


def test_a_watermark_among_elements_has_no_input_of_its_own() -> None:
    rows = uc.Elements([{"ts": 0}], input="left", watermarks=[uc.Watermark(MINUTE, input="right")])
    with pytest.raises(InvalidArgument, match="without at= and input="):
        uc.union(*two()).run([rows])


def test_far_rows_of_a_source_beside_panes_are_bad_rows() -> None:
    left, right = two(watermark="1 minute")
    sums = uc.union(left.window(uc.Fixed("1 minute")).combine(x=uc.Sum("x")), right)
    script = [
        elements("left", {"ts": 1, "k": "a", "x": 1}, at=0),
        elements("right", {"at": 2, "k": "a", "x": 10}, {"at": 9 * 86_400 * 10**6, "k": "a", "x": 100}, at=0),
        uc.Watermark(None),
    ]
    result = sums.window(uc.Fixed("1 hour")).combine(x=uc.Sum("x")).run(script)
    assert (result["x"].to_pylist(), result.counts()["bad"]) == ([11], 1)


def test_places_of_late_rows_that_come_before_the_clock() -> None:
    schema = pa.schema({"ts": TIME, "seen": TIME})
    rows = uc.flow(schema, watermark=uc.Monotonic(), processing_time="seen")
    counts = rows.window(uc.Fixed("1 minute")).combine(n=uc.Count())
    script = [
        uc.Elements([{"ts": 0, "seen": 0}, {"ts": 600 * 10**6, "seen": 600 * 10**6}]),
        uc.Elements([{"ts": 601 * 10**6, "seen": 300 * 10**6}, {"ts": 5, "seen": 300 * 10**6}]),
    ]
    assert counts.run(script).dropped_rows == [(1, 1)]


def test_decimals_hold_the_integers_beside_them() -> None:
    seven = pa.array([Decimal(7)], pa.decimal128(38, 9))
    for kind, other, wide in [
        (pa.int64(), pa.decimal128(10, 2), pa.decimal128(22, 2)),
        (pa.decimal128(10, 2), pa.decimal128(12, 5), pa.decimal128(13, 5)),
    ]:
        flows = [uc.flow(pa.table({"ts": [0], "x": seven.cast(kept)})) for kept in (kind, other)]
        both = uc.union(*flows).select("x")
        assert both.schema.field("x").type == wide
        assert [int(x) for x in both.run()["x"].to_pylist()] == [7, 7]


EACH = uc.AfterWatermark(early=uc.AfterCount(2), late=uc.AfterCount(1))
SEEDS = seeds(16, 216)


@pytest.mark.weekly
@pytest.mark.parametrize("seed", SEEDS)
def test_random_unions_against_pandas(seed: int) -> None:
    """Rows of two or three sources, late and retracted, through one or two groupings, each source at its own pace."""
    r = random.Random(seed)
    schema = pa.schema({"ts": TIME, "k": pa.string(), "x": pa.int64()})
    flows = {}
    for name in ["a", "b", "c"][: r.choice([2, 3])]:
        flow = uc.flow(schema)
        if r.random() < 0.5:
            flow = uc.flow(schema.append(pa.field("w", pa.int64())), diff="w")
        if r.random() < 0.4:
            early = r.choice([None, uc.Repeatedly(uc.AfterCount(2)), EACH])
            lateness = r.choice(["0 seconds", "1 minute"])
            flow = flow.window(uc.Fixed("1 minute"), early, allowed_lateness=lateness).combine(by="k", x=uc.Sum("x"))
        flows[name] = flow
    early = r.choice([None, uc.Repeatedly(uc.AfterCount(1)), EACH])
    both = uc.union(**flows, side="side")
    sums = both.window(uc.Fixed("2 minutes"), early, mode="retracting").combine(by=["k", "side"], x=uc.Sum("x"))

    def expected(frames: dict[str, pd.DataFrame]) -> pd.Series:
        rows = pd.concat([frame.assign(side=name) for name, frame in frames.items()])
        start = rows.ts.dt.floor("2min").rename("window.start")
        return rows.groupby(["k", "side", start], dropna=False).x.sum(min_count=1)

    check_flow(sums, expected, examples=4, seed=seed, rows=30)


PAIRS: dict[str, Any] = {
    "union": lambda a, b: uc.union(a, b).window("10 s").combine(by="k", n=uc.Count(), total=uc.Sum("x")),
    "join": lambda a, b: a.join(b, on="k", within=("0 s", "5 s")),
    "join_asof": lambda a, b: a.join_asof(b, by="k"),
    "join_rolling": lambda a, b: a.join_rolling(b, "10 s", by="k").combine(total=uc.Sum("x")),
}


@pytest.mark.parametrize("step", PAIRS)
def test_files_tables_and_frames_meet_in_one_flow(step: str, tmp_path: Path) -> None:
    r = random.Random(step)
    tables = [
        pa.table(
            {
                "ts": pa.array([r.randrange(100) * 1_000_000 for _ in range(40)], TIME),
                "k": [r.choice("abc") for _ in range(40)],
                "x": [r.randrange(9) for _ in range(40)],
            }
        )
        for _ in range(2)
    ]
    for place, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"{place}.parquet")
    kinds: list[Any] = [lambda place: tables[place], lambda place: tables[place].to_pandas()]
    kinds += [lambda place: tables[place].to_pylist(), lambda place: str(tmp_path / f"{place}.parquet")]
    found = set()
    for one, other in product(kinds, kinds):
        rows = PAIRS[step](uc.flow(one(0)), uc.flow(other(1))).run().to_arrow()
        rows = rows.drop_columns([name for name in ("pane",) if name in rows.column_names])
        found.add(repr(sorted(map(repr, rows.to_pylist()))))
    assert len(found) == 1
