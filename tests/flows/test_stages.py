"""A chain of groupings: the options it settles and those it refuses; `shows_again` against runs of the operator."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from opened import run_script
from pipelines import Stage, pipeline
from seeds import share

import uncombine as uc
from uncombine.errors import InvalidArgument, NotRetractable
from uncombine.flows.settle import settled, shows_again
from uncombine.panes.grouping.grouping import Grouping
from uncombine.panes.grouping.stage import OpenGrouping

SECOND = 1_000_000
NOON = 1_453_291_200 * SECOND
MINUTE = uc.Fixed("1 minute")
UPDATED = uc.AfterWatermark(early=uc.AfterCount(1), late=uc.AfterCount(1))
DATA = [
    *((5, "12:00:26", "12:05:19"), (7, "12:02:15", "12:05:39"), (3, "12:03:39", "12:06:13")),
    *((4, "12:03:59", "12:06:39"), (3, "12:04:49", "12:06:52"), (8, "12:03:06", "12:07:06")),
    *((3, "12:06:39", "12:07:19"), (9, "12:01:20", "12:08:19"), (8, "12:07:26", "12:08:39")),
    (1, "12:07:46", "12:08:52"),
]
MARKS = [("12:05:50", "12:02:00"), ("12:07:30", "12:05:55"), ("12:08:10", "12:06:10"), ("12:09:30", "12:09:00")]


def at(time: str) -> str:
    return f"2016-01-20T{time}Z"


def scores() -> list[Any]:
    """The ten scores of the Dataflow papers, which add up to 51, and then the end of time."""
    timed: list[tuple[str, Any]] = [
        (seen, uc.Elements([{"ts": at(made), "score": n}], at=at(seen))) for n, made, seen in DATA
    ]
    timed += [(seen, uc.Watermark(at(mark), at=at(seen))) for seen, mark in MARKS]
    return [entry for _, entry in sorted(timed, key=lambda entry: entry[0])] + [uc.Watermark(None, at=at("12:10:00"))]


def left(result: pa.Table, *names: str) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row in result.select([*names, "diff"]).to_pylist():
        found[tuple(row[name] for name in names)] += row["diff"]
    return Counter({values: n for values, n in found.items() if n})


@pytest.mark.parametrize("window", [uc.Global(), uc.Fixed("30 days"), uc.Calendar("month"), uc.Calendar("year")])
def test_panes_of_a_stage_may_lie_in_the_future(window: uc.Window) -> None:
    stages = [Stage(window, total=uc.Sum("score")), Stage(uc.Global(), total=uc.Sum("total"))]
    result = pipeline(stages, scores())
    assert result["total"].to_pylist() == [51]
    assert result.counts()["bad"] == 0


def test_bad_rows_between_stages_are_those_without_a_time() -> None:
    def lost(panes: pa.Table) -> pa.Table:
        time = pc.if_else(pc.equal(panes["n"], 1), pa.scalar(None, panes["event_time"].type), panes["event_time"])
        return panes.set_column(panes.column_names.index("event_time"), "event_time", time)

    rows = [{"ts": NOON, "k": "a"}, {"ts": NOON, "k": "b"}, {"ts": NOON + 1, "k": "b"}]
    stages = [
        Stage(uc.Fixed("30 days"), by="k", then=lost, n=uc.Count()),
        Stage(uc.Global(), most=uc.Max("n"), keys=uc.Count()),
    ]
    result = pipeline(stages, [uc.Elements(rows, at=NOON), uc.Watermark(None)])
    assert result.select(["most", "keys"]).to_pylist() == [{"most": 2, "keys": 1}]
    assert result.counts(stage=2)["bad"] == 1


@pytest.mark.weekly
@pytest.mark.parametrize("window", [MINUTE, uc.Fixed("2 minutes"), uc.Sessions("1 minute"), uc.Global()], ids=repr)
@pytest.mark.parametrize("stages", [2, 3])
def test_nothing_is_counted_twice_by_default(window: uc.Window, stages: int) -> None:
    """Accumulating panes would give 80 and 109 here."""
    options: dict[str, Any] = {"trigger": UPDATED, "allowed_lateness": "1 day"}
    first = Stage(window, **options, total=uc.Sum("score"))
    between = [Stage(uc.Fixed("1 hour"), trigger=UPDATED, total=uc.Sum("total"))] * (stages - 2)
    last = Stage(uc.Global(), total=uc.Sum("total"))
    assert left(pipeline([first, *between, last], scores()), "total") == {(51,): 1}


def asked(**options: Any) -> OpenGrouping:
    combiners = {name: value for name, value in options.items() if isinstance(value, uc.Combiner)}
    settings = {name: value for name, value in options.items() if name not in (*combiners, "window")}
    return OpenGrouping(combiners or {"n": uc.Count()}, options.get("window", MINUTE), settings)


LAST = asked()
LATE = {"allowed_lateness": "1 hour"}
NEWS = asked(mode="discarding", **LATE)


@pytest.mark.parametrize(
    ("chain", "modes", "diffs"),
    [
        ([LAST], ["accumulating"], [None]),
        ([LAST, LAST], ["accumulating"] * 2, [None] * 2),
        ([asked(**LATE), LAST], ["retracting"] * 2, [None, "diff"]),
        ([asked(**LATE), LAST, LAST], ["retracting"] * 3, [None, "diff", "diff"]),
        ([asked(**LATE)], ["accumulating"], [None]),
        ([NEWS, LAST], ["discarding", "accumulating"], [None] * 2),
        ([NEWS, LAST, LAST], ["discarding", "retracting", "retracting"], [None, None, "diff"]),
        ([asked(diff="d", mode="discarding"), LAST], ["discarding", "retracting"], ["d", "diff"]),
        ([asked(diff="d", mode="discarding"), asked(diff=None)], ["discarding", "accumulating"], ["d", None]),
        ([asked(trigger=UPDATED, **LATE), asked(diff="w")], ["retracting"] * 2, [None, "w"]),
        ([asked(window=uc.Sessions("1 minute")), LAST], ["accumulating"] * 2, [None] * 2),
        ([asked(window=uc.Sessions("1 minute"), **LATE), LAST], ["retracting"] * 2, [None, "diff"]),
        ([asked(window=uc.Global(), **LATE), asked(**LATE)], ["accumulating"] * 2, [None] * 2),
        ([asked(mode="accumulating"), LAST], ["accumulating"] * 2, [None] * 2),
    ],
)  # fmt: skip
def test_what_is_left_open_is_settled_by_the_chain(
    chain: list[OpenGrouping], modes: list[str], diffs: list[Any]
) -> None:
    groupings = settled(chain)
    assert [grouping.mode for grouping in groupings] == modes
    assert [grouping.diff for grouping in groupings] == diffs
    assert [grouping.time for grouping in groupings] == ["ts", *["event_time"] * (len(chain) - 1)]
    assert [grouping.max_future for grouping in groupings][1:] == [None] * (len(chain) - 1)


def test_a_later_stage_waits_as_long_as_the_one_before_it() -> None:
    chain = settled([asked(**LATE), LAST, asked(allowed_lateness="2 hours"), LAST])
    assert [str(grouping.allowed_lateness) for grouping in chain] == ["1 hour", "1 hour", "2 hours", "2 hours"]
    # Differences of rows that nobody retracts may be dropped like any late row.
    chain = settled([asked(mode="discarding", **LATE), asked(allowed_lateness="0 seconds")])
    assert int(chain[1].allowed_lateness) == 0


@pytest.mark.parametrize(
    ("chain", "says"),
    [
        ([asked(mode="accumulating", **LATE), LAST], "mode='accumulating' of stage 1 .* use mode='retracting'"),
        ([LAST, asked(mode="accumulating", trigger=uc.Always()), LAST], "mode='accumulating' of stage 2"),
        ([asked(mode="accumulating_by_default", **LATE), LAST], "use mode='retracting'"),
        ([asked(**LATE), asked(diff=None)], "diff=None of stage 2 would count rows that the stage before it retracts"),
        ([asked(**LATE), asked(allowed_lateness="1 minute")], "'1 minute' of stage 2 is less than the '1 hour'"),
        ([asked(**LATE), LAST, asked(allowed_lateness="1 minute")], "'1 minute' of stage 3 is less than the '1 hour'"),
        ([LAST, asked(late="duplicate"), LAST], "late='duplicate' of stage 2 shows late rows .* use late='drop'"),
    ],
)  # fmt: skip
def test_what_would_count_rows_twice_or_lose_them_is_refused(chain: list[OpenGrouping], says: str) -> None:
    with pytest.raises(InvalidArgument, match=says) as told:
        settled(chain)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("mode", ["discarding", "discarding_by_default"])
def test_discarded_panes_go_on_only_as_differences(mode: str) -> None:
    def total(**combiners: Any) -> pa.Table:
        first = Stage(MINUTE, trigger=UPDATED, mode=mode, allowed_lateness="1 day", **combiners)
        return pipeline([first, Stage(uc.Global(), total=uc.Sum("total"))], scores())

    assert left(total(total=uc.Sum("score")), "total") == {(51,): 1}
    for wrong in (uc.Max("score"), uc.CountDistinct("score")):
        with pytest.raises(
            NotRetractable, match=r"total= cannot show its changes as differences .* use mode='retracting'"
        ):
            total(total=wrong)
    once = Stage(MINUTE, mode=mode, total=uc.Max("score"))
    assert pipeline([once, Stage(uc.Global(), total=uc.Sum("total"))], scores()).num_rows == 1


class Whole(uc.UserTrigger):
    """Shows all rows so far with each row."""

    def on_element(self, row: Any, window: Any, ctx: uc.TriggerContext) -> None:
        ctx.fire(clear=False)


def test_a_trigger_that_asks_to_show_rows_again_is_refused() -> None:
    stage = asked(mode="discarding_by_default", trigger=uc.Repeatedly(Whole()))
    with pytest.raises(InvalidArgument, match="lets its trigger show rows again"):
        settled([stage, LAST])


WINDOWS: list[Any] = [MINUTE, uc.Sliding("1 minute", "20 seconds"), uc.Sessions("20 seconds"), uc.Global()]
LEAVES: list[Any] = [
    uc.AfterWatermark(),
    uc.AfterCount(2),
    uc.AfterDelay("20 seconds"),
    uc.AtPeriod("1 minute", domain="event"),
    uc.Always(),
    uc.Never(),
    uc.WatermarkPercentile(50),
    uc.WatermarkPercentile(100),
    uc.OnResult(uc.col("n") > 2),
]


def trigger(r: random.Random, depth: int = 2) -> Any:
    if depth == 0 or r.random() < 0.3:
        return r.choice(LEAVES)
    some = [trigger(r, depth - 1) for _ in range(r.choice([1, 2, 2]))]
    match r.randrange(7):
        case 0:
            return uc.FirstOf(*some)
        case 1:
            return uc.AllOf(*some)
        case 2:
            return uc.SequenceOf(*some)
        case 3:
            return uc.RepeatCount(some[0], r.choice([1, 1, 2]))
        case 4:
            return some[0].or_finally(trigger(r, depth - 1))
        case 5:
            return uc.AfterWatermark(r.choice([None, some[0]]), r.choice([None, None, some[-1]]))
    return uc.Repeatedly(some[0])


def grouping_of(r: random.Random) -> dict[str, Any]:
    return {
        "window": r.choice(WINDOWS),
        "trigger": r.choice([None, trigger(r), trigger(r)]),
        "allowed_lateness": r.choice(["0 seconds", "0 seconds", "40 seconds"]),
        "closing": r.choice(["non_empty", "non_empty", "never", "always"]),
        "on_time": r.choice(["always", "non_empty"]),
        "allow_finish": True,
        "mode": "accumulating",
    }


def history(r: random.Random) -> list[Any]:
    """Rows out of order of two sources, with a watermark before them."""
    script: list[Any] = []
    now, top, number = NOON, 0, 0
    for _ in range(r.randint(4, 14)):
        now += r.choice([0, 5, 30]) * SECOND
        if r.random() < 0.6:
            rows = []
            for _ in range(r.choice([1, 1, 2, 4])):
                top += r.choice([0, 3, 15])
                rows.append({"ts": NOON + (top - r.choice([0, 5, 25, 60])) * SECOND, "k": r.choice("ab"), "id": number})
                number += 1
            script.append(uc.Elements(rows, at=now))
        else:
            script.append(uc.Watermark(NOON + (top - r.choice([0, 0, 10])) * SECOND, r.choice(["one", "two"]), at=now))
    return [*script, uc.Watermark(None, "one"), uc.Watermark(None, "two")]


SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "id": pa.int64()})


def shown_twice(r: random.Random, options: dict[str, Any], each_batch: bool) -> bool:
    """True if a row is in two panes of one window, or of windows that became one."""
    named = {"by": "k", "ids": uc.CollectList("id"), "n": uc.Count(), **options}
    result = run_script(history(r), schema=SCHEMA, watermark="each_batch" if each_batch else None, **named)
    seen: Counter[Any] = Counter()
    for pane in result.to_pylist():
        window = None if isinstance(options["window"], uc.Sessions) else repr(pane["window"])
        seen.update((i, window) for i in pane["ids"] or [])
    return max(seen.values(), default=0) > 1


@pytest.mark.weekly
@pytest.mark.parametrize("first", [0, pytest.param(1_000, marks=pytest.mark.soak)])
def test_what_is_shown_once_is_shown_once(first: int) -> None:
    once = 0
    for seed in range(first, first + (120 if first == 0 else 20_000)):
        r = random.Random(seed)
        options, each_batch = grouping_of(r), r.random() < 0.2
        grouping = Grouping({"n": uc.Count()}, **options)
        if not shows_again(grouping, each_batch):
            once += 1
            assert not any(shown_twice(r, options, each_batch) for _ in range(3)), seed
    assert once > 15


@pytest.mark.weekly
@pytest.mark.parametrize("first", [0, pytest.param(1_000, marks=pytest.mark.soak)])
def test_rule_37_no_stage_is_late_to_the_next(first: int) -> None:
    taken, refused = 0, 0
    for seed in range(first, first + (60 if first == 0 else 5_000)):
        r = random.Random(seed)
        options = {**grouping_of(r), "mode": None, "late": r.choice(["drop", "drop", "duplicate", "duplicate"])}
        source = uc.flow(SCHEMA).window(options.pop("window"), **options)
        try:
            flow = source.combine(by="k", n=uc.Count()).window(r.choice(WINDOWS)).combine(total=uc.Sum("n"))
        except InvalidArgument as told:
            refused += "late='duplicate'" in str(told)
            continue
        lost = flow.run(history(r)).left_out
        taken += 1
        assert [row for row in lost.to_pylist() if (row["stage"], row["why"]) == (2, "late")] == [], seed
    assert min(taken, refused) > 10


@pytest.mark.weekly
@pytest.mark.parametrize(
    ("options", "again"),
    share(
        pytest.param(*case)
        for case in [
            ({}, False),
            ({"allowed_lateness": "40 seconds"}, True),
            ({"allowed_lateness": "40 seconds", "trigger": uc.AfterWatermark(), "allow_finish": True}, False),
            ({"allowed_lateness": "40 seconds", "trigger": uc.Never()}, False),
            ({"trigger": uc.AfterWatermark(early=uc.AfterCount(1)), "allow_finish": True}, True),
            ({"trigger": uc.Repeatedly(uc.AfterCount(2))}, True),
            ({"trigger": uc.AfterCount(2), "allow_finish": True}, False),
            ({"trigger": uc.Always()}, True),
            ({"closing": "always"}, True),
            ({"trigger": uc.RepeatCount(uc.AfterCount(1), 1), "allow_finish": True}, False),
            ({"trigger": uc.RepeatCount(uc.AfterCount(1), 2), "allow_finish": True}, True),
            ({"window": uc.Sessions("20 seconds")}, False),
            ({"window": uc.Sessions("20 seconds"), "allowed_lateness": "40 seconds"}, True),
            ({"window": uc.Sessions("20 seconds"), "trigger": uc.AfterCount(2), "allow_finish": True}, True),
            ({"window": uc.Global()}, False),
            ({"window": uc.Global(), "allowed_lateness": "1 hour"}, False),
            ({"window": uc.Global(), "trigger": uc.Repeatedly(uc.AfterCount(1))}, True),
            ({"trigger": uc.Repeatedly(uc.WatermarkPercentile(50))}, True),
        ]
    ),
)
def test_what_is_called_shown_again_can_be(options: dict[str, Any], again: bool) -> None:
    settings = {"window": MINUTE, "mode": "accumulating", **options}
    assert shows_again(Grouping({"n": uc.Count()}, **settings)) == again
    assert any(shown_twice(random.Random(seed), settings, False) for seed in range(25)) == again


def test_each_batch_shows_again() -> None:
    settings: dict[str, Any] = {"window": MINUTE, "mode": "accumulating"}
    assert shows_again(Grouping({"n": uc.Count()}, **settings), each_batch=True)
    assert any(shown_twice(random.Random(seed), settings, True) for seed in range(20))
    stages = [Stage(MINUTE, total=uc.Sum("score")), Stage(uc.Fixed("1 day"), total=uc.Sum("total"))]
    assert left(pipeline(stages, scores()[:-1], watermark="each_batch"), "total") == {(51,): 1}


def test_late_rows_of_every_stage() -> None:
    """The second stage hears of no lateness, since nothing is retracted, so that it may lose panes of late rows."""
    first = Stage(MINUTE, trigger=UPDATED, mode="discarding", allowed_lateness="1 hour", n=uc.Count())
    second = Stage(MINUTE, allowed_lateness="0 seconds", n=uc.Sum("n"))
    script = [uc.Elements([{"ts": 0}]), uc.Watermark(90 * SECOND), uc.Elements([{"ts": 1}])]
    script += [uc.Watermark(7_200 * SECOND), uc.Elements([{"ts": 2}])]
    result = pipeline([first, second], script)
    late, pane = result.left_out.select(["stage", "why", "row", "step"]).to_pylist()[::-1]
    assert (late["stage"], late["why"], late["step"], uc.timestamp(late["row"]["ts"])) == (1, "late", 4, 2)
    assert (pane["stage"], pane["why"], pane["step"]) == (2, "late", 2)
    assert (pane["row"]["n"], pane["row"]["diff"], pane["row"]["ts"]) == (1, 1, None)
    assert [result.counts(stage=i)["dropped"] for i in (1, 2)] == [1, 1]
    assert result.counts()["dropped"] == 2
    for stage in (0, 3, True):
        with pytest.raises(InvalidArgument, match="stage= must be a number from 1 to 2"):
            result.counts(stage=stage)
