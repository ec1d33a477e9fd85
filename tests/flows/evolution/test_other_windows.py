"""Windows that change: refused once some have expired, by plain Python, and else what the rows say; alike when dry."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from row_steps import SECOND
from seeds import seeds

import uncombine as uc
from uncombine.errors import StateMismatch

SCHEMA = pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "x": pa.int64()})
LAG = 30
FAR = 4_070_908_800
"""A time in the year 2099, in seconds."""
PERIODS = [(60, 60), (120, 120), (300, 300), (120, 60), (600, 600)]
"""Lengths of windows and the time from one to the next, in seconds."""


def counting(period: tuple[int, int], lateness: int, **more: uc.Combiner) -> uc.Flow:
    length, step = (f"{seconds} seconds" for seconds in period)
    window = uc.Fixed(length) if length == step else uc.Sliding(length, step)
    options: dict[str, Any] = {"mode": "retracting", "allowed_lateness": f"{lateness} seconds"}
    return (
        uc.flow(SCHEMA, watermark=f"{LAG} seconds").window(window, "each row", **options).combine(n=uc.Count(), **more)
    )


def windows(time: int, period: tuple[int, int]) -> list[tuple[int, int]]:
    """The windows of a row, from the definition: those of the grid that its time lies in."""
    length, step = period
    return [(start, start + length) for start in range(-length, time + 1, step) if start <= time < start + length]


def shown(*parts: pa.Table) -> Counter[tuple[int, int, int]]:
    """The windows that are left of changelogs: their bounds in seconds, and how many rows they have."""
    left: Counter[tuple[int, int, int]] = Counter()
    for part in parts:
        for row in part.to_pylist():
            start, end = (int(row["window"][name].timestamp()) for name in ("start", "end"))
            left[start, end, row["n"]] += row["diff"]
    return Counter({row: count for row, count in left.items() if count})


def entries(times: list[int]) -> list[uc.Elements]:
    """A script with an entry for each row, whose clock bounds no row but those of 2099."""
    rows = [{"ts": time * SECOND, "k": "a", "x": time} for time in times]
    return [uc.Elements(pa.Table.from_pylist([row], SCHEMA), at=1_700_000_000 * SECOND) for row in rows]


def refused(seed: Any, flow: uc.Flow, history: pa.Table, folder: Path) -> str | None:
    """The words with which a change is refused, when dry and in earnest; None if it is not."""
    told: list[str | None] = []
    for options in ({"dry_run": True}, {"to": folder}):
        try:
            uc.evolve(seed, flow, history=history, **options)  # type: ignore[arg-type]
            told.append(None)
        except StateMismatch as error:
            told.append(str(error))
    assert told[0] == told[1]
    return told[0]


@pytest.mark.parametrize("seed", seeds(60, 3_000))
def test_other_windows_are_right_or_refused(seed: int, tmp_path: Path) -> None:
    r = random.Random(seed)
    was, now = r.sample(PERIODS, 2)
    lateness = [r.choice([0, 60, 300]) for _ in range(2)]
    lateness[1] += r.choice([0, 1, 600])
    start, count = r.choice([0, 1_200]), r.randrange(1, 12)
    times = sorted(start + r.randrange(r.choice([60, 400, 900])) for _ in range(count))
    for _ in range(r.choice([0, 0, 2])):
        r.shuffle(times)
    script = entries([*times, *r.choices([FAR], k=r.randrange(2))])
    before = counting(was, lateness[0]).run(script)
    mark = max(times) - LAG
    expired = [
        any(end + room <= mark for time in times for _, end in windows(time, period))
        for period, room in zip((was, now), lateness, strict=True)
    ]
    flow = counting(now, lateness[1])
    history = pa.concat_tables([one.rows for one in script])
    former = before.seed(f"{tmp_path}/before")
    told = refused(former, flow, history, tmp_path / "after")
    assert (told is not None) == any(expired), told
    if told is not None:
        assert ("the former flow" if expired[0] else "the changed flow") in told
        if not expired[0]:
            assert refused(former, counting(now, _enough(told)), history, tmp_path / "more") is None
        return
    kept = Counter(window for time in times for window in windows(time, now))
    after = flow.run([], start=str(tmp_path / "after"))
    assert shown(before.panes, after.panes) == Counter((*window, n) for window, n in kept.items())
    assert after.counts()["bad"] == before.counts()["bad"] == len(script) - len(times)
    assert after.dropped == before.dropped == 0


def _enough(told: str) -> int:
    """The lateness that a sentence names, in seconds."""
    return int(uc.span(told.split("allowed_lateness='")[1].split("'")[0])) // SECOND


@pytest.mark.parametrize("seed", seeds(30, 2_000))
def test_a_later_grouping_has_all_windows_of_the_one_before(seed: int, tmp_path: Path) -> None:
    """A longer lateness closes no window of a grouping that shows nobody its windows."""
    r = random.Random(seed)
    lateness = [0, r.choice([0, 1, 600])]
    if r.random() < 0.3:
        lateness.reverse()
    size = [(60, 60), r.choice([(60, 60), (120, 120)])]
    times = sorted(r.randrange(1_500) for _ in range(r.randrange(1, 20)))
    script = entries(times)

    def flow(place: int, **more: uc.Combiner) -> uc.Flow:
        hours = counting(size[place], lateness[place], **more).window("1 hour", "each row", mode="retracting")
        return hours.combine(n=uc.Sum("n"))

    before = flow(0).run(script)
    change = uc.evolve(
        before.seed(f"{tmp_path}/before"),
        flow(1, most=uc.Max("x")),
        history=pa.concat_tables([one.rows for one in script]),
        to=tmp_path / "after",
    )
    after = flow(1, most=uc.Max("x")).run([], start=change.seed)
    assert shown(before.panes, after.panes) == Counter({(0, 3_600, len(times)): 1})


@pytest.mark.parametrize("sizes", [("5 minutes", "1 hour"), ("sessions 2 minutes", "5 minutes")])
def test_windows_of_before_that_have_expired_are_named(sizes: tuple[str, str], tmp_path: Path) -> None:
    def flow(size: str) -> uc.Flow:
        rows = uc.flow(SCHEMA, watermark="30 seconds")
        return rows.window(size, "each row", mode="retracting").combine(n=uc.Count())

    script = entries([0, 10, 3_000])
    seed = flow(sizes[0]).run(script).seed(f"{tmp_path}/before")
    history = pa.concat_tables([one.rows for one in script])
    told = refused(seed, flow(sizes[1]), history, tmp_path / "after")
    assert told is not None
    assert ("from 1970-01-01T00:00:00Z to 1970-01-01T00:05:00Z" in told) == sizes[0].startswith("5")
    assert "into a new table" in told
    plan = uc.evolve(seed, flow(sizes[1]), history=[], dry_run=True)
    assert "the windows are others, which is refused if the history has rows of some that have expired" in str(plan)
