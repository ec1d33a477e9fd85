"""Pictures of the golden cases: what they show, not how it looks."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import combinations, pairwise
from typing import Any

import matplotlib
import pyarrow as pa
import pytest
from golden import Case, cases
from matplotlib.dates import num2date
from opened import run_script
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch, UnknownColumn
from uncombine.plot.picture import History
from uncombine.plot.style import margins

matplotlib.use("agg")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close the figures of a test."""
    yield
    from matplotlib import pyplot

    pyplot.close("all")


@pytest.mark.weekly
@pytest.mark.parametrize("case", cases(), ids=lambda c: c.name)
def test_every_golden_case_has_a_picture_with_its_values(case: Case) -> None:
    from matplotlib import pyplot

    result = case.run()
    figure = uc.plot.panes(result, case.script, time="event_time", value="sum", title=case.name)
    written = [text.get_text() for text in figure.axes[0].texts]
    for row in result.to_pylist():
        text = str(row["sum"]) if row["diff"] > 0 else f"−{row['sum']}"
        assert text in written
    assert figure.axes[0].get_title() == case.name
    legend = {text.get_text() for text in figure.axes[0].get_legend().get_texts()}
    assert ("retracted" in legend) == any(row["diff"] < 0 for row in result.to_pylist())
    assert ("dropped datum" in legend) == bool(result.dropped)
    pyplot.close(figure)


def test_one_key_of_several_can_be_drawn() -> None:
    script: list[Any] = [
        uc.Elements([{"ts": 0, "k": "a", "x": 5}, {"ts": 1, "k": "b", "x": 7}], at=60_000_000),
        uc.Watermark(120_000_000),
    ]
    result = uc.flow(script).window(uc.Fixed("1 minute")).combine(by="k", total=uc.Sum("x")).run()
    texts = [t.get_text() for t in uc.plot.panes(result, script, where={"k": "b"}).axes[0].texts]
    assert sorted(texts) == ["7", "7"]
    with pytest.raises(InvalidArgument, match="value= must be one of"):
        uc.plot.panes(result, script, value="totals")


@pytest.mark.weekly
@pytest.mark.parametrize("case", cases(), ids=lambda c: c.name)
def test_panes_as_spark_gives_them_look_the_same(case: Case) -> None:
    """They have no step, and know nothing of the script."""
    from matplotlib import pyplot

    drawn = []
    for result in (case.run(), case.run().drop_columns(["step"]).replace_schema_metadata()):
        figure = uc.plot.panes(result, case.script, time="event_time", value="sum")
        drawn.append(sorted((text.get_text(), tuple(text.xy)) for text in figure.axes[0].texts))
        pyplot.close(figure)
    assert drawn[0] == drawn[1]


def test_retractions_of_one_moment_are_written_side_by_side() -> None:
    from matplotlib import pyplot

    script: list[Any] = [
        uc.Elements([{"ts": 0, "x": 5}], at=1_000_000),
        uc.Elements([{"ts": 1, "x": 7}], at=60_000_000),
        uc.Watermark(600_000_000),
    ]
    trigger = uc.AfterWatermark(early=uc.Repeatedly(uc.AfterCount(1)))
    options: dict[str, Any] = {"trigger": trigger, "allow_finish": True, "mode": "retracting"}
    result = run_script(script, window=uc.Fixed("1 minute"), total=uc.Sum("x"), **options)
    figure = uc.plot.panes(result, script)
    taken = [text.xy for text in figure.axes[0].texts if text.get_text().startswith("−")]
    assert len(taken) == len(set(taken)) == 2
    pyplot.close(figure)


def test_what_has_no_panes_is_no_picture() -> None:
    rows = uc.flow(pa.table({"ts": [0], "x": [5]}))
    totals = rows.window(uc.Fixed("1 minute")).combine(total=uc.Sum("x"))
    with pytest.raises(InvalidArgument, match="script= has no entries"):
        uc.plot.panes(totals.run(), [])
    script = [uc.Elements([{"ts": 0, "x": 5}]), uc.Watermark(None)]
    for flow, name in ((rows, "window"), (totals.select("total", "window", "diff"), "pane")):
        with pytest.raises(InvalidArgument, match=f"no column '{name}'"):
            uc.plot.panes(flow.run(script), script)


def test_rows_are_crossed_out_only_where_their_places_are_those_of_the_script() -> None:
    source = uc.flow(pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64()}), watermark="0 seconds")
    rows = [{"ts": 360_000_000, "x": 1}, {"ts": 0, "x": 2}]
    script = [uc.Elements([{"ts": 300_000_000, "x": 9}]), uc.Elements(rows)]
    for flow, places in ((source, [(1, 1)]), (source.where(uc.col("x") > 1), [(1, 0)])):
        result = flow.window(uc.Fixed("1 minute")).combine(s=uc.Sum("x")).run(script)
        legend = uc.plot.panes(result, script).axes[0].get_legend()
        assert legend is not None
        shown = "dropped datum" in [text.get_text() for text in legend.get_texts()]
        assert (result.dropped_rows, shown) == (places, flow is source)


def test_a_row_of_a_far_future_stretches_no_picture() -> None:
    rows = [{"ts": 5_000_000, "x": 1}, {"ts": 300_000_000_000_000, "x": 2}]
    script = [uc.Elements(rows, at=10_000_000), uc.Clock(70_000_000), uc.Watermark(None, at=80_000_000)]
    result = uc.flow(script).window(uc.Fixed("1 minute")).combine(total=uc.Sum("x")).run()
    assert result.left_out["why"].to_pylist() == ["bad"]
    low, high = uc.plot.panes(result, script).axes[0].get_xlim()
    assert high - low < 1  # days


def test_each_input_of_a_union_has_its_times_and_its_watermark() -> None:
    clicks = uc.flow(pa.schema({"ts": pa.timestamp("us", "UTC"), "n": pa.int64()}), name="clicks")
    bills = uc.flow(pa.schema({"at": pa.timestamp("us", "UTC"), "n": pa.int64()}), name="bills", time="at")
    flow = uc.union(clicks, bills).window(uc.Fixed("1 minute"), allowed_lateness="1 hour").combine(n=uc.Sum("n"))
    script = [
        uc.Elements([{"ts": "2016-01-20T12:00:10Z", "n": 1}], at="2016-01-20T12:00:20Z", input="clicks"),
        uc.Watermark("2016-01-20T12:02:00Z", at="2016-01-20T12:01:10Z", input="clicks"),
        uc.Elements([{"at": "2016-01-20T12:00:40Z", "n": 5}], at="2016-01-20T12:01:20Z", input="bills"),
        uc.Watermark("2016-01-20T12:01:00Z", at="2016-01-20T12:01:30Z", input="bills"),
        uc.Elements([{"at": "2016-01-20T12:00:50Z", "n": 7}], at="2016-01-20T12:01:40Z", input="bills"),
    ]
    result = flow.run(script)
    figure = uc.plot.panes(result, script, time={"clicks": "ts", "bills": "at"})
    shown = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert {"watermark of clicks", "watermark of bills", "before watermark"} <= set(shown)
    assert {"1", "5", "7"} <= {text.get_text() for text in figure.axes[0].texts}
    own = uc.plot.panes(result, script).axes[0]
    assert "before watermark" in [text.get_text() for text in own.get_legend().texts], "the result knows both columns"


def test_a_row_without_the_column_of_the_labels_has_none() -> None:
    columns = pa.schema({"ts": pa.timestamp("us", "UTC"), "n": pa.int64()})
    both = uc.union(uc.flow(columns, name="bids"), uc.flow(columns.remove(1), name="visits"))
    script = [uc.Elements([{"ts": 0, "n": 5}], input="bids"), uc.Elements([{"ts": 1}], input="visits")]
    script += [uc.Watermark(None, input=name) for name in ("bids", "visits")]
    result = both.window(uc.Fixed("1 minute")).combine(rows=uc.Count()).run(script)
    figure = uc.plot.panes(result, script, datum="n")
    assert sorted(text.get_text() for text in figure.axes[0].texts) == ["", "2", "5"]


AT = datetime(2024, 5, 1, 9, tzinfo=UTC)


def played(count: int, length: timedelta, keys: int = 1) -> list[Any]:
    """Rows that arrive one by one, a little late, and a watermark report after every sixth."""
    script: list[Any] = []
    for i in range(count):
        event, user = AT + length * i / count, "abcde"[i % keys]
        script.append(uc.Elements([{"ts": event, "user": user, "x": i}], at=event + length / 40))
        if i % 6 == 5:
            script.append(uc.Watermark(event - length / 20))
    return [*script, uc.Watermark(None, at=AT + length * 1.1)]


def run_by_user(script: list[Any], window: uc.Window, **options: Any) -> uc.Result:
    trigger = uc.AfterWatermark(early=uc.AfterCount(2), late=uc.AfterCount(1))
    settings = {"trigger": trigger, "mode": "retracting", "allowed_lateness": "1 day", **options}
    return run_script(script, window=window, total=uc.Sum("x"), **settings)


@pytest.mark.parametrize(
    ("length", "label", "tick"),
    [
        (timedelta(seconds=2), "event time (UTC, 2024-05-01)", r"\d\d:\d\d:\d\d\.\d{6}"),
        (timedelta(hours=1), "event time (UTC, 2024-05-01)", r"\d\d:\d\d:\d\d"),
        (timedelta(hours=16), "event time (UTC, 2024)", r"May \d\d, \d\d:\d\d"),
        (timedelta(days=2), "event time (UTC, 2024)", r"May \d\d, \d\d:\d\d"),
        (timedelta(days=30), "event time (UTC, 2024)", r"(Apr|May|Jun) \d\d"),
        (timedelta(days=900), "event time (UTC)", r"\d{4}-\d\d-\d\d"),
    ],
)
def test_axes_have_as_much_of_the_date_as_they_need(length: timedelta, label: str, tick: str) -> None:
    script = [uc.Elements([{"ts": AT, "x": 1}, {"ts": AT + length, "x": 2}]), uc.Watermark(None)]
    result = uc.flow(script).window(uc.Fixed(length / 4)).combine(total=uc.Sum("x")).run()
    axes = uc.plot.panes(result, script).axes[0]
    ticks = [axes.xaxis.get_major_formatter()(place) for place in axes.get_xticks()]
    assert (axes.get_xlabel(), len(ticks) >= 2) == (label, True)
    assert [text for text in ticks if not re.fullmatch(tick, text)] == []


@pytest.mark.weekly
def test_labels_do_not_cover_each_other() -> None:
    script = played(60, timedelta(hours=1))
    result = run_by_user(script, uc.Fixed("10 minutes"))
    shown = {}
    for labels in ("fit", "all", "none", ("panes",)):
        figure = uc.plot.panes(result, script, labels=labels)
        shown[labels] = [text for text in figure.axes[0].texts if text.get_visible() and text.get_text()]
    assert 20 < len(shown["fit"]) < len(shown["all"])
    assert shown["none"] == []
    assert 0 < len(shown["panes",]) < len(shown["fit"])
    renderer = shown["fit"][0].figure.canvas.get_renderer()
    boxes = [text.get_window_extent(renderer) for text in shown["fit"]]
    over = [
        (a, b)
        for a, b in combinations(boxes, 2)
        if min(a.x1, b.x1) - max(a.x0, b.x0) > 1 < min(a.y1, b.y1) - max(a.y0, b.y0)
    ]
    assert over == []
    beside = [
        max(a.x0, b.x0) - min(a.x1, b.x1)
        for a, b in combinations(boxes, 2)
        if min(a.y1, b.y1) - max(a.y0, b.y0) > 0.6 * min(a.height, b.height)
    ]
    assert min(beside) > 2, "two numbers beside each other look like one"
    with pytest.raises(InvalidArgument, match="labels= takes 'fit', 'all', 'none' or some of"):
        uc.plot.panes(result, script, labels="some")


@pytest.mark.parametrize("seed", seeds(6))
def test_the_value_of_a_window_lies_in_its_own_pane(seed: int) -> None:
    """Also among many rows, whose numbers come after those of panes; what stands at the end is written first."""
    r = random.Random(seed)
    script = played(r.choice([40, 90, 150]), timedelta(hours=10))
    result = run_by_user(script, uc.Fixed(r.choice(["30 minutes", "1 hour"])))
    figure = uc.plot.panes(result, script)
    picture = History.of(result, script).whole()
    axes = figure.axes[0]
    written = [text for text in axes.texts if text.get_fontweight() == "bold" and text.get_visible()]
    seen = {text.get_text() for text in written}
    assert sum(str(pane.value) in seen for pane in picture.standing) > 0.7 * len(picture.standing)
    for text in written:
        box = text.get_window_extent(figure.canvas.get_renderer())
        # Its upper end: a pane may be lower than a label.
        x, y = map(num2date, axes.transData.inverted().transform([(box.x0 + box.x1) / 2, box.y1]))
        own = [pane for pane in picture.panes if str(pane.value) == text.get_text() and pane.diff > 0]
        assert any(
            pane.bounds[0] <= x <= pane.bounds[1] and (pane.before or picture.heights[0]) < y <= pane.at
            for pane in own
            if pane.bounds is not None
        ), text.get_text()
    named = [handle.get_text() for handle in axes.get_legend().get_texts()]
    beside = [text for text in axes.texts if text.get_fontsize() == 8.5 and text.get_visible() and text.get_text()]
    assert "total of a pane" in named
    assert ("x of a datum" in named) == bool(beside)


def test_several_keys_have_panels_or_are_asked_for() -> None:
    script = played(20, timedelta(days=2), keys=3)
    result = run_by_user(script, uc.Fixed("12 hours"), by="user")
    with pytest.raises(
        InvalidArgument, match=r"panes of 3 keys: draw one with where=\{'user': 'a'\}, a panel for each with by='user'"
    ):
        uc.plot.panes(result, script)
    panels = uc.plot.panes(result, script, by="user", figsize=(6, 7)).axes
    assert [axes.get_title() for axes in panels] == ["user=a", "user=b", "user=c"]
    assert len({axes.get_xlim() for axes in panels}) == 1
    assert len(uc.plot.panes(result, script, by=[]).axes) == 1
    many = run_by_user(
        [uc.Elements([{"ts": i, "user": str(i), "x": 1} for i in range(13)])],
        uc.Global(),
        by="user",
        trigger=uc.Always(),
    )
    with pytest.raises(InvalidArgument, match=r"by= gives 13 panels, and a picture holds at most 12"):
        uc.plot.panes(many, by="user")


def test_results_of_any_kind_give_one_picture() -> None:
    script = played(12, timedelta(hours=1))
    result = run_by_user(script, uc.Fixed("10 minutes"))
    table = result.panes.drop_columns(["step"])
    drawn = []
    for given in (result, table, table.to_pandas(), result.to_pandas()):
        figure = uc.plot.panes(given, script, title="any")
        drawn.append(sorted((text.get_text(), tuple(text.xy)) for text in figure.axes[0].texts))
    assert all(texts == drawn[0] for texts in drawn)
    assert uc.plot.panes(table).axes[0].get_ylabel() == "processing time (UTC, 2024-05-01)"
    with pytest.raises(TypeMismatch, match="was given a int"):
        uc.plot.panes(5, script)


def test_long_values_are_cut() -> None:
    script = [uc.Elements([{"ts": 0, "x": "a very long text indeed"}]), uc.Watermark(None)]
    texts = (
        uc.plot.panes(uc.flow(script).window(uc.Fixed("1 minute")).combine(last=uc.Max("x")).run(), script)
        .axes[0]
        .texts
    )
    assert "a very long tex…" in [text.get_text() for text in texts]


def test_a_watermark_has_its_lag_and_its_late_rows() -> None:
    script = [
        *played(30, timedelta(hours=2)),
        uc.Elements([{"ts": AT, "user": "a", "x": 0}], at=AT + timedelta(hours=3)),
    ]
    upper, lower = uc.plot.watermark(script).axes
    legend = [text.get_text() for text in upper.get_legend().get_texts()]
    assert legend == ["row without delay", "row", "late row (1)", "watermark"]
    lags = [y for line in lower.lines for y in line.get_ydata()]
    assert (lower.get_ylabel(), min(lags) >= 9) == ("lag (minutes)", True)
    with pytest.raises(InvalidArgument, match="no rows and no watermark reports"):
        uc.plot.watermark([uc.Clock(0)])


def line_of(axes: Any, label: str = "watermark") -> list[tuple[Any, Any]]:
    """The corners of a line that have another watermark than the one before, as (processing time, watermark)."""
    [line] = [line for line in axes.lines if line.get_label() == label]
    seen: dict[Any, Any] = {}
    for at, mark in zip(line.get_xdata(), line.get_ydata(), strict=True):
        seen.setdefault(mark, at)
    return [(at, mark) for mark, at in seen.items()]


@pytest.mark.parametrize("seed", seeds(12))
def test_the_watermark_of_a_flow_is_drawn_as_the_run_had_it(seed: int) -> None:
    """Against the watermark in plain Python: the greatest event time so far less the lag, or the clock less the lag."""
    r = random.Random(seed)
    lag, by_clock = timedelta(seconds=r.choice([0, 5, 20])), r.random() < 0.3
    now, reached, script, marks, late = AT, None, list[Any](), list[Any](), 0
    for _ in range(r.randint(2, 14)):
        now += timedelta(seconds=r.choice([1, 5, 30]))
        times = [now - timedelta(seconds=r.choice([0, 1, 10, 40])) for _ in range(r.choice([1, 1, 3]))]
        if by_clock:
            reached = now - lag
        late += sum(reached is not None and time < reached for time in times)
        if not by_clock:
            reached = max([time - lag for time in times] + ([reached] if reached is not None else []))
        marks += [(now, reached)] if not marks or marks[-1][1] != reached else []
        script.append(uc.Elements([{"ts": time, "x": 1} for time in times], at=now))
    rows = pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64()})
    source = uc.flow(rows, watermark=uc.ProcessingTime(lag) if by_clock else uc.BoundedLag(lag))
    result = source.window(uc.Fixed("1 minute"), allowed_lateness="1 hour").combine(n=uc.Count()).run(script)
    upper, lower = uc.plot.watermark(script, result).axes
    legend = [text.get_text() for text in upper.get_legend().get_texts()]
    assert (line_of(upper), f"late row ({late})" in legend) == (marks, late > 0)
    assert len(lower.lines[0].get_ydata()) > 1
    axes = uc.plot.panes(result, script).axes[0]
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert ("watermark" in legend, "before watermark" in legend) == (True, late > 0)


def test_a_flow_with_several_sources_has_the_watermark_of_each() -> None:
    rows = pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64()})
    two = uc.union(a=uc.flow(rows, watermark="10 seconds"), b=uc.flow(rows, watermark="1 minute"))
    flow = two.window(uc.Fixed("1 minute"), allowed_lateness="1 hour").combine(n=uc.Count())
    events = [("a", 60), ("b", 70), ("a", 20), ("b", 8), ("a", 9)]
    script = [
        uc.Elements([{"ts": AT + timedelta(seconds=time), "x": 1}], at=AT + timedelta(seconds=80 + i), input=name)
        for i, (name, time) in enumerate(events)
    ]
    result = flow.run(script)
    upper = uc.plot.watermark(script, result).axes[0]
    at = [line_of(upper, f"watermark of {name}")[0][1] - AT for name in "ab"]
    assert at == [timedelta(seconds=50), timedelta(seconds=10)]
    # The watermark of both is 10 seconds once both have reported.
    assert "late row (2)" in [text.get_text() for text in upper.get_legend().get_texts()]


@pytest.mark.parametrize("end", [[], [uc.Watermark(None)]])
def test_a_script_without_a_watermark_says_that_the_run_has_it(end: list[Any]) -> None:
    script = [uc.Elements([{"ts": AT}], at=AT), *end]
    with pytest.raises(
        InvalidArgument, match=r"give the result of the run too, as in uc.plot.watermark\(script, result\)"
    ):
        uc.plot.watermark(script)
    result = uc.flow(script).window("1 minute").combine(n=uc.Count()).run()
    with pytest.raises(InvalidArgument, match=r"the run had no watermark before its end.*: give its flow watermark="):
        uc.plot.watermark(script, result)


EMPTY: list[tuple[list[Any], dict[str, Any], str]] = [
    ([uc.Clock(0)], {}, "the script has no rows and the result has no panes, so there is nothing to draw"),
    (
        [uc.Elements([{"ts": 0, "k": "a"}]), uc.Watermark(None)],
        {"where": {"k": "b"}},
        "no pane and no row has k='b'",
    ),
]


@pytest.mark.parametrize(("script", "options", "words"), EMPTY)
def test_an_empty_picture_is_an_error(script: list[Any], options: dict[str, Any], words: str) -> None:
    rows = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string()})
    result = uc.flow(rows).window("1 minute").combine(by="k", n=uc.Count()).run(script)
    for draw in (uc.plot.panes, uc.plot.animation):
        with pytest.raises(InvalidArgument, match=re.escape(words)):
            draw(result, script, **options)
    with pytest.raises(InvalidArgument, match=r"the result has no panes.*give the script too"):
        uc.plot.panes(result.head(0))


@pytest.mark.parametrize(("option", "name"), [("time", "ts"), ("time", "when"), ("datum", "amount")])
def test_a_column_that_no_row_has_is_an_error(option: str, name: str) -> None:
    script = [uc.Elements([{"at": 0, "k": "a"}]), uc.Watermark(None)]
    result = uc.flow(script, time="at").window("1 minute").combine(n=uc.Count()).run()
    with pytest.raises(UnknownColumn, match=f"{option}= needs column '{name}'"):
        uc.plot.panes(result, script, **{"time": "at", option: name})


def test_windows_are_bars_over_their_rows() -> None:
    rows = pa.table({"at": pa.array([AT, AT + timedelta(minutes=1), AT + timedelta(minutes=9)])})
    kinds = ["5 minutes", uc.Sliding("10 minutes", "5 minutes"), uc.Sessions("2 minutes"), "global"]
    figure = uc.plot.windows([*kinds, uc.Fixed("5 minutes", per_key_phase=True)], rows, time="at")
    counts = [[text.get_text() for text in axes.texts] for axes in figure.axes[:4]]
    assert counts == [["2", "1"], ["2", "3", "1"], ["2", "1"], ["3"]]
    with pytest.raises(InvalidArgument, match=r"windows\(\) takes a window such as"):
        uc.plot.windows([uc.Global(), 5], rows)
    with pytest.raises(InvalidArgument, match=r"gives \d+ windows, and a picture holds 400"):
        uc.plot.windows(uc.Sliding("1 day", "1 minute"), rows, time="at")


def test_triggers_cost_panes_or_time() -> None:
    script = played(30, timedelta(hours=1), keys=2)
    ways = {
        "end": uc.AfterWatermark(late=uc.AfterCount(1)),
        "rows": uc.AfterWatermark(early=uc.AfterCount(1), late=uc.AfterCount(1)),
    }
    runs = {name: run_by_user(script, uc.Fixed("20 minutes"), by="user", trigger=way) for name, way in ways.items()}
    end, rows = uc.trigger_costs(runs).to_pylist()
    assert (end["windows"], end["panes"], end["corrections"]) == (6, 6, 0)
    assert (rows["panes"], rows["corrections"]) == (36, 30)
    assert rows["first_wait"] < 0 < end["first_wait"] == end["last_wait"]
    assert [text.get_text() for text in uc.plot.trigger_costs(runs).axes[1].texts] == ["1.0", "6.0"]
    with pytest.raises(InvalidArgument, match="takes a dict of panes by the name of their trigger"):
        uc.trigger_costs({})


def test_a_changelog_shows_the_life_of_each_key() -> None:
    result = run_by_user(played(12, timedelta(days=2), keys=2), uc.Fixed("1 day"), by="user")
    axes = uc.plot.changelog(result).axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert sorted(names) == sorted(f"{user}, 2024-05-0{day}" for user in "ab" for day in (1, 2, 3))[: len(names)]
    assert axes.get_xlabel().startswith("processing time")
    rows = pa.table({"k": ["a", "a", "b"], "n": [1, 1, 2], "diff": [1, -1, 1]})
    assert uc.plot.changelog(rows, "k").axes[0].get_xlabel() == "order of changes"
    with pytest.raises(InvalidArgument, match="the rows are no panes, so their keys are unknown: give keys="):
        uc.plot.changelog(rows)


def test_a_changelog_of_flat_panes_has_their_times_and_the_whole_time_of_a_key() -> None:
    result = run_by_user(played(12, timedelta(hours=2), keys=1), uc.Fixed("10 minutes"), by="user")
    axes = uc.plot.changelog(result.to_arrow(flat=True), keys="window_start").axes[0]
    assert axes.get_xlabel().startswith("processing time")
    assert all(re.fullmatch(r"2024-05-01 \d\d:\d0:00", label.get_text()) for label in axes.get_yticklabels())
    alike = pa.table({"k": ["a", "b"], "n": [1, 2], "diff": [1, 1], "step": [0, 0]})
    bars = uc.plot.changelog(alike, "k", value="n").axes[0].patches
    assert len({bar.get_x() for bar in bars}) == 2


def test_an_animation_without_a_script_is_an_error() -> None:
    result = uc.flow([{"ts": 0, "k": "a"}]).window("1 minute").combine(by="k", n=uc.Count()).run()
    with pytest.raises(InvalidArgument, match=r"but was given None: a replay has none, and 'uncombine replay"):
        uc.plot.animation(result, None)


@pytest.mark.weekly
@pytest.mark.parametrize("figsize", [(9.0, 6.5), (6.0, 4.0), (4.0, 3.0)])
def test_ticks_of_a_small_picture_do_not_cover_each_other(figsize: tuple[float, float]) -> None:
    script = played(60, timedelta(hours=30))
    result = run_by_user(script, uc.Fixed("6 hours"))
    for figure in (uc.plot.watermark(script, figsize=figsize), uc.plot.panes(result, script, figsize=figsize)):
        figure.canvas.draw()
        axes = figure.axes[0]
        low, high = axes.bbox.y0, axes.bbox.y1
        labels = [label.get_window_extent() for label in axes.get_yticklabels()]
        seen = sorted((box.y0, box.y1) for box in labels if low <= (box.y0 + box.y1) / 2 <= high)
        assert seen
        assert all(lower[1] <= upper[0] + 1 for lower, upper in pairwise(seen))


@pytest.mark.weekly
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("hours", [0.01, 0.03, 1.3, 1.8, 30, 47, 24 * 45, 24 * 59, 24 * 600])
def test_a_small_picture_has_ticks_for_any_length(hours: float) -> None:
    figure = uc.plot.watermark(played(12, timedelta(hours=hours)), figsize=(4.0, 3.0))
    figure.canvas.draw()
    assert 0 < len(figure.axes[0].get_yticks()) <= 4


def test_the_lag_has_the_unit_of_its_longest() -> None:
    script = [
        uc.Elements([{"ts": AT}], at=AT),
        uc.Watermark(AT - timedelta(minutes=10), at=AT),
        uc.Watermark(AT + timedelta(hours=9), at=AT + timedelta(hours=9, minutes=10)),
    ]
    assert uc.plot.watermark(script).axes[1].get_ylabel() == "lag (hours)"


def test_a_row_that_came_last_has_its_value_beside_its_short_bar() -> None:
    rows = pa.table({"k": ["a", "b"], "n": [5, 123_456], "at": [AT, AT + timedelta(hours=9)], "diff": [1, 1]})
    figure = uc.plot.changelog(rows, keys="k", value="n", time="at")
    figure.canvas.draw()
    beside = next(text for text in figure.axes[0].texts if text.get_text() == "123456")
    box = beside.get_window_extent()
    assert figure.axes[0].bbox.x1 <= box.x0 < box.x1 <= figure.bbox.x1


@pytest.mark.weekly
@pytest.mark.parametrize("length", [timedelta(minutes=30), timedelta(hours=30), timedelta(days=3), timedelta(days=40)])
def test_the_name_of_the_lower_axis_is_inside_the_picture(length: timedelta) -> None:
    """Dates with times are long, and at a slant they need the most room."""
    script = played(20, length, keys=5)
    result = run_by_user(script, uc.Fixed("10 hours"), by="user")
    for figure in (uc.plot.panes(result, script, by="user"), uc.plot.watermark(script)):
        figure.canvas.draw()
        for axes in figure.axes:
            name = axes.xaxis.label
            if name.get_text() and name.get_visible():
                assert name.get_window_extent().y0 >= 0, figure.get_size_inches()


def test_windows_of_a_script_are_those_of_its_rows() -> None:
    script = played(12, timedelta(hours=1))
    rows = [row for entry in script if isinstance(entry, uc.Elements) for row in entry.rows]
    drawn = [uc.plot.windows(uc.Sessions("10 minutes"), given).axes[0] for given in (script, rows)]
    assert len(drawn[0].texts)
    assert len({str([(text.get_text(), text.get_position()) for text in axes.texts]) for axes in drawn}) == 1


def test_the_first_and_the_last_times_have_margins() -> None:
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    assert margins(first, last) == (first, last)
    low, high = margins(datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 5, 2, tzinfo=UTC))
    assert (low.day, high.day) == (30, 2)


def test_the_event_time_column_is_that_of_the_flow() -> None:
    script = [uc.Elements([{"when": 0, "x": 5}], at=60_000_000), uc.Watermark(120_000_000)]
    result = uc.flow(script, time="when").window("1 minute").combine(total=uc.Sum("x")).run()
    drawn = uc.plot.panes(result, script).axes[0]
    named = uc.plot.panes(result, script, time="when").axes[0]
    assert [text.get_text() for text in drawn.texts] == [text.get_text() for text in named.texts] != []


def test_a_script_without_a_clock_has_its_watermark_drawn_over_its_entries() -> None:
    script = [uc.Elements([{"ts": AT}]), uc.Watermark(AT + timedelta(minutes=5)), uc.Elements([{"ts": AT}])]
    [axes] = uc.plot.watermark(script).axes
    low, high = (num2date(value) for value in axes.get_ylim())
    assert low > AT - timedelta(hours=1)
    assert high < AT + timedelta(hours=1)
    assert axes.get_xlabel() == "order of arrival"
    assert list(axes.get_xticks()) == []
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == ["row", "late row (1)", "watermark"]


@pytest.mark.parametrize("given", [{}, {"time": "at"}, {"time": "event_time"}])
def test_computed_event_times_are_drawn_as_the_run_had_them(given: dict[str, str]) -> None:
    rows = [{"at": "30.06.2024 12:00", "x": 5}, {"at": "31.06.2024 12:00", "x": 7}]
    script = [
        uc.Elements(rows, at="2024-06-30T12:01:00Z"),
        uc.Watermark("2024-06-30T12:30:00Z", at="2024-06-30T12:40:00Z"),
    ]
    schema = pa.schema({"at": pa.string(), "x": pa.int64()})
    flow = uc.flow(schema, time="at", time_format="%d.%m.%Y %H:%M", name="clicks")
    result = flow.window("10 minutes").combine(total=uc.Sum("x")).run(script)
    noon = datetime(2024, 6, 30, 12, tzinfo=UTC)
    [point] = History.of(result, script, **given).points
    assert (point.event, point.label) == (noon, "5")
    upper = uc.plot.watermark(script, result, **given).axes[0]
    assert [num2date(x) for x, _ in upper.collections[0].get_offsets()] == [noon + timedelta(minutes=1)]
    assert num2date(upper.get_ylim()[0]).year == 2024
    assert uc.plot.panes(result, script, **given).axes[0].get_xlabel() == "event time (UTC, 2024-06-30)"
    assert uc.plot.animation(result, script, **given).html
    with pytest.raises(uc.errors.UnknownColumn, match="time= needs column 'b'"):
        uc.plot.panes(result, script, time="b")
