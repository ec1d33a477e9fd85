"""Flows in runs of this process: times of rows, functions of tables, ends of sources, and what is refused."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, NoSuchStep, TypeMismatch

MICROS = pa.timestamp("us", "UTC")
COLUMNS = pa.schema({"ts": MICROS, "pt": MICROS, "a": pa.int64(), "b": pa.int64()})


def _numbers(rows: pa.Table) -> list[str]:
    return [field.name for field in rows.schema if pa.types.is_int64(field.type)]


def _sums(rows: pa.Table) -> np.ndarray:
    """The sum of all whole numbers of each row, whatever columns there are."""
    return np.sum([rows[name].to_numpy() for name in _numbers(rows)], axis=0)


@pytest.mark.parametrize("processing_time", [None, "pt"])
def test_functions_of_a_table_see_its_own_columns_alone(processing_time: str | None) -> None:
    flow = uc.flow(COLUMNS, processing_time=processing_time)
    flow = flow.where(lambda rows: _sums(rows) == 3).with_columns(s=_sums)
    flow = flow.map(lambda rows: rows.append_column("t", pa.array(_sums(rows))))
    totals = flow.window(uc.Fixed("1 minute")).combine(s=uc.Sum("s"), t=uc.Sum("t"))
    rows = [{"ts": 5, "pt": 100, "a": 1, "b": 2}, {"ts": 5, "pt": 101, "a": 2, "b": 2}]
    result = totals.run([uc.Elements(rows), uc.Watermark(None)])
    assert result.select(["s", "t"]).to_pylist() == [{"s": 3, "t": 6}]


def test_a_map_may_follow_a_step_that_leaves_no_row() -> None:
    flow = uc.flow(COLUMNS, processing_time="pt").where(uc.col("a") > 5)
    flow = flow.map(lambda rows: rows.append_column("z", rows["a"])).select("ts", "z")
    totals = flow.window(uc.Fixed("1 minute")).combine(z=uc.Sum("z"))
    script = [uc.Elements([{"ts": 5, "pt": 100, "a": a}]) for a in (1, 7)]
    assert totals.run([*script, uc.Watermark(None)])["z"].to_pylist() == [7]


@pytest.mark.weekly
@pytest.mark.parametrize("values", [["b", "a", None], [b"b", b"a", None], [3, 1, None], [dt.date(2024, 2, 29), None]])
@pytest.mark.parametrize("step", ["map", "remember", "flat_map"])
def test_a_function_may_give_a_category(step: str, values: list[Any]) -> None:
    """A category of no rows has no type, so its column keeps the one that it had."""

    def coded(rows: pa.Table) -> pd.DataFrame:
        frame = rows.to_pandas(date_as_object=True)
        frame["v"] = pd.Categorical(frame["v"].astype(object))
        return frame.assign(row=range(len(frame))) if step == "flat_map" else frame

    rows = pa.table({"ts": pa.array(range(len(values)), MICROS), "v": pa.array(values)})
    for given in (rows, rows.set_column(1, "v", rows["v"].dictionary_encode())):
        flow = uc.flow(given)
        made = flow.map(coded, remember=step == "remember") if step != "flat_map" else flow.flat_map(coded)
        found = made.in_order().window(uc.Global()).combine(by="v", n=uc.Count()).run()
        assert dict(zip(found["v"].to_pylist(), found["n"].to_pylist(), strict=True)) == dict.fromkeys(values, 1)


def test_values_in_a_column_without_a_type_are_refused() -> None:
    def coded(rows: pa.Table) -> Any:
        return pd.Categorical(rows["v"].to_pandas().astype(object))

    rows = pa.table({"ts": pa.array([0, 1], MICROS), "v": ["a", "b"], "none": pa.nulls(2)})
    flow = uc.flow(rows)
    with pytest.raises(TypeMismatch, match=r"with_columns.*gave column 'c' without a type"):
        flow.with_columns(c=lambda rows: pa.array(coded(rows)))
    filled = flow.map(lambda rows: rows.set_column(2, "none", rows["v"] if rows.num_rows else pa.nulls(0)))
    with pytest.raises(TypeMismatch, match="gave column 'none' as string, but as null for a table without rows"):
        filled.in_order().run()


def test_reports_of_an_entry_come_after_its_rows_at_their_own_processing_times() -> None:
    counts = uc.flow(COLUMNS, processing_time="pt").window(uc.Fixed("1 minute")).combine(n=uc.Count())
    end = uc.Watermark(60_000_000)
    for times in ([100], [300, 100, 200], [None, 100], [None]):
        rows = [{"ts": 5, "pt": pt, "a": 1, "b": 2} for pt in times]
        result = counts.run([uc.Elements(rows, watermarks=[end])])
        assert (result["n"].to_pylist(), result.dropped) == ([len(times)], 0)


@pytest.mark.parametrize("strategy", [uc.PerSource("d"), uc.Punctuated("mark", source="d"), uc.BoundedLag("1 day")])
def test_the_end_of_time_is_the_end_of_every_source(strategy: Any) -> None:
    times = [5_000_000, 65_000_000]
    rows = pa.table({"ts": pa.array(times, MICROS), "mark": pa.array(times, MICROS), "d": ["a", "b"]})
    counts = uc.flow(rows, watermark=strategy).window(uc.Fixed("1 minute")).combine(n=uc.Count())
    assert counts.run()["n"].to_pylist() == [1, 1]
    assert counts.run([uc.Elements(rows, watermarks=[uc.Watermark(None)])])["n"].to_pylist() == [1, 1]
    of_one = counts.run([uc.Elements(rows), uc.Watermark(None, source="a")])
    assert of_one.num_rows == (0 if isinstance(strategy, uc.BoundedLag) else 1)


def test_rows_take_the_time_of_a_clock_that_has_started() -> None:
    source = uc.flow(pa.schema({"k": pa.string()}), watermark=uc.IngressTime())
    counts = source.window(uc.Fixed("1 minute")).combine(n=uc.Count())
    rows = uc.Elements([{"k": "a"}])
    result = counts.run([uc.Clock(30_000_000), rows, uc.Elements([]), rows, uc.Watermark(None)])
    assert [(row["n"], row["event_time"].minute) for row in result] == [(2, 0)]
    with pytest.raises(InvalidArgument, match=r"entry 0 .* before the clock has started"):
        counts.run([rows])


def test_what_a_run_cannot_take_is_refused() -> None:
    counts = uc.flow(COLUMNS).window(uc.Fixed("1 minute")).combine(n=uc.Count())
    refused: list[tuple[Any, uc.Flow, str]] = [
        (uc.Elements([]), counts, "a script must be a list"),
        (counts, counts, "a script must be a list"),
        ([], counts.with_columns(step=uc.col("n")), "'step'"),
        ([], uc.flow(COLUMNS.append(pa.field("step", pa.int64()))), "'step'"),
        (None, counts, "needs a script, since a source of the flow has columns and no rows"),
    ]
    for script, flow, text in refused:
        with pytest.raises(InvalidArgument, match=text):
            flow.run(script)


POINT = pa.struct({"a": pa.float64()})
SAME = [
    (pa.float16(), [np.float16(1), np.float16(1)]),
    (pa.list_(pa.float64()), [[0.0, float("nan")], [-0.0, float("nan")]]),
    (pa.list_(POINT), [[{"a": 0.0}], [{"a": -0.0}]]),
    (pa.struct({"l": pa.list_(POINT)}), [{"l": [{"a": -0.0}]}, {"l": [{"a": 0.0}]}]),
    (pa.map_(pa.string(), pa.float64()), [[("a", 0.0)], [("a", -0.0)]]),
]


@pytest.mark.parametrize(
    ("kind", "values"), SAME, ids=lambda value: str(value) if isinstance(value, pa.DataType) else ""
)
def test_netting_takes_equal_values_of_any_type_as_one(kind: pa.DataType, values: list[Any]) -> None:
    columns = {"ts": pa.array([1, 1], MICROS), "v": pa.array(values, kind)}
    for diff, left in (([1, -1], []), ([1, 1], [2])):
        flow = uc.flow(pa.table({**columns, "diff": pa.array(diff, pa.int64())}))
        assert flow.run().table()["diff"].to_pylist() == left


def test_netting_of_rows_that_have_no_other_column() -> None:
    flow = uc.flow(pa.schema({"ts": MICROS, "diff": pa.int64(), "pane": pa.int64()}))
    script = [uc.Elements([{"ts": 1, "diff": diff, "pane": 7}]) for diff in (1, 1, -1)]
    assert flow.select("diff").run(script).table().to_pylist() == [{"diff": 1}]
    assert flow.select("diff").run([]).table().num_rows == 0
    assert flow.select("pane", "diff").run(script).table().to_pylist() == [{"pane": 7, "diff": 1}]
    with pytest.raises(InvalidArgument, match="'diff' has 1 nulls"):
        flow.run([uc.Elements([{"ts": 1}])]).table()


def test_entries_that_can_be_read_only_once_are_refused() -> None:
    counts = uc.flow(COLUMNS).window(uc.Fixed("1 minute")).combine(n=uc.Count())
    end: Any = uc.Watermark(None)
    rows: list[Any] = [({"ts": 0} for _ in range(3)), None]
    for given in rows:
        with pytest.raises(InvalidArgument, match=r"rows of entry 0 .* list of dicts"):
            counts.run([uc.Elements(given), end])
    reports: list[Any] = [(report for report in [end]), end]
    for given in reports:
        with pytest.raises(InvalidArgument, match=r"watermarks= of entry 0 .* list of Watermark"):
            counts.run([uc.Elements([{"ts": 0}], watermarks=given)])
    with pytest.raises(TypeMismatch, match="column 'a' of entry 0"):
        counts.run([uc.Elements([{"ts": 0, "a": 2**70}])])


def test_the_name_of_the_column_that_carries_processing_times_is_refused() -> None:
    name = "uncombine_at"
    with pytest.raises(InvalidArgument, match=f"in column '{name}'"):
        uc.flow(COLUMNS.append(pa.field(name, pa.int64())))
    with pytest.raises(InvalidArgument, match=f"in column '{name}'"):
        uc.flow(COLUMNS, processing_time="pt").with_columns(**{name: uc.col("a")})


@pytest.mark.parametrize("seed", seeds(24))
def test_rows_with_times_of_their_own_play_as_entries_of_these_times(seed: int) -> None:
    rng = random.Random(seed)
    minute = 60_000_000
    strategy = rng.choice([None, uc.BoundedLag("1 minute"), uc.PerSource("a", "30 seconds", idle_after="2 minutes")])
    early = rng.choice([uc.AfterCount(2), uc.AtPeriod("1 minute"), uc.AfterDelay("40 seconds")])
    trigger = uc.AfterWatermark(early=early, late=uc.AfterCount(1))
    together: list[Any] = []
    apart: list[Any] = []
    now = 10 * minute
    for _ in range(4):
        rows = [
            {"ts": now + rng.randint(-5 * minute, minute), "pt": now + rng.randint(0, 9) * 10_000_000, "a": a, "b": 1}
            for a in rng.choices(range(3), k=rng.randint(1, 5))
        ]
        report = uc.Watermark(now - rng.randint(0, 3) * minute, source=None if strategy is None else "0")
        together.append(uc.Elements(rows, watermarks=[report]))
        times = sorted({row["pt"] for row in rows})
        for time in times:
            here = [row for row in rows if row["pt"] == time]
            apart.append(uc.Elements(here, at=time, watermarks=[report] if time == times[-1] else []))
        now = times[-1] + minute
    found = []
    for script, processing_time in ((together, "pt"), (apart, None)):
        flow = uc.flow(COLUMNS, watermark=strategy, processing_time=processing_time)
        flow = flow.with_columns(s=_sums).where(uc.col("b") > 0)
        flow = flow.window(uc.Fixed("1 minute"), trigger, allowed_lateness="1 minute").combine(by="a", s=uc.Sum("s"))
        result = flow.run(script)
        found.append((result.panes.drop_columns(["step"]).to_pylist(), result.counts()))
    assert found[0][0]
    assert found[0] == found[1]


def test_a_timer_that_runs_from_before_the_clock_shows_no_time() -> None:
    trigger = uc.AfterWatermark(early=uc.AtPeriod("1 minute"))
    script = [uc.Elements([{"ts": 0, "x": 1}]), uc.Clock(300_000_000)]
    (pane,) = uc.flow(script).window(uc.Fixed("1 minute"), trigger).combine(n=uc.Count()).run()["pane"].to_pylist()
    assert (pane["timing"], pane["processing_time"], pane["watermark"]) == ("EARLY", None, None)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            lambda flow, script: flow.run(script[0].rows),
            "is a Table: write [uc.Elements(rows), uc.Watermark(",
        ),
        (lambda flow, script: flow.run([{"ts": 0}]), "but is {'ts': 0}: write [uc.Elements(rows), uc.Water"),
        (lambda flow, script: uc.plot.panes(script, flow.run(script)), "a Result: give it after the result"),
        (lambda flow, script: flow.run(script).df, "has no df: write result.to_pandas(flat=True)"),
        (lambda flow, script: flow.run(script).plot(), "has no plot: write uc.plot.panes(result, script)"),
        (lambda flow, script: flow.where(uc.col("n") == None), "because nothing equals null: write x.is_null()"),  # noqa: E711
        (lambda flow, script: flow.where(~(uc.col("n") != None)), "write x.is_null()"),  # noqa: E711
        (lambda flow, script: flow.where("n > 1"), "but was given str: write uc.col('x') > 0, or filter a DataFrame"),
        (lambda flow, script: flow.with_columns(y=5), "or uc.coalesce(5) for the same value in each row"),
        (lambda flow, script: flow.with_columns("y", uc.col("n")), "takes columns by name, but was given 'y': write n"),
        (lambda flow, script: flow.window(uc.Global()).combine("n", {"m": uc.Count()}), "a dict: write **combiners"),
    ],
)
def test_arguments_in_another_order_say_what_to_write(wrong: Callable[[uc.Flow, Any], Any], says: str) -> None:
    table = pa.table({"ts": ["2024-05-01T12:00:05Z"], "x": [1]})
    flow = uc.flow(table).window(uc.Fixed("1 minute")).combine(n=uc.Count())
    with pytest.raises((InvalidArgument, NoSuchStep)) as refused:
        wrong(flow, [uc.Elements(table), uc.Watermark(None)])
    assert says in str(refused.value)
