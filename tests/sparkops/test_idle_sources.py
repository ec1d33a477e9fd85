"""Sources that fall silent: a replay, a stream and the local runner go on at the same instants, in each stage."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from bounded import bounded_flow, cut
from pipelines import Stage, pipeline
from streams import MARK, NOW, ORIGIN, START, play, punctuated, punctuated_schema, rows_flow

import uncombine as uc

SECOND = 1_000_000
SCHEMA = pa.schema({"k": pa.string(), "ts": pa.timestamp("us", "UTC"), "v": pa.int64()})
TRIGGER = uc.AfterWatermark(early=uc.AfterDelay("25 seconds"), late=uc.AfterCount(1))


def script(seed: int) -> list[Any]:
    """Rows and watermark reports of three sources, each of which may fall silent for long and speak again."""
    r = random.Random(seed)
    now, event, entries = START, 0, list[Any]()
    for _ in range(r.randint(6, 14)):
        now += r.choice([1, 4, 15, 60]) * SECOND + r.choice([0, 0, 1])
        event += r.choice([0, 5, 20, 50])
        # Some sources run ahead, so that there is somebody to go on with.
        reports = [
            uc.Watermark(START + (event + r.choice([-30, 0, 60])) * SECOND, source) for source in r.sample("abc", 2)
        ]
        times = [event + r.choice([0, 3, 10, 30, -10]) for _ in range(r.choice([1, 2, 5]))]
        rows = [{"k": r.choice("xyz"), "ts": START + t * SECOND, "v": r.randrange(9)} for t in times]
        match r.randrange(3):
            case 0:
                entries.append(uc.Elements(pa.Table.from_pylist(rows, SCHEMA), now))
            case 1:
                entries.append(uc.Elements(pa.Table.from_pylist(rows, SCHEMA), now, reports[: r.randint(1, 2)]))
            case _:
                entries.append(uc.Watermark(reports[0].t, reports[0].source, now))
    # What stands still goes on when the next row comes.
    entries.append(uc.Elements(pa.Table.from_pylist(rows, SCHEMA), now + 1_000 * SECOND))
    return entries


FIRST: dict[str, Any] = {"trigger": TRIGGER, "mode": "retracting", "allowed_lateness": "5 minutes"}
SECOND_STAGE: dict[str, Any] = {"trigger": TRIGGER, "mode": "retracting", "allowed_lateness": "10 minutes"}


def flow(source: Any, window: uc.Window, stages: int) -> Any:
    first = source.window(window, **FIRST).combine(by="k", total=uc.Sum("v"))
    if stages == 1:
        return first
    return first.window(uc.Fixed("1 minute"), **SECOND_STAGE).combine(n=uc.Count(), most=uc.Max("total"))


def locally(entries: list[Any], window: uc.Window, stages: int) -> pa.Table:
    first = Stage(window, by="k", **FIRST, total=uc.Sum("v"))
    second = Stage(uc.Fixed("1 minute"), **SECOND_STAGE, n=uc.Count(), most=uc.Max("total"))
    return pipeline([first, second][:stages], entries, idle_after="20 seconds", schema=SCHEMA)


def plain(panes: pa.Table) -> list[str]:
    return sorted(map(repr, panes.drop_columns([n for n in ("step",) if n in panes.column_names]).to_pylist()))


def agree(seed: int) -> int:
    """The number of panes that a watermark brought at an instant that no entry of the script has."""
    entries = script(seed)
    window, stages = [uc.Fixed("30 seconds"), uc.Sessions("8 seconds")][seed % 2], 1 + seed // 2 % 2
    want = locally(entries, window, stages)
    marked, settings = (
        uc.Punctuated(MARK, source=ORIGIN, idle_after="20 seconds"),
        {"processing_time": NOW, "shards": 2},
    )
    batches = punctuated(entries, SCHEMA)
    parts = cut(pa.concat_tables(batches), 3, seed)
    history = flow(bounded_flow(parts, "ts", marked, seed, replay=True, **settings), window, stages)
    assert plain(history.df.toArrow()) == plain(want), seed
    stream = flow(rows_flow(punctuated_schema(SCHEMA), "ts", marked, **settings), window, stages)
    assert plain(play(stream, batches, seed=seed)) == plain(want), seed
    known = {entry.at for entry in entries}
    times = want["pane"].combine_chunks().field("processing_time").cast(pa.int64()).to_pylist()
    phases = want["pane"].combine_chunks().field("trigger").to_pylist()
    return sum(phase == "watermark" and t not in known for t, phase in zip(times, phases, strict=True))


def test_random_scripts_with_sources_that_fall_silent() -> None:
    assert sum(agree(seed) for seed in range(12)) > 10


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_000, 3_000, 500))
def test_many_random_scripts_with_sources_that_fall_silent(first: int) -> None:
    for seed in range(first, first + 500):
        agree(seed)
