"""The fate of a row that is told is the one that a grouping then gives it."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from row_steps import SCHEMA, SECOND, START
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.local.run_seeds import fingerprints
from uncombine.local.script_run import LocalRun
from uncombine.sparkops.checkpoints.contents import StoredStep
from uncombine.sparkops.checkpoints.instants import instant_of
from uncombine.sparkops.checkpoints.row_reasons import row_reason
from uncombine.sparkops.checkpoints.rows import shown_state
from uncombine.windows import timestamp

WINDOWS = ["1 minute", "sessions 40 seconds", uc.Sliding("2 minutes", "1 minute"), "global", "1 hour"]
ONCE = uc.AfterCount(2)


DAY = 86_400 * SECOND


def said(flow: uc.Flow, entries: list[Any], row: dict[str, Any], clock: int = START, **more: Any) -> str:
    """The sentence about a row that comes at this processing time after some entries."""
    run = LocalRun(flow)
    run.all(entries)
    (shard,) = run.shards.values()
    (made_by,) = fingerprints(flow, run.graph)
    state = shard.state
    stored = StoredStep(1, "", {"windows": 1}, 0, 1, instant_of(state.watermark), None, {}, {}, {**made_by, **more})
    rows = shown_state("windows", state, made_by).to_pylist()

    def held(start: int, end: int) -> list[dict[str, Any]]:
        found = []
        for one in rows:
            low, high = timestamp(one["window"]["start"]), timestamp(one["window"]["end"])
            overlaps = low < end and high > start if "Sessions" in made_by["window"] else low == start
            found += [one] if one["k"] == row["k"] and overlaps else []
        return found

    return row_reason(stored, row, held, clock)


@pytest.mark.parametrize("seed", seeds(200, 3_000))
def test_a_row_becomes_what_was_said(seed: int) -> None:
    r = random.Random(seed)
    trigger = r.choice(["each row", ONCE, None])
    window = r.choice(WINDOWS[:3] if trigger is None else WINDOWS)
    clock, future = START + r.randint(0, 300) * SECOND, r.choice(["1 minute", "1 day", None])
    seen = {"processing_time": "seen"} if r.random() < 0.3 else {}
    flow = uc.flow(SCHEMA, watermark="30 seconds", max_future=future, **seen).filter(uc.col("x") > 1)
    lateness = r.choice(["0 seconds", "20 seconds", "2 minutes"])
    totals = flow.window(window, trigger, "accumulating", allowed_lateness=lateness, allow_finish=True)
    counts = totals.combine(by="k", n=uc.Count())
    rows = [
        {"ts": START + r.randint(0, 300) * SECOND, "k": r.choice("ab"), "x": r.randint(0, 9)}
        for _ in range(r.randint(1, 12))
    ]
    entries: list[Any] = [uc.Elements([{**row, "seen": clock}], at=None if seen else clock) for row in rows]
    time = r.choice(
        [None, START + r.randint(-60, 300) * SECOND, clock + r.choice([60 * SECOND, DAY]) + r.randint(-1, 1)]
    )
    row = {"ts": time, "k": r.choice("ab"), "x": r.randint(0, 9), "seen": clock}
    text = said(counts, entries, row, START - DAY if seen else clock)
    result = counts.run([*entries, uc.Elements([row], at=None if seen else clock)])
    last = result.left_out.to_pylist()[-1:]
    reasons = [one["why"] for one in last if one["step"] == len(entries)]
    if row["x"] <= 1:
        assert text == "the row would be left out: it does not pass the filter col('x') > 1"
    elif not reasons:
        assert "the row would be taken in" in text
    else:
        words = {"late": "as late, by ", "bad": "as bad: ", "unassigned": "as unassigned", "finished": "has finished"}
        assert words[reasons[0]] in text


def test_the_sentences() -> None:
    row = {"ts": "2016-01-20 12:00:10", "k": "a", "x": 5}
    minutes = uc.flow(SCHEMA, watermark="30 seconds").window("1 minute", "each row", allowed_lateness="1 minute")
    counts = minutes.combine(by="k", n=uc.Count())
    first = [uc.Elements([{"ts": START, "k": "a", "x": 1}])]
    assert said(counts, first, row) == (
        "the row would be taken in, by its window 2016-01-20 12:00:00 - 2016-01-20 12:01:00, which has 1 row now"
    )
    far = [uc.Elements([{"ts": START + 300 * SECOND, "k": "b", "x": 1}])]
    assert said(counts, far, row) == (
        "the row would be left out as late, by 0:02:30: its window 2016-01-20 12:00:00 - 2016-01-20 12:01:00 has "
        "expired with allowed_lateness=1 minute, for the watermark is 2016-01-20 12:04:30"
    )
    assert said(counts, far, {**row, "ts": "noon"}) == "the row would be left out as bad: 'noon' in 'ts' is no time"
    assert said(counts, far, {**row, "ts": "2017-01-20"}) == (
        "the row would be left out as bad: its time 2017-01-20 00:00:00 is 365 days, 12:00:00 after processing time, "
        "more than max_future=1 day"
    )
    with pytest.raises(InvalidArgument, match=r"needs the event time of step 1, in a column 'ts': it has 'k'"):
        said(counts, far, {"k": "a"})


def test_the_time_of_a_row_is_computed_as_the_flow_does() -> None:
    of_millis = uc.flow(pa.schema({"at": pa.int64(), "k": pa.string()}), time="at", time_format="ms", watermark="1 day")
    counts = of_millis.window("1 minute").combine(by="k", n=uc.Count())
    row = {"at": START // 1000, "k": "a"}
    text = said(counts, [], row)
    assert text == said(counts, [], {"event_time": START, "k": "a"})
    assert text.startswith("the row would be taken in, by its window 2016-01-20 12:00:00")
    assert "as bad: None in 'event_time' is no time" in said(counts, [], {**row, "at": None})
    computed = r"in a column 'event_time', or what col\('at'\)\.cast_time\('ms'\) is computed of: it has 'k'"
    with pytest.raises(InvalidArgument, match=computed):
        said(counts, [], {"k": "a"})


@pytest.mark.parametrize(
    ("kind", "fits", "misfits"),
    [
        ("double", [None, 5, 5.5, "5.5", ""], ["hot", "n/a", "5,5", [5]]),
        ("int64", [5, "5"], [5.5, "5.5", "many", 1 << 70]),
        ("timestamp[us, tz=UTC]", ["2016-01-20 12:00", START], ["yesterday", 5.5]),
        ("date32[day]", ["2016-01-20"], ["soon"]),
        ("string", ["hot", 5], []),
        ("list<item: int64>", ["hot"], []),
    ],
)
def test_a_value_that_no_file_can_have_makes_a_row_unreadable(kind: str, fits: list[Any], misfits: list[Any]) -> None:
    counts = uc.flow(SCHEMA).window("1 minute").combine(by="k", n=uc.Count())
    row, typed = {"ts": START, "k": "a"}, [["v", kind]]
    for value in fits:
        assert "would be taken in" in said(counts, [], {**row, "v": value}, typed=[typed])
    for value in misfits:
        words = f"the row would be unreadable: {value!r} is no {kind} for 'v'"
        assert said(counts, [], {**row, "v": value}, typed=[typed]) == words
        assert "would be taken in" in said(counts, [], {**row, "v": value}, typed=[typed, None])


def test_what_is_not_known_of_the_future_is_said() -> None:
    counts = uc.flow(SCHEMA, processing_time="seen", watermark="1 minute").window("1 minute").combine(n=uc.Count())
    row, limit = {"ts": START + 2 * DAY, "k": "a"}, [str(DAY), None]
    with pytest.raises(InvalidArgument, match="row= needs the processing time of step 1, in a column 'seen'"):
        said(counts, [], row)
    assert "the max_future= of its inputs differ" in said(counts, [], row, future=[limit, None])
    assert "an earlier version did not note max_future=" in said(counts, [], row, future=None)
    assert "would be taken in" in said(counts, [], {**row, "ts": START}, future=None)
