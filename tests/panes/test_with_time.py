"""Event times that a flow computes: the rows that move, the watermark that waits for them, and what is refused."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch, UnknownColumn

CLOCK = pa.timestamp("us", "UTC")
SCHEMA = pa.schema({"ts": CLOCK, "begun": CLOCK, "x": pa.int64()})


def noon(seconds: float) -> pd.Timestamp:
    return pd.Timestamp("2016-01-20T12:00:00Z") + pd.Timedelta(seconds=seconds)


def row(seconds: float, begun: float | None, x: int = 1) -> dict[str, Any]:
    return {"ts": noon(seconds), "begun": None if begun is None else noon(begun), "x": x}


def shown(panes: Any) -> list[tuple[int, float, int]]:
    """The step, the start of the window and the sum of each pane."""
    rows = panes.to_pylist()
    return [(r["step"], (pd.Timestamp(r["window"]["start"]) - noon(0)).total_seconds(), r["x"]) for r in rows]


def test_rows_move_and_the_watermark_waits_for_them() -> None:
    source = uc.flow(SCHEMA)
    flow = source.with_time(uc.col("begun"), at_most_back="30 seconds").window(uc.Fixed("1 minute"))
    script = [
        uc.Elements([row(70, 59), row(61, 80)], at=noon(100)),
        uc.Watermark(noon(60), at=noon(101)),  # a row of 12:01:00 may still go back to 12:00:30
        uc.Elements([row(75, 45, 5), row(95, 50, 100), row(80, None, 100)], at=noon(102)),
        uc.Watermark(noon(90), at=noon(103)),
    ]
    result = flow.combine(x=uc.Sum("x")).run(script)
    assert shown(result) == [(3, 0, 6)]
    assert result.counts() == {"dropped": 0, "finished": 0, "unassigned": 0, "bad": 2, "unreadable": 0, "held": 1}
    assert [row["pane"]["watermark"] for row in result.to_pylist()] == [noon(60)]


def test_times_move_between_groupings() -> None:
    """The panes of each minute are counted a quarter of an hour before."""
    source = uc.flow(SCHEMA)
    minutes = source.window(uc.Fixed("1 minute"), allowed_lateness="1 hour").combine(x=uc.Sum("x"))
    moved = minutes.with_time(uc.col("event_time") - pd.Timedelta(minutes=15), "15 minutes")
    flow = moved.window(uc.Fixed("10 minutes"), allowed_lateness="1 hour").combine(x=uc.Sum("x"))
    script = [
        uc.Elements([row(0, 0), row(60, 0, 5)], at=noon(60)),
        uc.Watermark(noon(299), at=noon(901)),  # 15 minutes less is before the end of the window
        uc.Elements([row(1, 0, 100)], at=noon(902)),
        uc.Watermark(noon(1_800), at=noon(1_801)),
    ]
    result = flow.run(script)
    assert [(r["x"], r["diff"]) for r in result.to_pylist()] == [(106, 1)]
    assert shown(result)[0][1] == -1_200
    assert result.counts(stage=2)["dropped"] == 0


def test_the_bounds_of_two_steps_add_up() -> None:
    source = uc.flow(SCHEMA)
    once = source.with_time(uc.col("ts") - pd.Timedelta(seconds=10), "10 seconds")
    twice = once.with_time(lambda table: table["begun"], "20 seconds").window(uc.Fixed("1 minute"))
    flow = twice.combine(x=uc.Sum("x"))
    script = [
        uc.Elements([row(61, 40)], at=noon(61)),
        uc.Watermark(noon(89), at=noon(62)),
        uc.Elements([row(89, 59, 5)], at=noon(63)),
        uc.Watermark(noon(90), at=noon(64)),
    ]
    assert shown(flow.run(script)) == [(3, 0, 6)]


def test_a_union_waits_for_the_flow_that_goes_back() -> None:
    plain, back = uc.flow(SCHEMA, name="plain"), uc.flow(SCHEMA, name="back")
    both = uc.union(plain, back.with_time(uc.col("begun"), "1 minute"))
    flow = both.window(uc.Fixed("1 minute")).combine(x=uc.Sum("x"))
    script = [
        uc.Watermark(noon(600), at=noon(1), input="plain"),
        uc.Watermark(noon(100), at=noon(2), input="back"),
        uc.Elements([row(100, 41, 7)], at=noon(3), input="back"),
        uc.Watermark(noon(120), at=noon(4), input="back"),
    ]
    assert shown(flow.run(script)) == [(3, 0, 7)]


def test_dates_and_local_times_are_times_of_utc() -> None:
    day = pa.table({"ts": [noon(0)], "day": pa.array([16_820], pa.date32())})
    for kind in (pa.date32(), pa.timestamp("s"), pa.timestamp("ns", "Asia/Tokyo")):
        flow = uc.flow(day).with_time(uc.col("day").cast(kind), "1 day").window(uc.Fixed("1 day"))
        (pane,) = flow.combine(n=uc.Count()).run().to_pylist()
        assert pane["window"]["start"] == pd.Timestamp("2016-01-20T00:00:00Z")


def test_a_function_may_give_lists_and_pandas() -> None:
    def n(function: Any) -> tuple[int, int]:
        flow = uc.flow(SCHEMA).with_time(function, "5 s").window(uc.Fixed("1 day")).combine(n=uc.Count())
        result = flow.run([uc.Elements([row(20, 15), row(20, None)]), uc.Watermark(None)])
        return result["n"].to_pylist()[0], result.counts()["bad"]

    assert n(lambda table: table["begun"].to_pylist()) == (1, 1)
    assert n(lambda table: table["begun"].to_pandas()) == (1, 1)
    assert n(lambda table: pd.DatetimeIndex(table["begun"].to_pandas())) == (1, 1)


def test_wrong_use_is_refused() -> None:
    source = uc.flow(SCHEMA)
    with pytest.raises(TypeMismatch, match="a time for each row, but was given int64: cast it"):
        source.with_time(uc.col("x"))
    with pytest.raises(UnknownColumn, match="begin"):
        source.with_time(uc.col("begin"))
    with pytest.raises(InvalidArgument, match="at_most_back= is a length of time that is not negative"):
        source.with_time(uc.col("begun"), "-5 minutes")
    with pytest.raises(UnknownColumn, match=r"with_time\(\) needs column 'ts'"):
        source.select("begun", "x").with_time(uc.col("begun"))
    with pytest.raises(InvalidArgument, match=r"with_time\(\) takes an expression of uc.col or a function"):
        source.with_time("begun")  # type: ignore[arg-type]
