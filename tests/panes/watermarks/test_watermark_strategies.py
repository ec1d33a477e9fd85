"""Watermark strategies: the library's, and a user's own."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch, UnknownColumn
from uncombine.panes.watermarks.stored_watermarks import restored, stored
from uncombine.panes.watermarks.watermark_strategies import strategy_of
from uncombine.panes.watermarks.watermarks import InputWatermarks, Watermarks
from uncombine.windows.times import MAX_TIME, MIN_TIME

SECOND = 1_000_000
TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema({"ts": TIME, "k": pa.string(), "p": pa.string(), "done": TIME})


def rows(*given: tuple[Any, ...], at: int | None = None) -> uc.Elements:
    """Rows of (seconds, source, seconds of a punctuation)."""
    table = [
        {
            "ts": None if t is None else t * SECOND,
            "k": "a",
            "p": source,
            "done": None if not done else done[0] * SECOND,
        }
        for t, source, *done in given
    ]
    return uc.Elements(table, at=None if at is None else at * SECOND)


def clock(t: int) -> uc.Clock:
    return uc.Clock(t * SECOND)


def panes(strategy: Any, script: list[Any], **options: Any) -> list[tuple[Any, ...]]:
    """Entry, end of the window in seconds, count and second of processing time of each pane."""
    flow = uc.flow(SCHEMA, watermark=strategy)
    flow = flow.window(uc.Fixed("1 minute"), **options).combine(n=uc.Count())
    out = []
    for row in flow.run(script).to_pylist():
        now = row["pane"]["processing_time"]
        second = None if now is None else uc.timestamp(now) // SECOND
        out.append((row["step"], uc.timestamp(row["window"]["end"]) // SECOND, row["n"], second))
    return out


def test_rule_10_with_processing_time_a_window_fires_at_its_own_instant_without_rows() -> None:
    script = [clock(0), rows((5, "a"), (61, "a")), clock(200)]
    assert panes(uc.ProcessingTime("10 seconds"), script) == [(2, 60, 1, 70), (2, 120, 1, 130)]
    # A pane that waits for the percentile is a timer too.
    settings = {"trigger": uc.Repeatedly(uc.WatermarkPercentile(50)), "closing": "never"}
    assert panes(uc.ProcessingTime(), script, **settings) == [(2, 60, 1, 60), (2, 120, 1, 120)]


def test_rule_10_a_timer_of_processing_time_fires_with_the_watermark_of_just_before_it() -> None:
    flow = uc.flow(SCHEMA, watermark=uc.ProcessingTime("10 seconds"))
    trigger = uc.Repeatedly(uc.AfterDelay("20 seconds"))
    flow = flow.window(uc.Fixed("1 hour"), trigger, closing="never").combine(by="k", n=uc.Count())
    (pane,) = flow.run([rows((5, "a"), at=10), clock(200)])["pane"].to_pylist()
    assert uc.timestamp(pane["processing_time"]) == 30 * SECOND
    assert uc.timestamp(pane["watermark"]) == 20 * SECOND - 1


def test_rule_10_a_deadline_that_was_passed_as_it_came_to_be_hides_no_other() -> None:
    """The second `AfterWatermark` of the first window is due when that of the other one is still to come."""
    script = [clock(0), rows((5, "a"), (61, "a")), clock(200)]
    options = {"trigger": uc.AfterWatermark(late=uc.AfterWatermark()), "allowed_lateness": "1 hour"}
    assert panes(uc.ProcessingTime(), script, **options) == [(2, 60, 1, 60), (2, 120, 1, 120)]


def test_rule_10_a_deadline_that_was_passed_as_it_came_to_be_fires_a_microsecond_later() -> None:
    """Three watermarks one after the other are over before the next row, which is the first of two to be counted."""
    late = uc.AfterWatermark(late=uc.AfterWatermark(late=uc.AfterCount(2)))
    options = {"trigger": uc.AfterWatermark(late=late), "allowed_lateness": "1 hour"}
    script = [rows((5, "a"), at=0), rows((6, "a"), at=70), rows((7, "a"), at=80)]
    assert panes(uc.ProcessingTime(), script, **options) == [(1, 60, 1, 60), (2, 60, 3, 80)]


def test_rule_10_a_later_grouping_hears_of_processing_time_in_the_steps_of_the_one_before_it() -> None:
    minutes = uc.flow(SCHEMA, watermark=uc.ProcessingTime()).window(uc.Fixed("1 minute")).combine(n=uc.Count())
    longer = minutes.window(uc.Fixed("90 seconds")).combine(n=uc.Sum("n"))
    script = [rows((5, "a"), at=0), rows((130, "a"), at=130), clock(1000)]
    found = [(row["step"], row["pane"]["processing_time"]) for row in longer.run(script).to_pylist()]
    assert [(step, uc.timestamp(now) // SECOND) for step, now in found] == [(1, 130), (2, 180)]


def test_rule_12_a_flow_may_have_a_watermark_of_each_batch() -> None:
    script = [rows((61, "a"), (5, "a"), at=0), rows((6, "a"), at=9), uc.Watermark(None)]
    found = [(0, 60, 1, 0), (0, 120, 1, 0), (1, 60, 2, 9)]
    assert sorted(panes("each_batch", script)) == sorted(panes(uc.EachBatch(), script)) == found


def test_rule_12_a_union_has_a_watermark_of_each_batch_in_all_its_flows_or_in_none() -> None:
    one = uc.flow(SCHEMA, name="one", watermark="each_batch")
    with pytest.raises(InvalidArgument, match="watermark='each_batch' is given in one flow of the union"):
        uc.union(one, uc.flow(SCHEMA, name="other", watermark="1 minute"))
    flow = uc.union(one, uc.flow(SCHEMA, name="other", watermark="each_batch"))
    flow = flow.window(uc.Fixed("1 minute")).combine(n=uc.Count())
    script = [uc.Elements([{"ts": 0}], input="one"), uc.Elements([{"ts": 5}], input="other")]
    assert flow.run(script).select(["n", "step"]).to_pylist() == [{"n": 1, "step": 0}, {"n": 2, "step": 1}]


def test_rule_10_with_processing_time_the_watermark_moves_before_the_rows_of_an_instant() -> None:
    script = [clock(0), rows((5, "a"), at=20), rows((6, "a"), at=69), rows((7, "a"), at=70), clock(80)]
    lag = uc.ProcessingTime("10 seconds")
    assert panes(lag, script) == [(3, 60, 2, 70)]
    assert panes(lag, script, allowed_lateness="1 minute") == [(3, 60, 2, 70), (3, 60, 3, 70)]
    # However many entries there were on the way.
    often = [*script[:2], *map(clock, range(21, 69)), *script[2:]]
    assert [pane[1:] for pane in panes(lag, often)] == [(60, 2, 70)]


def test_rule_10_with_processing_time_rows_of_a_new_window_are_late_by_their_own_instant() -> None:
    script = [clock(0), rows((61, "a"), at=20), rows((5, "a"), at=100), clock(130)]
    assert panes(uc.ProcessingTime("10 seconds"), script) == [(3, 120, 1, 130)]


def test_rule_10_processing_time_is_held_back_by_with_time_and_by_other_inputs() -> None:
    flow = uc.flow(SCHEMA, watermark=uc.ProcessingTime()).with_time(uc.col("ts"), "30 seconds")
    counts = flow.window(uc.Fixed("1 minute")).combine(n=uc.Count())
    found = counts.run([clock(0), rows((5, "a")), clock(89), clock(90)])
    assert found["step"].to_pylist() == [3]
    one = uc.flow(SCHEMA, name="one", watermark=uc.ProcessingTime())
    both = uc.union(one=one, two=uc.flow(SCHEMA, name="two"))
    counts = both.window(uc.Fixed("1 minute")).combine(n=uc.Count())
    row = [{"ts": 5 * SECOND}]
    script = [clock(0), uc.Elements(row, input="one"), clock(70), uc.Watermark(60 * SECOND, input="two"), clock(80)]
    assert counts.run(script)["step"].to_pylist() == [3]


def test_rule_10_declared_sources_hold_the_watermark_before_they_report() -> None:
    script = [rows((5, "a")), rows((70, "a")), rows((80, "b")), rows((90, "c"))]
    assert [pane[0] for pane in panes(uc.PerSource("p"), script)] == [1]
    assert [pane[0] for pane in panes(uc.PerSource("p", sources=["a", "b"]), script)] == [2]
    assert [pane[0] for pane in panes(uc.PerSource("p", sources=["a", "b", "d"]), script)] == []


def test_rule_10_a_declared_source_that_is_silent_is_idle_after_a_while() -> None:
    strategy = uc.PerSource("p", idle_after="20 seconds", sources=["a", "b"])
    script = [clock(100), rows((5, "a"), at=110), rows((70, "a"), at=119), clock(120), clock(130)]
    assert panes(strategy, script) == [(3, 60, 1, 120)]
    # The clock may start with the rows. If both sources are idle, the watermark stays.
    assert panes(strategy, [rows((5, "a"), at=105), rows((70, "a"), at=119), clock(140)]) == [(2, 60, 1, 125)]
    assert panes(strategy, [rows((5, "a"), at=105), rows((70, "a"), at=105), clock(140)]) == []


def test_rule_10_a_punctuation_for_all_counts_for_all_sources() -> None:
    strategy = uc.Punctuated("done", source="p", for_all="*")
    begin = [rows((5, "a"), (None, "a", 10), (None, "b", 10))]
    assert panes(strategy, [*begin, rows((None, "a", 70))]) == []
    assert panes(strategy, [*begin, rows((None, "*", 70))]) == [(1, 60, 1, None)]
    # It is there before any source, and counts for those that come later.
    script = [rows((65, "*"), (None, "*", 60)), rows((None, "a", 10)), rows((None, "a", 130)), rows((None, "b", 119))]
    assert [pane[0] for pane in panes(strategy, script)] == [2]
    # A declared source has reported by it; and it ends the idle time of all.
    declared = uc.Punctuated("done", "p", "20 seconds", sources=["a", "b"], for_all="*")
    assert panes(declared, [clock(0), rows((5, "a"), (None, "*", 70))]) == [(1, 60, 1, 0)]
    script = [clock(0), rows((5, "a"), (None, "a", 10)), rows((None, "*", 20), at=15), rows((None, "a", 70), at=25)]
    assert panes(declared, [*script, clock(34), clock(35)]) == [(5, 60, 1, 35)]


def test_rule_10_a_report_for_all_counts_for_the_percentiles_of_sources_still_to_come() -> None:
    marks = Watermarks.declared([], for_all="*").advanced("*", 60, now=0).advanced("b", 10, now=0)
    held = InputWatermarks((marks, Watermarks()))
    assert held.percentiles([50]) == {50: 60}


@pytest.mark.parametrize("seed", seeds(80, 2_000))
def test_rule_10_sources_and_inputs_become_idle_as_a_plain_loop_says(seed: int) -> None:
    """Also inputs that have never reported; the watermarks are stored and restored in between."""
    r = random.Random(seed)
    after = [r.choice([None, 5, 20]) for _ in range(r.randrange(1, 4))]
    marks = InputWatermarks(tuple(Watermarks(idle_after=length) for length in after))
    texts = [f"PerSource(column='s', lag='0 seconds', idle_after={length})" for length in after]
    reached: list[dict[str, tuple[int, int]]] = [{} for _ in after]
    least, of_input, now, first = MIN_TIME, [MIN_TIME] * len(after), 0, 0
    for turn in range(25):
        now += r.choice([0, 1, 3, 9])
        first = now if turn == 0 else first
        reports = [[(r.choice("ab"), r.randrange(100)) for _ in range(r.choice([0, 0, 1, 2]))] for _ in after]
        marks = marks.told(reports, now)
        awake = []
        for place, (length, own) in enumerate(zip(after, reached, strict=True)):
            for name, time in reports[place]:
                own[name] = max(own.get(name, (MIN_TIME, 0))[0], time), now
            active = [time for time, last in own.values() if length is None or now - last < length]
            of_input[place] = max(of_input[place], min(active, default=MIN_TIME))
            if active or (not own and (length is None or now - first < length)):
                awake.append(of_input[place])
        least = max(least, min(awake or of_input))
        assert marks.least == least
        if r.random() < 0.2:
            extra = json.loads(json.dumps(stored(marks, texts)))
            marks = restored(extra, [Watermarks(idle_after=length) for length in after], texts)


def test_rule_10_a_silent_input_of_a_union_becomes_idle() -> None:
    """With the plain strategies too, whether it has reported before or never has."""
    for strategy in (uc.BoundedLag("0 seconds", idle_after="20 seconds"), uc.Monotonic(idle_after="20 seconds")):
        left, right = (uc.flow(SCHEMA, name=name, watermark=strategy) for name in ("left", "right"))
        counts = uc.union(left, right).window("1 minute").combine(n=uc.Count())

        def elements(second: int, name: str, at: int) -> uc.Elements:
            return uc.Elements([{"ts": second * 1_000_000}], at=at * 1_000_000, input=name)

        never = [elements(5, "left", 100), elements(70, "left", 110), uc.Clock(119_000_000), uc.Clock(120_000_000)]
        assert counts.run(never)["step"].to_pylist() == [3]
        before = [elements(5, "right", 91), *never, uc.Clock(121_000_000), elements(71, "left", 129)]
        assert counts.run(before)["step"].to_pylist() == [3]
        assert counts.run([*before[:3], elements(65, "right", 110)])["n"].to_pylist() == [2]


def test_rule_67_the_watermark_of_a_source_waits_for_what_is_not_read() -> None:
    marks = Watermarks().told([("a", 50), ("b", 90)], now=0, hold=30)
    assert (marks.least, marks.percentile(50), marks.sources["b"]) == (30, 30, (90, 0))
    marks = marks.told([], now=1, hold=60)  # nothing is reported again
    assert (marks.least, marks.percentile(50)) == (50, 60)
    marks = marks.told([("a", 80)], now=2, hold=10)  # the watermark never goes back
    assert (marks.least, marks.told([("a", 85)], now=3).least) == (50, 50)
    assert marks.told([], now=4, hold=MAX_TIME).least == 80
    # Rows that go back on their way here are waited for as long.
    assert Watermarks(back=7).told([(None, 50)], now=0, hold=30).least == 23
    # A clock waits for nothing.
    assert Watermarks(lag=5).told([], now=100, hold=30).least == 95
    idle = Watermarks(idle_after=10).told([("a", 50), ("b", 20)], now=0, hold=40)
    assert (idle.least, idle.told([("a", 55)], now=11).least) == (20, 40)


@dataclass(frozen=True, repr=False)
class Own(uc.WatermarkStrategy):
    """Gives what it is told to give."""

    given: Any
    reads: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "Own()"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.reads

    def reports(self, rows: pa.Table, times: np.ndarray) -> tuple[Any, Any]:
        return self.given


@dataclass(frozen=True)
class Named(Own):
    """Is shown with its field."""


@dataclass(frozen=True)
class PerShop(uc.WatermarkStrategy):
    """A user's own: a source for each number of a column, with reports as Arrow timestamps."""

    def reports(self, rows: pa.Table, times: np.ndarray) -> tuple[Any, Any]:
        numbers = [{"a": 1, "b": 2}.get(p) for p in rows["p"].to_pylist()]
        return numbers, rows["ts"]


def test_a_strategy_of_ones_own_names_sources_as_it_likes_and_may_give_timestamps() -> None:
    script = [rows((5, "a"), (6, "b")), rows((70, "a")), rows((None, "b")), rows((61, "b"))]
    assert [pane[0] for pane in panes(PerShop(), script)] == [3]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, r"\.reports\(\) must give a pair of sources and reports, but gave NoneType$"),
        ((None, np.zeros(3, np.int64)), r"\.reports\(\) must give one of the reports for each of 2 rows, but gave 3$"),
        ((["a"], np.zeros(2, np.int64)), r"\.reports\(\) must give one of the sources for each of 2 rows, but gave 1$"),
        ((None, np.zeros(2)), r"the reports of .* must be int64 microseconds, but are float64$"),
        ((None, pa.array(["a", "b"])), r"the reports of .* must be timestamps or numbers of microseconds, but"),
        (([["a"], ["b"]], np.zeros(2, np.int64)), r"the sources of .* must be texts or numbers, but are list<"),
    ],
    ids=range(6),
)
def test_wrong_results_of_a_strategy_are_refused_in_a_sentence(given: Any, message: str) -> None:
    with pytest.raises(TypeMismatch, match=message):
        panes(Own(given), [rows((1, "a"), (2, "a"))])


def test_a_strategy_that_cannot_be_is_refused_when_built() -> None:
    with pytest.raises(UnknownColumn, match=r"^watermark=Own\(\) needs column 'shop', which the input does not have"):
        uc.flow(SCHEMA, watermark=Own(None, ("shop",)))
    with pytest.raises(InvalidArgument, match=r"^checkpoints name a strategy by its repr, and that of .* differs from"):
        strategy_of(Named(lambda rows, times: (None, times)))
    with pytest.raises(InvalidArgument, match=r"^PerSource\(sources=\) takes a list of names such as \['a', 'b'\]"):
        uc.PerSource("p", sources="a")
    with pytest.raises(InvalidArgument, match=r"^Punctuated\(sources=\) names sources, so it needs source=, the"):
        uc.Punctuated("done", sources=["a"])
    with pytest.raises(InvalidArgument, match=r"^Punctuated\(for_all=\) names sources, so it needs source=, the"):
        uc.Punctuated("done", for_all="*")
    with pytest.raises(InvalidArgument, match=r"^ProcessingTime\(lag=\) must not be negative"):
        uc.ProcessingTime("-1 seconds")


def test_checkpoints_name_strategies_as_they_always_have() -> None:
    assert repr(uc.PerSource("d", "1 minute")) == "PerSource(column='d', lag='1 minute', idle_after=None)"
    assert repr(uc.Punctuated("c", "s")) == "Punctuated(column='c', source='s', idle_after=None)"
    assert [repr(one) for one in (uc.BoundedLag("5 seconds"), uc.Monotonic(), uc.IngressTime())] == [
        "BoundedLag(lag='5 seconds')",
        "Monotonic()",
        "IngressTime()",
    ]

    class Bare(uc.WatermarkStrategy):
        def __init__(self, n: int) -> None:
            self.n = n

        def reports(self, rows: pa.Table, times: np.ndarray) -> tuple[Any, Any]:
            return None, times

    assert repr(Bare(3)) == "Bare(n=3)"
