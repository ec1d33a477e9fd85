"""Chains of groupings: what is left of each is the grouping over all that is left of the one before it.

`tests/sparkops/test_flows.py` has random chains.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pipelines import Stage, pipeline

import uncombine as uc

SECOND = 1_000_000
HOUR = 3_600
STAGE = Stage
SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "x": pa.int64(), "d": pa.int64()})


def add(*rows: tuple[float, str, int]) -> uc.Elements:
    given = [{"ts": int(t * SECOND), "k": k, "x": x, "d": 1 if x > 0 else -1} for t, k, x in rows]
    return uc.Elements([{**row, "x": abs(row["x"])} for row in given])


def mark(t: float) -> uc.Watermark:
    return uc.Watermark(int(t * SECOND))


def left(stages: list[Any], script: list[Any], *names: str) -> list[tuple[Any, ...]]:
    result = pipeline(stages, script, schema=SCHEMA)
    assert all(result.counts(stage=i + 2)["dropped"] == 0 for i in range(len(stages) - 1))
    found: dict[tuple[Any, ...], int] = {}
    for row in result.to_pylist():
        values = tuple(row[name] for name in names)
        found[values] = found.get(values, 0) + row["diff"]
    assert min(found.values()) >= 0
    return sorted(values for values, weight in found.items() for _ in range(weight))


def test_early_panes_at_the_watermark_are_retracted_downstream() -> None:
    """Each of the panes 1, 2, 3 has the time of the watermark, by which its window downstream had expired."""
    early = uc.AfterWatermark(early=uc.AfterCount(1))
    first = STAGE(uc.Fixed("1 minute"), trigger=early, timestamp="watermark", n=uc.Count())
    script = [add((1, "a", 1)), mark(15), add((16, "a", 1)), mark(35), add((36, "a", 1)), mark(60), uc.Watermark(None)]
    assert left([first, STAGE(uc.Fixed("10 seconds"), total=uc.Sum("n"))], script, "total") == [(3,)]


def test_sessions_that_merge_late_are_retracted_downstream() -> None:
    sessions = STAGE(
        uc.Sessions("20 seconds"),
        trigger=uc.AfterWatermark(late=uc.AfterCount(2)),
        allowed_lateness="1 hour",
        by="k",
        n=uc.Count(),
    )
    script = [add((0, "a", 1)), mark(HOUR + 19), add((15, "a", 1)), mark(HOUR + 33), add((16, "a", 1)), mark(2 * HOUR)]
    sizes = STAGE(uc.Fixed("10 seconds"), by="n", sessions=uc.Count())
    assert left([sessions, sizes], script, "n", "sessions") == [(3, 1)]


def test_what_falls_apart_late_comes_in_time_downstream() -> None:
    """The part [0, 20) has passed when the row that bridged it to the rest is retracted."""
    sessions = STAGE(uc.Sessions("20 seconds"), diff="d", by="k", trigger=uc.Always(), n=uc.Count())
    script = [add((0, "a", 1), (15, "a", 1), (30, "a", 1)), mark(45), add((15, "a", -1)), mark(HOUR)]
    each = STAGE(uc.Fixed("10 seconds"), by="n", sessions=uc.Count())
    assert left([sessions, each], script, "n", "sessions") == [(1, 1)] * 2


def test_a_late_row_of_a_changelog_does_not_save_itself_by_a_session_that_may_fall_apart() -> None:
    """Row 3 would be alone in an expired session when row 15 is retracted."""
    sessions = STAGE(uc.Sessions("20 seconds"), diff="d", by="k", trigger=uc.Always(), n=uc.Count())
    script = [add((15, "a", 1), (30, "a", 1)), mark(40), add((3, "a", 1)), add((15, "a", -1)), mark(HOUR)]
    each = STAGE(uc.Fixed("10 seconds"), by="n", sessions=uc.Count())
    result = pipeline([sessions, each], script, schema=SCHEMA)
    assert [result.counts(stage=i)["dropped"] for i in (1, 2)] == [1, 0]
    assert left([sessions, each], script, "n", "sessions") == [(1, 1)]


def test_starts_of_windows_are_in_time_downstream() -> None:
    first = STAGE(uc.Fixed("1 hour"), timestamp="start_of_window", by="k", n=uc.Count())
    script = [mark(HOUR / 2), add((HOUR / 2 + 60, "b", 1)), mark(HOUR), uc.Watermark(None)]
    second = STAGE(uc.Fixed("1 minute"), by="k", n=uc.Sum("n"))
    assert left([first, second], script, "k", "n") == [("b", 1)]


@pytest.mark.parametrize("window", [uc.Sessions("20 seconds"), uc.Custom(lambda t: (None, t, t + 1))], ids=repr)
def test_starts_that_may_lie_anywhere_are_refused_before_another_stage(window: uc.Window) -> None:
    first = STAGE(window, timestamp="start_of_window", n=uc.Count())
    with pytest.raises(uc.UncombineError, match=r"timestamp='start_of_window' of stage 1 .* use timestamp='earliest'"):
        pipeline([first, STAGE(uc.Fixed("1 minute"), n=uc.Count())], [], schema=SCHEMA)


@pytest.mark.parametrize("timestamp", [None, "end_of_window", "start_of_window", "earliest", "latest", "watermark"])
def test_totals_of_all_time_hold_back_the_next_stage_until_the_end(timestamp: str | None) -> None:
    totals = STAGE(uc.Global(), trigger=uc.Repeatedly(uc.AfterCount(1)), timestamp=timestamp, by="k", total=uc.Sum("x"))
    script = [add((10, "a", 1), (20, "b", 2)), mark(HOUR), add((HOUR + 5, "a", 4)), mark(9 * HOUR), uc.Watermark(None)]
    hours = STAGE(uc.Fixed("1 hour"), n=uc.Count(), total=uc.Sum("total"))
    assert sum(total for _, total in left([totals, hours], script, "n", "total")) == 7
