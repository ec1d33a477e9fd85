"""The fate of a row that is told is the one that a grouping then gives it."""

from __future__ import annotations

import random
from typing import Any

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


def said(flow: uc.Flow, entries: list[Any], row: dict[str, Any]) -> str:
    """The sentence about a row after some entries."""
    run = LocalRun(flow)
    run.all(entries)
    (shard,) = run.shards.values()
    (made_by,) = fingerprints(flow, run.graph)
    state = shard.state
    stored = StoredStep(1, "", {"windows": 1}, 0, 1, instant_of(state.watermark), None, {}, {}, made_by)
    rows = shown_state("windows", state, made_by).to_pylist()

    def held(start: int, end: int) -> list[dict[str, Any]]:
        found = []
        for one in rows:
            low, high = timestamp(one["window"]["start"]), timestamp(one["window"]["end"])
            overlaps = low < end and high > start if "Sessions" in made_by["window"] else low == start
            found += [one] if one["k"] == row["k"] and overlaps else []
        return found

    return row_reason(stored, row, held)


@pytest.mark.parametrize("seed", seeds(200, 3_000))
def test_a_row_becomes_what_was_said(seed: int) -> None:
    r = random.Random(seed)
    trigger = r.choice(["each row", ONCE, None])
    window = r.choice(WINDOWS[:3] if trigger is None else WINDOWS)
    flow = uc.flow(SCHEMA, watermark="30 seconds").filter(uc.col("x") > 1)
    lateness = r.choice(["0 seconds", "20 seconds", "2 minutes"])
    totals = flow.window(window, trigger, "accumulating", allowed_lateness=lateness, allow_finish=True)
    counts = totals.combine(by="k", n=uc.Count())
    rows = [
        {"ts": START + r.randint(0, 300) * SECOND, "k": r.choice("ab"), "x": r.randint(0, 9)}
        for _ in range(r.randint(1, 12))
    ]
    entries: list[Any] = [uc.Elements([row]) for row in rows]
    row = {"ts": r.choice([None, START + r.randint(-60, 300) * SECOND]), "k": r.choice("ab"), "x": r.randint(0, 9)}
    text = said(counts, entries, row)
    result = counts.run([*entries, uc.Elements([row])])
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
    with pytest.raises(InvalidArgument, match=r"needs the event time of step 1, in a column 'ts': it has 'k'"):
        said(counts, far, {"k": "a"})
