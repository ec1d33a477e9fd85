"""Pictures of the golden cases: what they show, not how it looks."""

from __future__ import annotations

from typing import Any

import matplotlib
import pyarrow as pa
import pytest
from golden import Case, cases

import uncombine as uc
from uncombine.errors import InvalidArgument

matplotlib.use("agg")


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
    result = uc.local.run(script, window=uc.Fixed("1 minute"), by="k", total=uc.Sum("x"))
    texts = [t.get_text() for t in uc.plot.panes(result, script, where={"k": "b"}).axes[0].texts]
    assert sorted(texts) == ["7", "7"]
    with pytest.raises(InvalidArgument, match="value= must be one of"):
        uc.plot.panes(result, script, value="totals")


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
    result = uc.local.run(script, window=uc.Fixed("1 minute"), total=uc.Sum("x"), **options)
    figure = uc.plot.panes(result, script)
    taken = [text.xy for text in figure.axes[0].texts if text.get_text().startswith("−")]
    assert len(taken) == len(set(taken)) == 2
    pyplot.close(figure)


def test_what_has_no_panes_is_no_picture() -> None:
    rows = uc.local.source(pa.table({"ts": [0], "x": [5]}))
    totals = rows.window(uc.Fixed("1 minute")).combine(total=uc.Sum("x"))
    with pytest.raises(InvalidArgument, match="script= has no entries"):
        uc.plot.panes(uc.local.run(flow=totals), [])
    script = [uc.Elements([{"ts": 0, "x": 5}]), uc.Watermark(None)]
    for flow, name in ((rows, "window"), (totals.select("total", "window", "diff"), "pane")):
        with pytest.raises(InvalidArgument, match=f"no column '{name}'"):
            uc.plot.panes(uc.local.run(script, flow), script)


def test_rows_are_crossed_out_only_where_their_places_are_those_of_the_script() -> None:
    source = uc.local.source(pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64()}), watermark="0 seconds")
    rows = [{"ts": 360_000_000, "x": 1}, {"ts": 0, "x": 2}]
    script = [uc.Elements([{"ts": 300_000_000, "x": 9}]), uc.Elements(rows)]
    for flow, places in ((source, [(1, 1)]), (source.where(uc.col("x") > 1), [(1, 0)])):
        result = uc.local.run(script, flow.window(uc.Fixed("1 minute")).combine(s=uc.Sum("x")))
        legend = uc.plot.panes(result, script).axes[0].get_legend()
        assert legend is not None
        shown = "dropped datum" in [text.get_text() for text in legend.get_texts()]
        assert (result.dropped_rows, shown) == (places, flow is source)


def test_each_input_of_a_union_has_its_times_and_its_watermark() -> None:
    clicks = uc.local.source(pa.schema({"ts": pa.timestamp("us", "UTC"), "n": pa.int64()}), name="clicks")
    bills = uc.local.source(pa.schema({"at": pa.timestamp("us", "UTC"), "n": pa.int64()}), name="bills", time="at")
    flow = uc.union(clicks, bills).window(uc.Fixed("1 minute"), allowed_lateness="1 hour").combine(n=uc.Sum("n"))
    script = [
        uc.Elements([{"ts": "2016-01-20T12:00:10Z", "n": 1}], at="2016-01-20T12:00:20Z", input="clicks"),
        uc.Watermark("2016-01-20T12:02:00Z", at="2016-01-20T12:01:10Z", input="clicks"),
        uc.Elements([{"at": "2016-01-20T12:00:40Z", "n": 5}], at="2016-01-20T12:01:20Z", input="bills"),
        uc.Watermark("2016-01-20T12:01:00Z", at="2016-01-20T12:01:30Z", input="bills"),
        uc.Elements([{"at": "2016-01-20T12:00:50Z", "n": 7}], at="2016-01-20T12:01:40Z", input="bills"),
    ]
    result = uc.local.run(script, flow)
    figure = uc.plot.panes(result, script, time={"clicks": "ts", "bills": "at"})
    shown = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert {"watermark of clicks", "watermark of bills", "late datum"} <= set(shown)
    assert {"1", "5", "7"} <= {text.get_text() for text in figure.axes[0].texts}
    assert "late datum" not in [text.get_text() for text in uc.plot.panes(result, script).axes[0].get_legend().texts]


def test_a_row_without_the_column_of_the_labels_has_none() -> None:
    columns = pa.schema({"ts": pa.timestamp("us", "UTC"), "n": pa.int64()})
    both = uc.union(uc.local.source(columns, name="bids"), uc.local.source(columns.remove(1), name="visits"))
    script = [uc.Elements([{"ts": 0, "n": 5}], input="bids"), uc.Elements([{"ts": 1}], input="visits")]
    script += [uc.Watermark(None, input=name) for name in ("bids", "visits")]
    result = uc.local.run(script, both.window(uc.Fixed("1 minute")).combine(rows=uc.Count()))
    figure = uc.plot.panes(result, script, datum="n")
    assert sorted(text.get_text() for text in figure.axes[0].texts) == ["", "2", "5"]
