"""Restarts: what is gone on with, what is refused and in which words, and batches that are done again."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from engine import Engine, Handle
from streams import START, in_order, rows_flow, split

import uncombine as uc
from uncombine.errors import StateMismatch
from uncombine.panes.grouping import lift as lift_module
from uncombine.panes.grouping.lift import Lift

SECOND = 1_000_000
SCHEMA = pa.schema({"k": pa.string(), "j": pa.string(), "ts": pa.timestamp("us", "UTC"), "v": pa.int64()})
AS_IT_WAS: dict[str, Any] = {
    "window": uc.Fixed("1 minute"),
    "trigger": uc.AfterWatermark(early=uc.AfterCount(2), late=uc.AfterCount(1)),
    "mode": "retracting",
    "by": ("k", "j"),
    "n": uc.Count(),
    "total": uc.Sum("v"),
    "allowed_lateness": "1 minute",
    "watermark": uc.Monotonic(),
    "shards": 2,
}


def flow(**changes: Any) -> Any:
    options = {**AS_IT_WAS, **changes}
    if options.get("order"):
        options = {**{name: options.pop(name) for name in options.pop("order")}, **options}
    combiners = {name: options.pop(name) for name in list(options) if isinstance(options[name], uc.Combiner)}
    settings = {name: options.pop(name) for name in ("shards", "watermark")}
    settings |= {name: options.pop(name) for name in ("processing_time", "max_future") if name in options}
    by = options.pop("by")
    return rows_flow(SCHEMA, **settings).window(**options).combine(by=by, **combiners)


def rows(*times: int, v: int = 1) -> pa.Table:
    found = [{"k": "a", "j": "b", "ts": START + t * SECOND, "v": v} for t in times]
    return pa.Table.from_pylist(found, SCHEMA)


def stored(beside: bool = False) -> dict[tuple[int, int], Handle]:
    """The values in the store after a batch; `beside` of a query that shows the rows that it leaves out."""
    engine = Engine(flow(), beside=beside)
    engine.batch(rows(1, 2, 70), now=START // 1000)
    return engine.snapshot()


CHANGES = {
    "window": ({"window": uc.Fixed("2 minutes")}, ["window was Fixed('1 minute') and is Fixed('2 minutes')"]),
    "trigger": ({"trigger": uc.AfterWatermark(late=uc.AfterCount(1))}, ["trigger was", "early=AfterCount(2)"]),
    "mode": ({"mode": "accumulating"}, ["mode was 'retracting' and is 'accumulating'"]),
    "by": ({"by": "k"}, ["it was by (k: string, j: string) and is by (k: string)"]),
    "order of keys": ({"by": ("j", "k")}, ["it was by (k: string, j: string) and is by (j: string, k: string)"]),
    "shards": ({"shards": 3}, ["it had shards=2 and has shards=3"]),
    "combiner added": ({"most": uc.Max("v")}, ["most=Max('v') was added, and the state lacks it for earlier rows"]),
    "combiner changed": ({"total": uc.Max("v")}, ["total=Sum('v') is now Max('v')"]),
    "order of combiners": (
        {"order": ["total", "n"]},
        ["the combiners were in the order ['n', 'total'] and are in ['total', 'n']"],
    ),
    "processing time": ({"processing_time": "ts"}, ["keeps all windows of a key in one shard"]),
}


@pytest.mark.weekly
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_pipeline_is_told_what_changed(name: str) -> None:
    changes, said = CHANGES[name]
    with pytest.raises(StateMismatch) as refused:
        Engine(flow(**changes), restored=stored()).batch(rows(3), now=START // 1000)
    told = str(refused.value)
    assert told.startswith("the checkpoint was written by another pipeline, in stage 1 of 1: ")
    assert told.count("; ") == 1, "only what changed is named"
    for part in said:
        assert part in told
    if name == "combiner added":
        assert "window was" not in told


@pytest.mark.parametrize("beside", [False, True])
def test_rows_left_out_decide_the_shards_of_windows(beside: bool) -> None:
    several, one = "windows of a key in several shards", "all windows of a key in one shard"
    was, is_ = (one, several) if beside else (several, one)
    with pytest.raises(StateMismatch) as refused:
        Engine(flow(), restored=stored(beside), beside=not beside).batch(rows(3), now=START // 1000)
    assert f": it kept {was} and keeps {is_} (rows left out by foreach_batch() or left_out=, processing_time=" in str(
        refused.value
    )


def test_a_checkpoint_of_late_rows_in_a_column_goes_on_with_rows_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier version had late='emit', with which rows travelled to their shards as rows."""
    with monkeypatch.context() as earlier:
        earlier.setattr(lift_module, "needs_rows", lambda grouping: True)
        kept, again = stored(), stored()
    with pytest.raises(StateMismatch, match=r"late='emit' of an earlier version\)"):
        Engine(flow(), restored=kept).batch(rows(3), now=START // 1000)
    engine = Engine(flow(), restored=again, beside=True)
    panes, left_out = split(engine.batch(rows(1, 72), now=START // 1000)[0])
    assert sorted(panes.filter(pc.equal(panes["diff"], 1))["n"].to_pylist()) == [2, 3]
    assert left_out.num_rows == 0


def test_windows_in_other_shards_are_told_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(Lift, "near", 0)
        kept = stored()
    with pytest.raises(StateMismatch) as refused:
        Engine(flow(), restored=kept).batch(rows(3), now=START // 1000)
    told = "it kept windows of a key in one shard that start within 0 microseconds, and keeps those that start within "
    assert told + "3840000000 microseconds (another version); go on" in str(refused.value)


@pytest.mark.weekly
@pytest.mark.parametrize(
    "changes",
    [
        {"watermark": uc.BoundedLag("5 seconds")},
        {"allowed_lateness": "5 minutes"},
        {"on_time": "non_empty"},
        {"closing": "always"},
        {"eager_retractions": True},
        {"max_future": "2 days"},
    ],
    ids=str,
)
def test_what_does_not_touch_the_state_may_change(changes: dict[str, Any]) -> None:
    engine = Engine(flow(**changes), restored=stored())
    panes, _ = engine.batch(rows(71), now=START // 1000)
    early = [row for row in panes.to_pylist() if row["pane"]["timing"] == "EARLY"]
    assert [(row["n"], row["total"]) for row in early] == [(2, 2)], "one row from before the restart and one from after"


def test_another_strategy_waits_for_its_own_sources_only() -> None:
    engine = Engine(flow(watermark=uc.PerSource("k", "1 second")), restored=stored())
    _, before = engine.batch(rows(3), now=START // 1000)
    _, after = engine.batch(rows(300), now=START // 1000)
    assert max(count["watermark"] for count in after) > max(count["watermark"] for count in before)


def test_a_longer_lateness_keeps_windows_that_are_there() -> None:
    engine = Engine(flow(allowed_lateness="5 minutes"), restored=stored())
    engine.batch(rows(200), now=START // 1000)
    panes, counts = engine.batch(rows(3, v=10), now=START // 1000)
    late = [(row["n"], row["total"], row["diff"]) for row in panes.to_pylist()]
    assert late == [(2, 2, -1), (3, 12, 1)]
    assert counts[0]["rows_dropped"] == 0


def test_a_shorter_lateness_is_of_windows_that_are_not_held() -> None:
    engine = Engine(flow(allowed_lateness="0 seconds"), restored=stored())
    panes, counts = engine.batch(rows(3, v=10), now=START // 1000)
    assert [(row["n"], row["total"], row["diff"]) for row in panes.to_pylist()] == [(2, 2, -1), (3, 12, 1)]
    assert counts[0]["rows_dropped"] == 0
    panes, counts = engine.batch(rows(4), now=START // 1000)
    assert panes.num_rows == 0
    assert counts[0]["rows_dropped"] == 1


class Silent:
    output, state = pa.schema({"n": pa.int64()}), pa.schema({"n": pa.int64()})

    def on_row(self, row: Any, state: Any, ctx: Any) -> None: ...


STEPS: dict[str, Any] = {
    "distinct": lambda source, **options: source.distinct("k", within="10 minutes", **options),
    "in_order": lambda source, **options: source.in_order(**options),
    "process": lambda source, **options: source.process(function=Silent, **options),
    "join": lambda source, **options: source.join(source, on="k", within=("0 s", "1 s"), **options),
    "remember": lambda source, allowed_lateness: (
        source.window(uc.Fixed("1 s"), mode="retracting", allowed_lateness=allowed_lateness)
        .combine(by="k", n=uc.Count())
        .map(lambda table: table.select(["n"]), remember=True)
    ),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize(("before", "after"), [("5 minutes", "0 seconds"), ("0 seconds", "5 minutes")])
def test_the_lateness_of_steps_over_rows_must_stay(name: str, before: str, after: str) -> None:
    """Their state has times with the lateness in them: `distinct` would show rows twice, `in_order` lose them."""
    step, engine = STEPS[name], Engine(STEPS[name](flow_of_rows(), allowed_lateness=before))
    engine.batch(rows(1, 2, 70), now=START // 1000)
    changed = Engine(step(flow_of_rows(), allowed_lateness=after), restored=engine.snapshot())
    with pytest.raises(StateMismatch, match="allowed_lateness"):
        changed.batch(rows(71), now=START // 1000)


def flow_of_rows() -> Any:
    return rows_flow(SCHEMA, "ts", uc.Monotonic(), 2, diff=None)


@pytest.mark.daily
def test_a_batch_done_again_gives_the_same_panes() -> None:
    """After a crash the parcels of the tasks come in another order, and no worker remembers anything."""
    again = flow(granularity="record", trigger=uc.Repeatedly(uc.AfterCount(3)))
    batches = [[rows(*range(0, 60, 20), v=10 * task + batch) for task in range(4)] for batch in range(5)]
    seen = []
    for seed in range(4):
        engine, panes = Engine(again, seed), []
        for tasks in batches:
            before = engine.snapshot()
            engine.batch(tasks, now=START // 1000)
            engine.store = before
            engine.restart()
            panes.append(engine.batch(tasks, now=START // 1000)[0])
        seen.append(pa.concat_tables(panes))
    assert seen[0].num_rows > 20
    assert all(other.equals(seen[0]) for other in seen)


@pytest.mark.weekly
def test_a_stage_without_rows_of_a_shard_is_restored_too() -> None:
    """A batch may bring nothing for a shard, which keeps what it holds."""
    engine = Engine(flow(shards=5), seed=3)
    one, other = Engine(flow(shards=5), seed=4), None
    out: list[list[Any]] = [[], []]
    for i in range(6):
        batch = rows(i, i + 60, v=i)
        for at, runner in enumerate((engine, one)):
            if at and i % 2:
                other = Engine(flow(shards=5), seed=i, restored=runner.snapshot())
                runner.store = other.store
                runner.restart()
            panes, _ = runner.batch(batch, now=START // 1000)
            out[at] += in_order(panes.append_column("step", pa.array([i] * panes.num_rows)))
    assert out[0] == out[1]
    assert out[0]
