"""Joins in flows, run locally: rows and panes against pandas, watermarks of the inputs, late rows, wrong use."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from join_flows import KINDS, joined
from opened import opened
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch, UnknownColumn
from uncombine.windows.times import MAX_TIME, MIN_TIME

TIME = pa.timestamp("us", "UTC")
SECOND = 1_000_000
MINUTE = 60 * SECOND
ROWS = pa.schema({"ts": TIME, "k": pa.string(), "x": pa.int64()})
MILLIS = pa.schema({"ts": pa.timestamp("ms"), "k": pa.string(), "x": pa.int64()})
NEAR = ("0 s", "1 s")
SIDES = ("left", "right")


def source(name: str, **options: Any) -> uc.Flow:
    return opened(ROWS.append(pa.field("w", pa.int64())) if options.get("diff") else ROWS, name=name, **options)


def two(**options: Any) -> tuple[uc.Flow, uc.Flow]:
    return source("left", **options), source("right", **options)


def elements(input: str, *rows: tuple[Any, ...], at: int | None = None) -> uc.Elements:
    """Rows (time, key, value, weight), of which the weight may be left out."""
    names = ("ts", "k", "x", "w")
    return uc.Elements([dict(zip(names, row, strict=False)) for row in rows], at=at, input=input)


class Script:
    """A random script for two sources: rows in time and late, repeated and retracted, each source at its own pace."""

    def __init__(self, r: random.Random, weighted: dict[str, bool], lateness: int = 0, on_time: bool = False) -> None:
        self.r, self.weighted, self.lateness, self.on_time = r, weighted, lateness, on_time
        self.entries: list[Any] = []
        self.late: list[tuple[str, tuple[Any, ...]]] = []
        self.net: dict[str, Counter[tuple[Any, ...]]] = {name: Counter() for name in SIDES}
        self.reached = dict.fromkeys(SIDES, MIN_TIME)
        now = 0
        for _ in range(r.randrange(4, 24)):
            name = r.choice(SIDES)
            if r.random() < 0.3:
                now += r.choice([20, 60, 200]) * SECOND
                self.reached[name] = max(self.reached[name], now - r.randrange(90) * SECOND)
                self.entries.append(uc.Watermark(self.reached[name], input=name))
            else:
                self._rows(name, now)
        self.entries.append(uc.Watermark(None))

    def _rows(self, name: str, now: int) -> None:
        r, rows = self.r, []
        for _ in range(r.randrange(1, 4)):
            ts = (now + r.randrange(-120, 90) * SECOND) if not self.on_time else max(self.reached[name], 0)
            ts += r.randrange(200) * SECOND if self.on_time else 0
            row = (ts, r.choice(["p", "p", "q", None]), r.randrange(50))
            gone = Counter(row[:3] for row in rows if row[3] < 0)
            known = [row for row, n in self.net[name].items() if n > gone[row]]
            old = [row for row in known if row[0] >= max(self.reached.values())]
            if self.weighted[name] and old and r.random() < 0.4:
                rows.append((*r.choice(old), -1))
            else:
                rows.append((*row, r.choice([1, 1, 2]) if self.weighted[name] else 1))
        least = min(self.reached.values())
        for row in rows:
            if row[0] + self.lateness < least:
                self.late.append((name, row))
            else:
                self.net[name][row[:3]] += row[3]
        cut = 4 if self.weighted[name] else 3
        self.entries.append(elements(name, *(row[:cut] for row in rows)))

    def frame(self, name: str) -> pd.DataFrame:
        """The rows that were in time, with their sums."""
        rows = [(*row, n) for row, n in self.net[name].items() if n > 0]
        return pd.DataFrame(rows, columns=["t", "k", "x", "w"]).astype({"k": object, "x": object, "t": object})


def never_negative(result: uc.Result, keys: list[str]) -> None:
    """At the end of every entry no row was retracted more often than given."""
    net: Counter[str] = Counter()
    rows = result.panes.to_pylist()
    for step in sorted({row["step"] for row in rows}):
        for row in rows:
            if row["step"] == step:
                net[repr({name: row[name] for name in keys})] += row["diff"]
        assert min(net.values(), default=0) >= 0


def length(micros: int) -> str:
    return f"{micros} us"


@pytest.mark.parametrize("seed", seeds(30, 1_530))
def test_random_joins_of_rows_against_pandas(seed: int) -> None:
    r = random.Random(seed)
    how, unmatched = KINDS[seed % len(KINDS)]
    weighted = {name: r.random() < 0.5 for name in SIDES}
    low, high = sorted(r.randrange(-150, 150) * SECOND for _ in range(2))
    lateness = r.choice([0, 45 * SECOND])
    script = Script(r, weighted, lateness)
    flows = [source(name, diff="w" if weighted[name] else None) for name in SIDES]
    both = flows[0].join(flows[1], "k", how, (length(low), length(high)), unmatched, allowed_lateness=length(lateness))
    result = both.run(script.entries)
    got: Counter[tuple[Any, ...]] = Counter()
    for row in result.table().to_pylist():
        left = ("x", "ts") if how in ("semi", "anti") else ("x_left", "ts_left")
        values = [row["k"], *(row.get(name) for name in (*left, "x_right", "ts_right"))]
        got[tuple(uc.timestamp(v) if hasattr(v, "year") else v for v in values)] += row["diff"]
    assert got == joined(script.frame("left"), script.frame("right"), how, low, high, ["k"])
    assert result.dropped == len(script.late)
    late = [(one["side"], one["row"]) for one in result.left_out.to_pylist() if one["why"] == "late"]
    assert Counter((side, uc.timestamp(row["ts"]), row["k"], row["x"]) for side, row in late) == Counter(
        (name, *row[:3]) for name, row in script.late
    )
    never_negative(result, [name for name in result.panes.column_names if name not in ("diff", "step")])
    if not any(weighted.values()) and (unmatched == "final" or how in ("inner", "semi")):
        assert min(result["diff"].to_pylist(), default=1) > 0
    if seed % 3 == 0:
        counts = both.window(uc.Fixed("1 second")).combine(by="k", n=uc.Count()).run(script.entries)
        totals: Counter[tuple[Any, ...]] = Counter()
        for (k, _, left_time, _, right_time), n in got.items():
            totals[k, max(t for t in (left_time, right_time) if t is not None) // SECOND * SECOND] += n
        assert {
            (row["k"], uc.timestamp(row["window"]["start"])): row["n"] for row in counts.table().to_pylist()
        } == totals
        assert counts.counts(2)["dropped"] == 0


@pytest.mark.parametrize("seed", seeds(20, 1_020))
def test_random_joins_of_panes_against_pandas(seed: int) -> None:
    """Sums for each minute are corrected, joined by minute, and may be added up or united again: nothing is late."""
    r = random.Random(seed)
    how, unmatched = KINDS[seed % len(KINDS)]
    weighted = {name: r.random() < 0.5 for name in SIDES}
    script = Script(r, weighted, on_time=True)
    sums = []
    for name in SIDES:
        trigger = r.choice(
            [None, uc.Repeatedly(uc.AfterCount(1)), uc.AfterWatermark(early=uc.AfterCount(2), late=uc.AfterCount(1))]
        )
        lateness = r.choice(["0 s", "1 minute"])
        windows = source(name, diff="w" if weighted[name] else None).window(
            uc.Fixed("1 minute"), trigger, allowed_lateness=lateness
        )
        sums.append(windows.combine(by="k", x=uc.Sum("x")))
    both = sums[0].join(sums[1], "k", how, unmatched=unmatched)
    frames = []
    for name in SIDES:
        frame = script.frame(name)
        frame = frame.assign(start=frame.t // MINUTE * MINUTE, sum=frame.x * frame.w)
        groups = frame.groupby(["k", "start"], dropna=False)["sum"].sum().reset_index()
        frames.append(groups.assign(x=groups["sum"], t=groups.start + MINUTE - 1, w=1).astype({"k": object}))
    want = joined(*frames, how, None, None, ["k", "start"])
    if r.random() < 0.5:
        name = "x" if how in ("semi", "anti") else "x_left"
        after = both.window(uc.Fixed("3 minutes")).combine(by="k", n=uc.Count(), x=uc.Sum(name))
        if r.random() < 0.3:
            after = uc.union(both, both).window(uc.Fixed("3 minutes")).combine(by="k", n=uc.Count(), x=uc.Sum(name))
            want = Counter({row: 2 * n for row, n in want.items()})
        result = after.run(script.entries)
        totals: dict[Any, list[int]] = {}
        for (k, start, x, *_), n in want.items():
            total = totals.setdefault((k, start // (3 * MINUTE) * 3 * MINUTE), [0, 0])
            total[0] += n
            total[1] += n * (x or 0)
        rows = result.table().to_pylist()
        assert {(row["k"], uc.timestamp(row["window"]["start"])): [row["n"], row["x"] or 0] for row in rows} == totals
        assert [row["diff"] for row in rows] == [1] * len(rows)
    else:
        result = both.run(script.entries)
        got: Counter[tuple[Any, ...]] = Counter()
        for row in result.table().to_pylist():
            start = uc.timestamp(row["window"]["start"])
            xs = (row["x"], None) if how in ("semi", "anti") else (row["x_left"], row["x_right"])
            got[row["k"], start, *xs] += row["diff"]
            assert uc.timestamp(row["event_time"]) == start + MINUTE - 1
        assert got == Counter({(k, start, row[0], row[2]): n for (k, start, *row), n in want.items()})
        never_negative(result, [name for name in result.panes.column_names if name not in ("diff", "step")])
    assert result.dropped == 0


PEOPLE = [("ana", 1), ("bob", 2)]
PLACES = [("ana", 7), ("cem", 9)]


@pytest.mark.parametrize(
    ("how", "want"),
    [
        ("inner", [("ana", 1, 7)]),
        ("left", [("ana", 1, 7), ("bob", 2, None)]),
        ("right", [("ana", 1, 7), ("cem", None, 9)]),
        ("full", [("ana", 1, 7), ("bob", 2, None), ("cem", None, 9)]),
    ],
)
def test_published_joins_wait_for_both_inputs(how: str, want: list[tuple[Any, ...]]) -> None:
    """The joins of two windows that the tests of Apache Apex' merge operators describe, with rows of our own.

    The watermark is the least of both inputs, and an input that never reported holds it.
    """
    left, right = (flow.window(uc.Fixed("10 s")).combine(by="k", x=uc.Sum("x")) for flow in two())
    both = left.join(right, "k", how, unmatched="final" if how != "inner" else "at_once")
    script = [
        elements("left", *((1, name, x) for name, x in PEOPLE)),
        elements("left", *((12 * SECOND, name, 10 * x) for name, x in PEOPLE)),
        uc.Watermark(100 * SECOND, input="left"),
        elements("right", *((2, name, x) for name, x in PLACES)),
        elements("right", *((11 * SECOND, name, 10 * x) for name, x in PLACES)),
        uc.Watermark(10 * SECOND, input="right"),
        uc.Watermark(20 * SECOND, input="right"),
    ]
    rows = [(row["step"], row["k"], row["x_left"], row["x_right"]) for row in both.run(script).to_pylist()]
    first = [(5, *row) for row in want]
    second = [(6, k, *(None if x is None else 10 * x for x in xs)) for k, *xs in want]
    assert sorted(rows, key=repr) == sorted([*first, *second], key=repr)


def test_an_idle_input_does_not_hold_the_watermark() -> None:
    left, right = two(watermark=uc.PerSource("k", idle_after="1 minute"))
    both = left.join(right, "k", "anti", ("0 s", "1 s"), "final")
    script = [
        elements("right", (1, "b", 2), at=0),
        elements("left", (0, "a", 1), at=0),
        elements("left", (2 * MINUTE, "a", 5), at=MINUTE - 1),
        uc.Clock(MINUTE),
    ]
    assert [(row["x"], row["step"]) for row in both.run(script).to_pylist()] == [(1, 3)]


def test_the_output_watermark_waits_for_rows_that_may_be_corrected() -> None:
    left, right = two()
    both = left.join(right, "k", "left", ("0 s", "1 minute"))
    script = [
        elements("left", (5, "a", 1)),
        uc.Watermark(30 * SECOND),
        elements("right", (40 * SECOND, "a", 2)),
        uc.Watermark(2 * MINUTE),
    ]
    result = both.run(script)
    assert result.output_watermarks == [MIN_TIME, 5, 5, 2 * MINUTE]
    assert [(row["x_right"], row["diff"], row["step"]) for row in result.to_pylist()] == [
        (None, 1, 0),
        (None, -1, 2),
        (2, 1, 2),
    ]


def test_a_late_row_that_the_join_takes_is_not_late_for_the_next_step() -> None:
    left, right = two()
    pairs = left.join(right, "k", within=NEAR, allowed_lateness="1 minute")
    script = [
        elements("left", (10 * SECOND, "a", 1)),
        uc.Watermark(40 * SECOND),
        elements("right", (10 * SECOND, "a", 2)),
        uc.Watermark(None),
    ]
    result = pairs.window(uc.Fixed("1 s")).combine(n=uc.Count()).run(script)
    assert (result["n"].to_pylist(), result.dropped) == ([1], 0)


def test_both_sides_of_one_source() -> None:
    """A source that is joined with itself is read by one name."""
    rows = source("left")
    both = rows.where(uc.col("x") > 5).join(rows.where(uc.col("x") <= 5), "k", within=("-1 s", "1 s"))
    script = [elements("left", (0, "a", 9), (1, "a", 1), (2, "b", 7)), uc.Watermark(None)]
    assert [(row["x_left"], row["x_right"]) for row in both.run(script).to_pylist()] == [(9, 1)]


def test_sources_without_names_are_left_and_right() -> None:
    left, right = (uc.flow(ROWS) for _ in range(2))
    both = left.join(right, {"k": "k"}, within=NEAR).where(uc.col("x_left") > 0)
    script = [elements("right", (0, "a", 2)), elements("left", (0, "a", 1)), uc.Watermark(MAX_TIME)]
    assert [row["x_right"] for row in both.run(script).to_pylist()] == [2]
    assert "inner join on k within ('0 seconds', '1 second')" in both.explain()


def test_a_column_of_the_user_named_pane_stays() -> None:
    flows = [uc.flow(pa.table({"ts": [0], "k": ["a"], "pane": [7]})) for _ in range(2)]
    assert flows[0].join(flows[1], "k", within=("0 s", "0 s")).run()["pane_left"].to_pylist() == [7]


def test_far_rows_are_bad_rows() -> None:
    left, right = two(watermark="1 minute")
    both = left.join(right, "k", within=("0 s", "1 hour"))
    day = 86_400 * SECOND
    script = [
        elements("left", (0, "a", 1), (2 * day, "a", 2), at=0),
        elements("right", (1, "a", 3), at=0),
        uc.Watermark(None),
    ]
    result = both.run(script)
    assert [(row["x_left"], row["x_right"]) for row in result.to_pylist()] == [(1, 3)]
    assert result.counts()["bad"] == 1


def windowed(flow: uc.Flow, size: str) -> uc.Flow:
    return flow.window(uc.Fixed(size)).combine(by="k", x=uc.Sum("x"))


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda a, b: a.join(7, "k"), InvalidArgument, "join.. takes a flow, not a int"),
        (lambda a, b: a.join(b.window(uc.Global()), "k"), InvalidArgument, "add .combine"),
        (lambda a, b: a.join(b, "z", within=NEAR), UnknownColumn, "on= of the left input"),
        (lambda a, b: a.join(b, {"k": "x"}, within=NEAR), TypeMismatch, "cast one of them"),
        (lambda a, b: a.join(b, "k", "outer", NEAR), InvalidArgument, "how= is 'outer'"),
        (lambda a, b: a.join(b, "k", "left", NEAR, "never"), InvalidArgument, "unmatched= is 'never'"),
        (lambda a, b: a.join(b, "k", within=NEAR, unmatched="final"), InvalidArgument, "emits none"),
        (lambda a, b: a.join(b, "k"), InvalidArgument, "has no column 'window': give within="),
        (lambda a, b: windowed(a, "1 minute").join(b, "k"), InvalidArgument, "the right input has no column 'window'"),
        (
            lambda a, b: windowed(a, "1 minute").join(windowed(b, "2 minutes"), "k"),
            InvalidArgument,
            "its inputs have Fixed.'1 minute'. and Fixed.'2 minutes'.: give within=",
        ),
        (
            lambda a, b: a.window(uc.Global()).combine(by="k", x=uc.Max("x")).join(windowed(b, "1 minute"), "k"),
            InvalidArgument,
            "the left input is grouped by Global",
        ),
        (
            lambda a, b: a.join(uc.flow(ROWS.set(0, pa.field("ts", pa.timestamp("ms")))), "k", "inner", ("0 s",) * 2),
            TypeMismatch,
            "the left time 'ts' is timestamp.us, tz=UTC. and the right time 'ts' is timestamp.ms.: cast one of them",
        ),
        (
            lambda a, b: a.join(b.with_columns(x_left=uc.col("x")), "k", within=NEAR),
            InvalidArgument,
            "give other suffixes=",
        ),
        (lambda a, b: a.join(b, "k", within=NEAR, suffixes=("", "")), InvalidArgument, "two different texts"),
        (
            lambda a, b: windowed(a, "1 minute").join(windowed(b, "1 minute"), ["k", "window"]),
            InvalidArgument,
            "on= names 'window', but without within= only rows of one window match: leave it out",
        ),
        (
            lambda a, b: windowed(a, "1 minute").join(windowed(b, "1 minute"), ["k", "event_time"]),
            InvalidArgument,
            "on= names 'event_time', which every result has too: leave it out",
        ),
        (lambda a, b: a.join(b.select("k", "x"), "k", within=NEAR), InvalidArgument, "of the right flow"),
        (lambda a, b: a.join(b, "k", within=NEAR, late="drop"), InvalidArgument, r"has no late=: .* in flow.left_out"),
        (lambda a, b: a.join(b, "k", withing=NEAR), InvalidArgument, "join.. has no option 'withing': did you mean"),
        (
            lambda a, b: a.select("k", "x").distinct("k", within="1 s"),
            InvalidArgument,
            "the event time column 'ts' of the flow before stage 1 was left out: keep it in select()",
        ),
        (
            lambda a, b: a.join(b, "k", "left", NEAR).where(uc.col("diff") > 0).join(b, "k", within=("0 s",) * 2),
            InvalidArgument,
            "where.. on 'diff'",
        ),
        (
            lambda a, b: windowed(a, "1 minute").join(
                b.window(uc.Fixed("1 minute"), allowed_lateness="1 hour").combine(by="k", x=uc.Sum("x")),
                "k",
                allowed_lateness="1 s",
            ),
            InvalidArgument,
            "allowed_lateness='1 second' of the join is less than the '1 hour'",
        ),
        (
            lambda a, b: a.join(uc.flow(ROWS, processing_time="ts"), "k", within=NEAR),
            InvalidArgument,
            "processing_time= is given in one flow of the join",
        ),
    ],
)
def test_wrong_use_is_refused(make: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as told:
        make(*two())
    assert "\n" not in str(told.value)


def test_explain_counts_the_stages_through_unions_and_joins() -> None:
    left, right = two()
    sums = [windowed(uc.union(left, source("third")), "1 minute"), windowed(right, "1 minute")]
    text = windowed(sums[0].join(sums[1], "k").with_columns(x=uc.col("x_left")), "1 hour").explain()
    assert [int(line.split("stage ")[1][0]) for line in text.splitlines() if "stage " in line] == [3, 1, 2, 4]


def test_a_watermark_of_each_batch_is_refused() -> None:
    left, right = two(watermark="each_batch")
    with pytest.raises(InvalidArgument, match="a join needs a watermark of its rows"):
        left.join(right, "k", within=NEAR)


def test_panes_that_are_differences_are_not_joined() -> None:
    """A join would match each difference as a row, and the result would never have the whole."""
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "x": pa.int64()})
    rows = uc.flow(schema)

    def sums(mode: str) -> uc.Flow:
        late = uc.AfterWatermark(late=uc.AfterCount(1))
        return rows.window(uc.Fixed("10 s"), late, mode=mode, allowed_lateness="1 hour").combine(by="k", x=uc.Sum("x"))

    whole = sums("retracting")
    parts = uc.union(sums("discarding"), whole)
    for one, other in ((sums("discarding"), whole), (whole, parts), (whole, uc.union(uc.union(parts, whole), whole))):
        with pytest.raises(InvalidArgument, match="mode='discarding' can show a window in several panes"):
            one.join(other, on="k")
    once = rows.window(uc.Fixed("10 s"), mode="discarding").combine(by="k", x=uc.Sum("x"))
    assert "x_right" in once.join(rows.window(uc.Fixed("10 s")).combine(by="k", x=uc.Sum("x")), on="k").schema.names


@pytest.mark.parametrize(("how", "rows"), [("semi", 1), ("anti", 0)])
def test_weights_of_matches_may_sum_to_more_than_64_bits(how: str, rows: int) -> None:
    columns = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "x": pa.int64(), "w": pa.int64()})
    one, other = (uc.flow(columns, name=name, diff="w") for name in "ab")
    script = [
        uc.Elements([{"ts": 1, "k": "p", "x": 1, "w": 1}], input="a"),
        uc.Elements([{"ts": 1, "k": "p", "x": x, "w": 2**62} for x in (1, 2)], input="b"),
        uc.Watermark(None),
    ]
    for unmatched in ["at_once"] if how == "semi" else ["at_once", "final"]:
        joined = one.join(other, "k", how, within=("0 s", "1 s"), unmatched=unmatched)
        assert joined.run(script).table().num_rows == rows
