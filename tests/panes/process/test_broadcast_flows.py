"""Broadcast rows in flows: runs over scripts, replays, seeds and restarts give the calls of one plain loop."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import broadcast_flows
import pyarrow as pa
import pytest
import replays
from broadcast_flows import Ruled, ruled
from broadcast_rows import BROADCAST, KEYED, Judge, PlainLoop, added, bundles, table_of
from engine import Engine
from row_steps import SCHEMA, START, draw_rows, script_of
from seeds import seeds
from streams import rows_flow

import uncombine as uc
from uncombine.errors import FlowViolation, InvalidArgument, StateMismatch
from uncombine.flows.fingerprint.differences import differences
from uncombine.flows.graph import graph_of
from uncombine.local.run_seeds import fingerprints
from uncombine.panes.state.seed import read_seed
from uncombine.windows.times import MAX_TIME


def judged(keyed: uc.Flow, told: uc.Flow, **options: Any) -> uc.Flow:
    return keyed.process(by="k", function=Judge, broadcast=told, allowed_lateness="12 ms", **options)


def local() -> uc.Flow:
    keyed, told = (uc.flow(schema, diff="w", name=name) for name, schema in (("keyed", KEYED), ("told", BROADCAST)))
    return judged(keyed, told)


@pytest.mark.parametrize("seed", seeds(40, 2_000))
def test_rule_97_98_a_run_over_a_script_makes_the_calls_of_a_plain_loop(seed: int, tmp_path: Path) -> None:
    """Each entry is a bundle; at random places the run ends, and another goes on from its seed."""
    r, plain, reached = random.Random(seed), PlainLoop(Judge(), 12_000), dict.fromkeys(("keyed", "told"), -(2**62))
    entries, expected = list[Any](), []
    for keyed, told, watermark in bundles(r, 12):
        for name, rows, schema in (("keyed", keyed, KEYED), ("told", told, BROADCAST)):
            entries.append(uc.Elements(table_of(rows, schema), input=name))
            before = min(reached.values())
            expected.append(plain.step(*((rows, []) if name == "keyed" else ([], rows)), before))
        # The step hears of each input by itself, and its watermark is the least of both.
        name = r.choice(["keyed", "told"])
        reached[name] = watermark
        entries.append(uc.Watermark(watermark, input=name))
        expected.append(plain.step([], [], min(reached.values())))
    found, start, flow = [], None, local()
    while entries:
        count = r.randrange(1, len(entries) + 1)
        part = flow.run(entries[:count], start=start)
        steps = part["step"].to_pylist()
        found += [
            added(part.panes.filter(pa.array([step == place for step in steps], pa.bool_()))) for place in range(count)
        ]
        start, entries = read_seed(part.seed(f"{tmp_path}/{len(found)}").folder), entries[count:]
    assert found == expected


@pytest.mark.parametrize("seed", seeds(40, 2_000))
@pytest.mark.parametrize("shards", [1, 3])
def test_rule_98_the_shards_of_a_stream_make_the_calls_of_a_plain_loop(seed: int, shards: int) -> None:
    """Bundles of both inputs as micro-batches, cut into tasks, in any order, with new workers in between."""
    r, plain = random.Random(seed), PlainLoop(Judge(), 12_000)
    keyed, told = (
        rows_flow(schema, name=name, watermark="20 ms", diff="w", shards=shards)
        for name, schema in (("keyed", KEYED), ("told", BROADCAST))
    )
    engine, latest, dropped = Engine(judged(keyed, told), seed), dict.fromkeys(("keyed", "told"), -(2**62)), 0
    for place, (keyed_rows, told_rows, _) in enumerate(bundles(r, 12)):
        tables = {"keyed": table_of(keyed_rows, KEYED), "told": table_of(told_rows, BROADCAST)}
        for name, rows in (("keyed", keyed_rows), ("told", told_rows)):
            latest[name] = max([latest[name], *(row[0] - 20_000 for row in rows)])
        panes, counted = engine.batch(tables, START // 1000 + place)
        assert added(panes) == plain.step(keyed_rows, told_rows, min(latest.values()))
        dropped += sum(one.get("rows_dropped", 0) for one in counted)
        assert dropped == plain.late
        if r.random() < 0.3:
            engine.restart()


@pytest.mark.parametrize("seed", seeds(80, 4_000))
def test_a_replay_in_shards_gives_the_rows_of_a_run_in_this_process(seed: int) -> None:
    flow, tables = replays.drawn(seed, broadcast_flows.draw_flow, [2])
    assert replays.replayed(flow) == replays.run_locally(flow, tables)


@pytest.mark.parametrize("seed", seeds(8, 400))
def test_with_a_watermark_of_each_batch_the_state_goes_on(seed: int) -> None:
    r, names = random.Random(seed), ("keyed", "told")
    entries = [(name, draw_rows(r, True, place)) for _ in range(3) for place, name in enumerate(names)]
    stream, local = (
        ruled(*(make(SCHEMA, name=name, watermark=uc.EachBatch(), diff="w", **options) for name in names))
        for make, options in ((rows_flow, {"shards": 3}), (uc.flow, {}))
    )
    engine, found = Engine(stream, seed), list[pa.Table]()
    for place, (name, rows) in enumerate(entries):
        both = {one: rows if one == name else rows.slice(0, 0) for one in names}
        found.append(engine.batch(both, START // 1000 + place)[0])
    want = local.run([uc.Elements(rows, input=name) for name, rows in entries]).panes.select(found[0].column_names)
    assert sorted(map(repr, pa.concat_tables(found).to_pylist())) == sorted(map(repr, want.to_pylist()))


def test_left_out_has_each_bad_broadcast_row_once() -> None:
    keyed, told = (rows_flow(SCHEMA, name=name, watermark="1 hour", shards=3) for name in ("keyed", "told"))
    flow = ruled(keyed, told)
    r = random.Random(1)
    row = {"ts": None, "seen": START, "k": "p", "id": 1, "x": 3, "w": 1}
    far = {**row, "ts": START + 3 * 86_400_000_000}
    bad = pa.Table.from_pylist([row, far], SCHEMA)
    engine = Engine(flow)
    _, counted = engine.batch(
        {"keyed": draw_rows(r, False), "told": pa.concat_tables([bad, draw_rows(r, False)])}, START // 1000
    )
    assert sum(one["rows_bad"] for one in counted) == 2
    keyed, told = (uc.flow(SCHEMA, name=name) for name in ("keyed", "told"))
    result = ruled(keyed, told).run([uc.Elements(bad, at=START, input="told")])
    assert [(one["side"], one["why"]) for one in result.left_out.to_pylist()] == [("broadcast", "bad")] * 2
    assert result.counts()["bad"] == 2


def test_the_outputs_of_a_step_with_broadcast_rows_are_computed_once() -> None:
    r = random.Random(3)
    tables = {name: draw_rows(r, False, place) for place, name in enumerate(("keyed", "told"))}
    flow = ruled(*(uc.flow(SCHEMA, name=name, watermark="1 minute", processing_time="seen") for name in tables))
    both = uc.together(rows=flow, last=flow.output("last"))
    script = script_of(tables)
    found = both.run(script)
    assert found["rows"].panes.equals(flow.run(script).panes)
    assert found["last"].panes.equals(flow.output("last").run(script).panes)
    assert len(found["last"]) > 0
    with pytest.raises(InvalidArgument, match="comes right after the step that has outputs"):
        flow.where(uc.col("x") > 0).output("last")


class Above:
    """The number of pairs of a row of a key and a bound below it, which is corrected: right in any order."""

    output = pa.schema({"n": pa.int64()})
    state = pa.schema({"rows": pa.map_(pa.int64(), pa.int64()), "shown": pa.int64(), "at": pa.int64()})
    shared = pa.schema({"bounds": pa.map_(pa.int64(), pa.int64())})

    def on_broadcast(self, row: dict[str, Any], shared: dict[str, Any], ctx: Any) -> None:
        shared["bounds"] = changed(shared["bounds"], row["bound"], ctx.diff)

    def on_broadcast_key(self, row: dict[str, Any], key: Any, state: dict[str, Any], ctx: Any) -> None:
        self.show(state, ctx)

    def on_row(self, row: dict[str, Any], state: dict[str, Any], ctx: Any) -> None:
        state["rows"] = changed(state["rows"], row["x"], ctx.diff)
        self.show(state, ctx)

    def on_timer(self, tag: str, ctx: Any) -> None:
        """The timer is for its hold alone, so that what was shown can be retracted."""

    def show(self, state: dict[str, Any], ctx: Any) -> None:
        bounds = ctx.shared["bounds"] or ()
        n = sum(many * count for x, many in state["rows"] or () for bound, count in bounds if x > bound)
        if n != (state["shown"] or 0):
            if state["shown"]:
                ctx.emit({"n": state["shown"]}, time=state["at"], diff=-1)
            if n:
                ctx.emit({"n": n})
            state["shown"], state["at"] = n, ctx.time
            ctx.set_timer("shown", MAX_TIME, "event", hold=ctx.time)
        if not n and not state["rows"]:
            ctx.clear()


def changed(counts: Any, value: int, diff: int) -> Any:
    """The number of each value, with one more often or less often."""
    counts = dict(counts or ())
    counts[value] = counts.get(value, 0) + diff
    return [one for one in counts.items() if one[1]] or None


@pytest.mark.parametrize("breaks", [False, True])
def test_check_flow_draws_rows_of_both_inputs(breaks: bool) -> None:
    """A function that says nothing to keys when a bound is corrected is found out."""
    function = type("Broken", (Above,), {"on_broadcast_key": None}) if breaks else Above
    keyed, told = (
        uc.flow(schema, diff="w", name=name) for name, schema in (("keyed", KEYED), ("told", BROADCAST.remove(1)))
    )
    flow = keyed.process(by="k", function=function, broadcast=told)

    def expected(frames: Any) -> list[dict[str, Any]]:
        bounds = frames["told"]["bound"]
        totals = {
            key: sum(int((bounds < x).sum()) for x in rows)
            for key, rows in frames["keyed"].groupby("k", dropna=False).x
        }
        return [{"k": None if key != key else key, "n": n} for key, n in totals.items() if n]

    def check() -> None:
        uc.testing.check_flow(flow, expected, examples=40, nulls=False, allow=("bad",))

    if not breaks:
        check()
        return
    with pytest.raises(FlowViolation):
        check()


def test_a_bounded_run_takes_all_rows_by_event_time() -> None:
    keyed = uc.flow(table_of([(6, "a", 5, 1), (2, "a", 5, 1)], KEYED, False))
    told = uc.flow(table_of([(4, 1, 3, 1)], BROADCAST, False))
    assert keyed.process(by="k", function=Judge, broadcast=told).run()["what"].to_pylist() == ["row", "told 1", "row"]


def test_a_checkpoint_sees_other_broadcast_rows() -> None:
    def made(schema: pa.Schema = BROADCAST, function: Any = Judge, broadcast: bool = True) -> Any:
        keyed = uc.flow(KEYED, name="keyed", diff="w")
        flow = (
            judged(keyed, uc.flow(schema, name="told", diff="w"))
            if broadcast
            else keyed.process(by="k", function=Silent)
        )
        (print_,) = fingerprints(flow, graph_of(flow))
        return print_

    wider = made(BROADCAST.append(pa.field("y", pa.int64())))
    assert differences(made(), made()) is None
    assert "its broadcast rows: column 'y' is new" in str(differences(made(), wider))
    assert "it had no broadcast rows and has some (broadcast=)" in str(differences(made(broadcast=False), made()))
    assert "it had broadcast rows and has none (broadcast=)" in str(differences(made(), made(broadcast=False)))


class Silent:
    output = Judge.output
    state = Judge.state

    def on_row(self, row: dict[str, Any], state: dict[str, Any], ctx: Any) -> None:
        pass


def test_a_seed_of_another_shared_state_is_refused(tmp_path: Path) -> None:
    class Other(Ruled):
        shared = pa.schema({"x": pa.int64(), "rows": pa.int64(), "more": pa.int64()})

    r = random.Random(1)
    sources = [uc.flow(SCHEMA, name=name, watermark="1 minute", processing_time="seen") for name in "ab"]
    seed = ruled(*sources).run(script_of({name: draw_rows(r, False) for name in "ab"})[:-1]).seed(tmp_path / "seed")
    with pytest.raises(StateMismatch, match="is of another flow"):
        sources[0].process(by="k", function=Other, broadcast=sources[1], outputs=Ruled.outputs).run([], start=seed)


def test_explain_names_both_inputs() -> None:
    text = ruled(*(uc.flow(SCHEMA, name=name) for name in ("keyed", "told"))).explain()
    assert "source: stage 1, Process(function=Ruled, by=('k',), " in text
    assert "broadcast=BroadcastInput(time='ts', diff=None)" in text
    assert text.count("    source: ") == 2


def test_inputs_without_names_have_those_of_the_step() -> None:
    keyed, told = uc.flow(KEYED, diff="w"), uc.flow(BROADCAST, diff="w")
    script = [
        uc.Elements(table_of([(4, 1, 3, 1)], BROADCAST), input="broadcast"),
        uc.Elements(table_of([(5, "a", 5, 1)], KEYED), input="keyed"),
    ]
    assert judged(keyed, told).run(script)["what"].to_pylist() == ["row"]
