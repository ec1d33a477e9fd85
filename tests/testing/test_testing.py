"""The law kit of flows: right flows pass, planted faults are found, made small, and shown as a test that fails."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted.flows import (
    MINUTE,
    ROWS,
    SIGNED,
    TIME,
    Frame,
    both,
    by_two_steps,
    doubled,
    first_rows,
    first_to_come,
    hops,
    joined,
    looking_back,
    minutes,
    pairs,
    plain,
    rolled,
    seen,
    seen_by_left,
    sessions,
    signed,
    sizes,
    starts,
    sums,
    ticks,
    united,
)
from planted.wrong_flows import RIGHT_FLOWS, WRONG_FLOWS, forgets
from seeds import share

import uncombine as uc
from uncombine.errors import FlowViolation, InvalidArgument
from uncombine.testing import assert_rows, changelogs, check_flow, check_script, scripts
from uncombine.testing.row_values import literal

RIGHT: dict[str, tuple[uc.Flow, Callable[..., Any]]] = {
    "grouping": (sums(plain()), minutes),
    "lateness": (sums(plain(), allowed_lateness="1 minute"), minutes),
    "strategy": (sums(plain(watermark=uc.PerSource("k", "20 seconds", "1 minute"), max_future=None)), minutes),
    "changelog": (sums(signed()), minutes),
    "sessions": (sums(signed(), uc.Sessions("30 seconds")), sessions),
    "sliding": (sums(plain(), uc.Sliding("1 minute", "30 seconds"), by=()), hops),
    "two groupings": (by_two_steps(), sizes),
    "union": (both(), united),
    "join": (joined("inner"), pairs),
    "left join": (joined("left"), lambda frames: pairs(frames, "left")),
    "rolling": (rolled(allowed_lateness="1 minute"), seen),
    "rolling, without weights": (rolled(source=plain(watermark="20 seconds")), seen),
    "rolling, emitted when final": (rolled(emit="final"), seen),
    "rolling join": (looking_back(), seen_by_left),
    "ticks": (rolled(every="30 seconds", allowed_lateness="1 minute"), ticks),
    "distinct": (signed().distinct("k", within="1 hour").select("k", "ts", "diff"), first_rows),
    "distinct, without weights": (plain().distinct("k", within="1 hour"), first_to_come),
    "in order": (signed().in_order(), lambda rows: rows),
    "map": (sums(plain().map(doubled)), lambda rows: minutes(rows.assign(x=rows.x * 2))),
    "map that remembers": (
        signed().map(doubled, remember=True),
        lambda rows: rows.assign(x=rows.x * 2),
    ),
    "filter": (plain().where(uc.col("x") > 4), lambda rows: rows[rows.x > 4]),
    "with time": (
        sums(plain().with_time(uc.col("ts") - pd.Timedelta("90s"), "90 seconds")),
        lambda rows: minutes(rows.assign(ts=rows.ts - pd.Timedelta("90s"))),
    ),
}

EXPIRING = {"sessions"}
"""Flows in which a late row that is in time does not meet a session that has expired."""


@pytest.mark.parametrize("name", share(RIGHT))
def test_right_flows_pass(name: str) -> None:
    flow, expected = RIGHT[name]
    check_flow(flow, expected, examples=8, late=name not in EXPIRING)


@pytest.mark.soak
@pytest.mark.parametrize("name", RIGHT)
def test_right_flows_pass_many_scripts(name: str) -> None:
    flow, expected = RIGHT[name]
    check_flow(flow, expected, examples=300, seed=7, late=name not in EXPIRING)


def unsigned(table: pa.Table) -> pa.Table:
    """Retractions that count as rows."""
    return table.set_column(3, "w", pa.array([abs(w) for w in table["w"].to_pylist()], pa.int64()))


def newest(table: pa.Table) -> Any:
    """Leaves out the rows of a bundle that come after a later one, as a step does that takes order for granted."""
    times = [pd.Timestamp.min.tz_localize("UTC") if time is None else time for time in table["ts"].to_pylist()]
    return [all(time >= other for other in times[:i]) for i, time in enumerate(times)]


def shifted() -> uc.Flow:
    return sums(plain(), uc.Fixed("1 minute", offset="20 seconds"))


WRONG: dict[str, tuple[Callable[[], uc.Flow], Callable[..., Any], int]] = {
    "rows are counted twice": (lambda: sums(plain().map(lambda table: pa.concat_tables([table] * 2))), minutes, 1),
    "one source is read twice": (
        lambda: sums(uc.union(left=signed(), right=(other := plain()), again=other, side="side"), by="side"),
        united,
        1,
    ),
    "retractions are ignored": (lambda: sums(signed().map(unsigned)), minutes, 2),
    "windows begin elsewhere": (shifted, minutes, 1),
    "windows are too long": (lambda: sums(plain(), uc.Fixed("2 minutes")), minutes, 1),
    "late rows of a bundle are lost": (lambda: sums(plain().where(newest)), minutes, 2),
    "sessions have another gap": (lambda: sums(signed(), uc.Sessions("40 seconds")), sessions, 2),
    "two groupings count panes": (
        by_two_steps,
        lambda rows: minutes(rows).reset_index().groupby(["n", "window.start"]).agg(keys=("n", "sum")),
        2,
    ),
    "first rows are the last": (
        lambda: signed().distinct("k", within="1 hour").select("k", "ts", "diff"),
        lambda rows: first_rows(rows).groupby("k", dropna=False).agg(ts=("ts", "max")).reset_index(),
        2,
    ),
    "rows without a match are not retracted": (
        lambda: joined("left").where(lambda table: [diff > 0 for diff in table["diff"].to_pylist()]),
        lambda frames: pairs(frames, "left"),
        3,
    ),
    "rows are missing": (lambda: plain().in_order().where(uc.col("x") != 3), lambda rows: rows, 1),
    "times are moved too far": (
        lambda: sums(plain().with_time(uc.col("ts") - pd.Timedelta("91s"), "2 minutes")),
        lambda rows: minutes(rows.assign(ts=rows.ts - pd.Timedelta("90s"))),
        1,
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("name", WRONG)
def test_planted_faults_are_found_and_made_small(name: str) -> None:
    make, expected, most = WRONG[name]
    flow = make()
    with pytest.raises(FlowViolation, match="the flow leaves other rows than expected") as found:
        check_flow(flow, expected, examples=200)
    violation = found.value
    rows = [row for entry in violation.script if isinstance(entry, uc.Elements) for row in entry.rows]
    assert len(rows) <= most
    assert violation.test in str(violation)
    test = pasted(violation.test, flow)
    with pytest.raises(FlowViolation, match="the flow leaves other rows than expected"):
        test()


@pytest.mark.full
@pytest.mark.parametrize("examples", [12, pytest.param(100, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", RIGHT_FLOWS)
def test_the_right_flows_of_planted_faults_pass(name: str, examples: int) -> None:
    flow, expected, options = RIGHT_FLOWS[name]
    check_flow(flow, expected, examples=examples, **options)


@pytest.mark.full
@pytest.mark.parametrize("name", WRONG_FLOWS)
def test_a_planted_fault_is_found_with_the_default_number_of_scripts(name: str) -> None:
    right, flow = WRONG_FLOWS[name]
    _, expected, options = RIGHT_FLOWS[right]
    with pytest.raises(FlowViolation, match="the flow leaves other rows than expected"):
        check_flow(flow, expected, **options)


def lossy(trigger: uc.Trigger | None = None) -> tuple[uc.Flow, Callable[..., Any]]:
    """A flow that leaves out rows of a key as bad, and rows of a window whose trigger has finished."""
    flow = plain().map(forgets("k", "a")).window(MINUTE, trigger, mode="retracting", allow_finish=True)
    return flow.combine(by="k", n=uc.Count()), lambda rows: minutes(rows)[["n"]].reset_index()


@pytest.mark.full
def test_rows_that_a_flow_leaves_out_count_unless_the_expectation_allows_the_reason() -> None:
    flow, expected = lossy()
    with pytest.raises(FlowViolation, match=r"stage 1 left out as bad: 1 row \(give allow=\('bad',\) if they") as found:
        check_flow(flow, expected, examples=40)
    check_script(found.value.script, flow, expected, allow=["bad"])
    check_flow(flow, expected, examples=20, allow=("bad",))
    flow, expected = lossy(uc.AfterCount(2))
    with pytest.raises(FlowViolation, match="stage 1 left out as finished"):
        check_flow(flow, expected, allow=("bad",), late=False)
    hops = plain().window(uc.Sliding("30 seconds", "1 minute"), mode="retracting").combine(n=uc.Count())

    def starts_of(rows: Frame) -> Frame:
        return rows.groupby(starts(rows.ts, "1min")).agg(n=("ts", "size"))

    check_flow(hops, starts_of, examples=20, allow=("unassigned",))
    with pytest.raises(FlowViolation, match="stage 1 left out as unassigned"):
        check_flow(hops, starts_of)


def timeless(table: pa.Table) -> pa.Table:
    """The rows without their times."""
    place = table.column_names.index("ts")
    return table.set_column(place, table.field(place), pa.nulls(table.num_rows, table.field(place).type))


@pytest.mark.full
def test_a_search_in_which_no_row_counts_is_an_error() -> None:
    flow = plain().map(timeless).window(MINUTE, mode="retracting").combine(by="k", n=uc.Count())
    with pytest.raises(InvalidArgument, match=r"no row in any script counts, so nothing was compared: .*\('bad',\)"):
        check_flow(flow, lambda rows: minutes(rows)[["n"]].reset_index(), examples=20, allow=("bad",))
    one, other = plain(name="left"), plain(name="right").map(timeless)
    joined = one.join(other.select("ts", "k"), on="k", within=("0 s", "1 minute"), how="semi")
    with pytest.raises(InvalidArgument, match=r"no row of the input 'right' in any script counts"):
        check_flow(joined, lambda frames: frames["left"].head(0), examples=20, allow=("bad",))


def pasted(source: str, flow: uc.Flow) -> Any:
    """The test of a message, as it is when it was pasted into a module that has the flow."""
    module: dict[str, Any] = {"flow": flow}
    exec(source, module)
    return module["test_flow"]


@pytest.mark.parametrize("text", ["\\'", '"', "\\", "\n\x00\u2028", "'\\\"ä😀", r"\N{BULLET}"])
def test_a_pasted_text_is_the_text(text: str) -> None:
    assert eval(literal({text: [text]})) == {text: [text]}


def test_the_pasted_test_passes_once_the_flow_is_right() -> None:
    with pytest.raises(FlowViolation) as found:
        check_flow(shifted(), minutes)
    pasted(found.value.test, sums(plain()))()


def test_retractions_without_rows_are_seen_at_the_step_at_which_they_come() -> None:
    with pytest.raises(FlowViolation, match="a row has been retracted more often than given") as found:
        check_flow(signed().where(uc.col("w") < 0), lambda rows: rows.iloc[:0])
    assert "after entry 0" in str(found.value)
    with pytest.raises(FlowViolation, match="retracted more often than given"):
        pasted(found.value.test, signed().where(uc.col("w") < 0))()


def test_errors_of_a_flow_and_of_the_function_are_violations() -> None:
    def broken(table: pa.Table) -> pa.Table:
        if 7 in table["x"].to_pylist():
            raise RuntimeError("seven")
        return table

    with pytest.raises(FlowViolation, match="the flow raised RuntimeError: seven") as found:
        check_flow(plain().map(broken), lambda rows: rows)
    assert [entry.rows[0]["x"] for entry in found.value.script[:-1]] == [7]
    assert isinstance(found.value.__cause__, RuntimeError)
    with pytest.raises(RuntimeError, match="seven"):
        pasted(found.value.test, plain().map(broken))()
    with pytest.raises(FlowViolation, match="expected= raised KeyError"):
        check_flow(plain(), lambda rows: rows["y"])
    with pytest.raises(InvalidArgument, match="gave column 'y', which the flow does not give"):
        check_flow(plain(), lambda rows: rows.assign(y=1))


AT, LATER = "2024-01-01T00:00:", "2024-01-01T00:02:00Z"


def test_only_rows_that_are_accepted_are_expected() -> None:
    """Of two inputs: late rows, rows without a time, and rows that are retracted in their bundle and after it."""
    left = [
        {"ts": AT + "05Z", "k": "a", "x": 1, "w": 2},
        {"ts": AT + "06Z", "k": "a", "x": 2, "w": 1},
        {"ts": None, "k": "a", "x": 4, "w": 1},
    ]
    script = [
        uc.Elements([{**left[0], "w": -1}, *left], input="left"),
        uc.Elements([{**left[1], "w": -1}], input="left"),
        uc.Watermark(LATER),
        uc.Elements([{"ts": AT + "07Z", "k": "b", "x": 8}, {"ts": LATER, "k": "b", "x": 16}], input="right"),
        uc.Watermark(None),
    ]
    seen: list[Any] = []

    def expected(frames: dict[str, Frame]) -> Frame:
        seen.extend((name, row.Index, row.x) for name, frame in frames.items() for row in frame.itertuples())
        return united(frames)

    check_script(script, both(), expected)
    assert seen == [("left", (0, 1), 1), ("right", (3, 1), 16)]


@pytest.mark.weekly
def test_a_source_that_is_read_twice_has_its_rows_once() -> None:
    source = plain()
    high, low = source.where(uc.col("x") > 5), source.where(uc.col("x") <= 5)
    flow = sums(uc.union(high=high, low=low, side="side"), by="side")

    def expected(rows: Frame) -> Frame:
        rows = rows.dropna(subset=["x"])
        return united({"high": rows[rows.x > 5], "low": rows[rows.x <= 5]})

    check_flow(flow, expected, examples=15)


def test_rows_that_cannot_be_attributed_are_told_in_a_sentence() -> None:
    """Panes that a function moves back in time are late at the second grouping."""

    def moved(table: pa.Table) -> pa.Table:
        place = table.column_names.index("event_time")
        times = [time - pd.Timedelta("1 day") for time in table["event_time"].to_pylist()]
        return table.set_column(place, "event_time", pa.array(times, TIME))

    counts = plain().window(uc.Fixed("1 minute")).combine(by="k", n=uc.Count()).map(moved)
    flow = counts.window(uc.Fixed("1 minute")).combine(by="n", keys=uc.Count())
    rows = [{"ts": f"2024-01-01T00:0{i}:00Z", "k": "a", "x": 1} for i in (0, 9)]
    script = [uc.Elements([rows[0]]), uc.Watermark(rows[1]["ts"]), uc.Elements([rows[1]]), uc.Watermark(None)]
    with pytest.raises(InvalidArgument, match="because stage 2 left out rows that stage 1 gave: expected= needs"):
        check_script(script, flow, lambda rows: rows)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: check_flow(sums(plain(), mode="accumulating"), minutes), "check the flow with mode='retracting'"),
        (lambda: check_flow(sums(plain(), mode=None, late="duplicate"), minutes), "check the flow with late='drop'"),
        (lambda: check_flow(7, minutes), "check_flow.. takes a flow"),  # type: ignore[arg-type]
        (lambda: check_flow(plain(), 7), "expected= must be a function of a DataFrame"),  # type: ignore[arg-type]
        (lambda: check_flow(sums(uc.union(plain(), plain()), by=()), minutes), "give each its own name"),
        (lambda: check_flow(plain(), minutes, spark=7), "spark= replays the rows"),  # type: ignore[arg-type]
        (lambda: check_flow(plain(), minutes, allow="bad"), "allow= takes a tuple of reasons such as"),
        (lambda: check_flow(plain(), minutes, allow=["late"]), "has 'late': late rows are never expected"),  # type: ignore[list-item]
        (lambda: check_flow(plain(), minutes, allow=["wrong"]), "allow= takes some of .* but has 'wrong'"),  # type: ignore[list-item]
        (lambda: check_flow(plain(), minutes, rows=0), "rows= must be a whole number of at least 1"),
        (lambda: check_flow(plain(), minutes, name="my flow"), "name= stands in the name of a test"),
        (lambda: check_flow(plain(), minutes, examples=0), "examples= must be a whole number of at least 1"),
        (lambda: check_flow(uc.flow(ROWS, changelog=uc.changelog.Flink("k")), minutes), "reads messages"),
        (lambda: changelogs(ROWS), "changelogs.. needs the column of weights"),
        (lambda: scripts(ROWS, columns={"x": 7}), "columns= takes a hypothesis strategy"),  # type: ignore[dict-item]
        (lambda: scripts(ROWS, columns={"y": st.none()}), "columns= needs column 'y'"),
        (lambda: scripts(ROWS, time="x"), "time= takes a timestamp column"),
        (lambda: scripts(pa.schema({"ts": TIME, "m": pa.month_day_nano_interval()})), "no ready-made values"),
    ],
)
def test_wrong_use_is_refused(make: Callable[[], None], says: str) -> None:
    with pytest.raises(uc.UncombineError, match=says) as told:
        make()
    assert "\n" not in str(told.value)


@pytest.mark.weekly
@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("s"), pa.timestamp("ns", "Asia/Tokyo")], ids=str)
def test_times_of_other_types(kind: pa.DataType) -> None:
    dated = uc.flow(pa.schema({"ts": kind, "x": pa.int64()}))
    days = dated.window(uc.Fixed("2 days"), mode="retracting").combine(n=uc.Count())

    def expected(rows: Frame) -> Frame:
        times = pd.to_datetime(rows.ts)
        times = times.dt.tz_localize("UTC") if times.dt.tz is None else times.dt.tz_convert("UTC")
        return rows.groupby(starts(times, "2D")).agg(n=("ts", "size"))

    check_flow(days, expected, examples=8)


@pytest.mark.weekly
def test_rows_can_have_the_time_at_which_they_came() -> None:
    arrived = uc.flow(pa.schema({"k": pa.string(), "x": pa.int64()}), watermark=uc.IngressTime())
    check_flow(sums(arrived), minutes, examples=8)


@pytest.mark.weekly
def test_it_is_loaded_at_first_use_and_says_what_it_needs(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['hypothesis'] = None; import uncombine as uc\n"
        "try:\n    uc.testing\nexcept ModuleNotFoundError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "needs hypothesis: install uncombine[testing]" in done.stdout


def drawn(strategy: st.SearchStrategy[Any], count: int = 60) -> list[Any]:
    out: list[Any] = []

    @settings(max_examples=count, derandomize=True, database=None)
    @given(strategy)
    def collect(script: Any) -> None:
        out.append(script)

    collect()
    return out


@pytest.mark.weekly
def test_scripts_have_all_that_a_stream_has() -> None:
    found = dict.fromkeys(["late", "twice", "null", "unordered", "together", "quiet", "silent input"], 0)
    for script in drawn(scripts(uc.union(left=plain(), right=plain()))):
        entries = [entry for entry in script if isinstance(entry, uc.Elements)]
        reached: dict[Any, int] = {}
        given: list[Any] = []
        for entry in script:
            if isinstance(entry, uc.Elements):
                times = [uc.timestamp(row["ts"]) for row in entry.rows if row["ts"] is not None]
                found["late"] += any(time < reached.get(entry.input, time) for time in times)
                found["unordered"] += times != sorted(times)
                found["twice"] += any(row in given for row in entry.rows)
                found["null"] += any(None in row.values() for row in entry.rows)
                found["together"] += entry.at is not None and len(entry.watermarks) > 0
                given += entry.rows
            for report in [entry] if isinstance(entry, uc.Watermark) else getattr(entry, "watermarks", ()):
                if report.t is not None:
                    reached[entry.input] = max(uc.timestamp(report.t), reached.get(entry.input, 0))
        found["quiet"] += any(isinstance(entry, uc.Clock) for entry in script)
        found["silent input"] += len(entries) > 1 and len({entry.input for entry in entries}) == 1
        assert script[-1] == uc.Watermark(None)
        assert sum(len(entry.rows) for entry in entries) <= 20
    assert {name: count for name, count in found.items() if count < 3} == {}


@pytest.mark.weekly
def test_changelogs_never_retract_more_than_came() -> None:
    apart = together = 0
    for script in drawn(changelogs(SIGNED, diff="w", columns={"x": st.integers(0, 3)}, keys=2, rows=30)):
        net: Counter[Any] = Counter()
        for entry in script:
            if not isinstance(entry, uc.Elements):
                continue
            before = Counter(net)
            for row in entry.rows:
                assert row["x"] in range(4)
                assert row["k"] in ("a", "b", None)
                key = (row["ts"], row["k"], row["x"])
                net[key] += row["w"]
                apart += row["w"] < 0 and before[key] >= -row["w"]
                together += row["w"] < 0 and before[key] < -row["w"]
            assert min(net.values(), default=0) >= 0
    assert min(apart, together) > 3


@pytest.mark.weekly
@pytest.mark.parametrize("source", [signed(), signed(watermark="20 seconds"), signed(watermark=uc.Monotonic())])
def test_without_late_rows_nothing_is_dropped(source: uc.Flow) -> None:
    flow = source.in_order()
    for script in drawn(changelogs(flow, late=False, nulls=False), 10):
        counts = flow.run(script).counts()
        assert (counts["dropped"], counts["bad"]) == (0, 0)


def test_scripts_of_a_replay_have_processing_times_in_order() -> None:
    schema = ROWS.append(pa.field("seen", TIME))
    flow = uc.flow(schema, watermark="10 seconds", processing_time="seen")
    for script in drawn(scripts(flow), 15):
        seen = [{row["seen"] for row in entry.rows} for entry in script if isinstance(entry, uc.Elements)]
        assert all(len(times) == 1 for times in seen)
        flat = [uc.timestamp(time) for times in seen for time in times]
        assert flat == sorted(set(flat))


@pytest.mark.weekly
def test_runs_are_the_same_each_time_and_seeds_differ() -> None:
    seen: list[list[int]] = []
    for seed in (None, None, 1, 1, 2):
        sizes: list[int] = []
        check_flow(plain(), lambda rows, sizes=sizes: sizes.append(len(rows)) or rows, examples=10, seed=seed)  # type: ignore[misc]
        seen.append(sizes)
    assert seen[0] == seen[1]
    assert seen[2] == seen[3]
    assert len({tuple(sizes) for sizes in seen}) == 3


@pytest.mark.weekly
def test_floats_are_compared_within_the_tolerance() -> None:
    flow = uc.flow(pa.schema({"ts": TIME, "x": pa.float64()})).with_columns(x=uc.col("x") * 3)
    check_flow(flow, lambda rows: rows.assign(x=rows.x + rows.x + rows.x), examples=20)
    with pytest.raises(FlowViolation):
        check_flow(flow, lambda rows: rows.assign(x=rows.x * 3 + 1e-3))
    check_flow(flow, lambda rows: rows.assign(x=rows.x * 3 + 1e-3), tolerance=1e-2, examples=20)


@pytest.mark.weekly
def test_the_tolerance_is_a_part_of_small_floats_too() -> None:
    flow = uc.flow(pa.schema({"ts": TIME, "x": pa.float64()}))
    small = {"x": st.sampled_from([1e-12, 2e-12, float("nan")])}
    check_flow(flow, lambda rows: rows.assign(x=rows.x * 3 / 3), columns=small, examples=20)
    with pytest.raises(FlowViolation):
        check_flow(flow, lambda rows: rows.assign(x=rows.x * 2), columns=small, examples=20)
    rounding = flow.with_columns(x=uc.col("x") * 3 - uc.col("x") - uc.col("x") - uc.col("x"))
    check_flow(rounding, lambda rows: rows.assign(x=rows.x * 0), columns={"x": st.just(0.1)}, examples=20)


def test_rows_of_a_result_are_compared_with_rows_in_any_form() -> None:
    script = [
        uc.Elements([{"ts": AT + "05Z", "k": "a", "x": 5}, {"ts": AT + "06Z", "k": "a", "x": 2}]),
        uc.Watermark(None),
    ]
    result = sums(plain()).run(script)
    whole = {"window": {"start": AT + "00Z", "end": "2024-01-01T00:01:00Z"}, "k": "a", "x": 7.0}
    same: list[Any] = [[whole], Frame([whole]), pa.table({"x": [7]}), [{"window.start": pd.Timestamp(AT + "00Z")}]]
    for right in same:
        assert_rows(result, right)
    for wrong in ([], [{**whole, "x": 8}], [whole, whole]):
        with pytest.raises(FlowViolation, match="the flow leaves other rows"):
            assert_rows(result, wrong)


def test_a_violation_is_drawn_if_matplotlib_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FlowViolation) as found:
        check_flow(both().select("n", "diff"), lambda frames: united(frames)[["n"]] + 1, draw=tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert not found.value.draw(tmp_path / "b.png")
    with pytest.raises(FlowViolation) as rows_only:
        check_flow(plain(), lambda rows: [])
    assert not rows_only.value.draw(tmp_path / "c.png")
