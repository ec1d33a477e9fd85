"""Signals: rules 102 and 103, flows against the models of the rules, and what is refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import replays
from engine import Engine
from reference.byrule.agree import disagreements
from reference.byrule.transcripts import signalled
from reference.flows.agree import difference, listing, shrunk
from reference.flows.draw import draw
from row_steps import SCHEMA, START, draw_rows, draw_step, draw_trigger
from seeds import seeds
from streams import rows_flow

import uncombine as uc
from uncombine.errors import FlowViolation, InvalidArgument, StateMismatch, TypeMismatch, UnknownColumn
from uncombine.flows.fingerprint.differences import differences
from uncombine.flows.graph import graph_of
from uncombine.local.run_seeds import fingerprints

TIME = pa.timestamp("us", "UTC")
KEYED = pa.schema({"ts": TIME, "k": pa.string(), "x": pa.int64(), "w": pa.int64()})
TOLD = pa.schema({"ts": TIME, "kind": pa.string(), "w": pa.int64()})
FLUSH = uc.col("kind") == "flush"
SECOND = 1_000_000


def keyed(*rows: tuple[int, str, int], **options: Any) -> uc.Elements:
    made = [{"ts": second * SECOND, "k": k, "x": x, "w": 1} for second, k, x in rows]
    return uc.Elements(pa.Table.from_pylist(made, KEYED), input="rows", **options)


def told(*rows: tuple[int | None, str, int], **options: Any) -> uc.Elements:
    made = [{"ts": None if second is None else second * SECOND, "kind": kind, "w": w} for second, kind, w in rows]
    return uc.Elements(pa.Table.from_pylist(made, TOLD), input="told", **options)


def sums(when: Any = FLUSH, trigger: Any = None, weighted: bool = False, **options: Any) -> uc.Flow:
    """Sums by key and minute, shown early by signals."""
    rows, signals = uc.flow(KEYED, name="rows"), uc.flow(TOLD, name="told", diff="w" if weighted else None)
    made = uc.AfterWatermark(early=uc.OnSignal(signals, when)) if trigger is None else trigger(signals)
    return rows.window("1 minute", made, **{"mode": "retracting", **options}).combine(by="k", x=uc.Sum("x"))


def shown(result: Any) -> list[tuple[int, int, str, int, str]]:
    """The step, the weight, the key, the sum and the cause of each pane."""
    return [(row["step"], row["diff"], row["k"], row["x"], row["pane"]["trigger"]) for row in result.panes.to_pylist()]


def test_rule_102_a_signal_fires_the_windows_of_all_keys() -> None:
    script = [
        keyed((1, "a", 1), (2, "b", 2), (70, "a", 8)),
        told((0, "other", 1)),
        told((0, "flush", 1)),
        keyed((3, "a", 4)),
        told((500, "flush", 1), (0, "flush", 1)),
        uc.Watermark(60 * SECOND, input="rows"),
        uc.Watermark(60 * SECOND, input="told"),
    ]
    result = sums().run(script)
    assert shown(result) == [
        *[(2, 1, "a", 1, "signal"), (2, 1, "a", 8, "signal"), (2, 1, "b", 2, "signal")],
        *[(4, -1, "a", 1, "signal"), (4, 1, "a", 5, "signal")],
        *[(6, -1, "a", 5, "signal"), (6, 1, "a", 5, "watermark")],
        *[(6, -1, "b", 2, "signal"), (6, 1, "b", 2, "watermark")],
    ]
    timing = [row["pane"]["timing"] for row in result.panes.to_pylist()]
    assert timing == ["EARLY"] * 6 + ["ON_TIME", "EARLY", "ON_TIME"]


@pytest.mark.parametrize(
    ("mode", "found"),
    [
        ("accumulating", [(1, 1, "a", 1), (3, 1, "a", 5)]),
        ("discarding", [(1, 1, "a", 1), (3, 1, "a", 4)]),
        ("retracting", [(1, 1, "a", 1), (3, -1, "a", 1), (3, 1, "a", 5)]),
    ],
)
def test_rule_102_signals_in_each_mode(mode: str, found: list[Any]) -> None:
    script = [keyed((1, "a", 1)), told((0, "flush", 1)), keyed((2, "a", 4)), told((0, "flush", 1))]
    assert [row[:4] for row in shown(sums(mode=mode).run(script))] == found


def test_rule_102_the_rows_of_a_bundle_come_before_its_signals() -> None:
    """Rows of one source that are signals too: the sum has the row itself, and those of its bundle after it."""
    events = uc.flow(KEYED)
    trigger = uc.AfterWatermark(early=uc.OnSignal(events, uc.col("x") > 5))
    flow = events.window("1 minute", trigger).combine(by="k", x=uc.Sum("x"))
    rows = [{"ts": 0, "k": k, "x": x, "w": 1} for k, x in (("a", 1), ("b", 9), ("a", 2))]
    assert shown(flow.run([uc.Elements(rows)])) == [(0, 1, "a", 3, "signal"), (0, 1, "b", 9, "signal")]


def test_rule_102_a_retraction_and_a_row_without_weight_are_no_signals() -> None:
    script = [keyed((1, "a", 1)), told((0, "flush", -1)), told((0, "flush", 0)), told((0, "flush", 2))]
    assert shown(sums(weighted=True).run(script)) == [(3, 1, "a", 1, "signal")]


def test_rule_102_panes_that_are_signals_fire_again_when_they_are_corrected() -> None:
    """The flow of signals is a grouping, which retracts its totals: each that is over the limit is a signal."""
    rows = uc.flow(KEYED, name="rows")
    total = rows.window("1 minute", "each row").combine(x=uc.Sum("x"))
    trigger = uc.AfterWatermark(early=uc.OnSignal(total, uc.col("x") > 3))
    flow = rows.window("1 minute", trigger, mode="discarding").combine(by="k", n=uc.Count())
    result = flow.run([keyed((0, "a", 1)), keyed((1, "b", 2)), keyed((2, "a", 3)), keyed((3, "b", 1))])
    panes = [(row["step"], row["k"], row["n"]) for row in result.panes.to_pylist()]
    assert panes == [(2, "a", 2), (2, "b", 1), (3, "b", 1)]


def test_rule_102_composites_see_a_signal_as_any_event() -> None:
    def run(trigger: Any, **options: Any) -> list[int]:
        flush = told((0, "flush", 1))
        script = [keyed((1, "a", 1)), flush, keyed((1, "a", 2)), keyed((1, "a", 4)), flush, keyed((1, "a", 8)), flush]
        return [row[0] for row in shown(sums(trigger=trigger, mode="accumulating", **options).run(script))]

    assert run(lambda f: uc.Repeatedly(uc.OnSignal(f, FLUSH))) == [1, 4, 6]
    assert run(lambda f: uc.Repeatedly(uc.AllOf(uc.AfterCount(2), uc.OnSignal(f, FLUSH)))) == [2, 5]
    assert run(lambda f: uc.Repeatedly(uc.SequenceOf(uc.AfterCount(2), uc.OnSignal(f, FLUSH)))) == [2, 4]
    assert run(lambda f: uc.Repeatedly(uc.FirstOf(uc.AfterCount(2), uc.OnSignal(f, FLUSH)))) == [1, 3, 6]
    assert run(lambda f: uc.AfterCount(1).or_finally(uc.OnSignal(f, FLUSH)), allow_finish=True) == [0]


def test_rule_103_a_bad_signal_is_counted_once_and_fires_nothing() -> None:
    result = sums().run([keyed((1, "a", 1)), told((None, "flush", 1), (None, "other", 1), at=START)])
    assert result.num_rows == 0
    assert [(row["side"], row["why"], row["row"]["kind"]) for row in result.left_out.to_pylist()] == [
        ("signals", "bad", "flush")
    ]
    rows, signals = (rows_flow(SCHEMA, name=name, watermark="1 hour", shards=3) for name in ("rows", "told"))
    trigger = uc.AfterWatermark(early=uc.OnSignal(signals))
    engine = Engine(rows.window("1 minute", trigger).combine(by="k", x=uc.Sum("x")))
    row = {"ts": None, "seen": START, "k": "p", "id": 1, "x": 3, "w": 1}
    bad = pa.Table.from_pylist([row, {**row, "ts": START + 3 * 86_400 * SECOND}], SCHEMA)
    panes, counted = engine.batch({"rows": draw_rows(random.Random(1), False), "told": bad}, START // 1000)
    assert (panes.num_rows, sum(one["rows_bad"] for one in counted)) == (0, 2)


def test_rule_103_the_watermark_is_the_least_of_both_flows() -> None:
    script = [keyed((1, "a", 1)), uc.Watermark(60 * SECOND, input="rows"), uc.Watermark(60 * SECOND, input="told")]
    assert shown(sums().run(script)) == [(2, 1, "a", 1, "watermark")]


def test_rule_103_with_a_watermark_of_each_batch_signals_fire_windows_without_rows() -> None:
    rows, signals = (uc.flow(s, name=n, watermark="each_batch") for n, s in (("rows", KEYED), ("told", TOLD)))
    trigger = uc.Repeatedly(uc.AllOf(uc.AfterCount(1), uc.OnSignal(signals)))
    flow = rows.window("1 minute", trigger).combine(by="k", x=uc.Sum("x"))
    assert shown(flow.run([keyed((1, "a", 1)), told((0, "flush", 1))])) == [(1, 1, "a", 1, "signal")]


def test_rule_103_a_run_over_tables_has_the_signals_after_all_rows() -> None:
    tables = uc.flow(pa.Table.from_pylist([{"ts": 0, "k": "a", "x": 1}, {"ts": 1, "k": "a", "x": 2}]))
    signals = uc.flow(pa.Table.from_pylist([{"ts": 0}]))
    flow = tables.window("1 minute", uc.AfterWatermark(early=uc.OnSignal(signals))).combine(by="k", x=uc.Sum("x"))
    assert shown(flow.run()) == [(0, 1, "a", 3, "signal"), (1, 1, "a", 3, "watermark")]


def found_in(first: int, last: int) -> list[str]:
    return [f"seed {seed}, {way}: {found}" for seed, way, _, _, found in disagreements(first, last, signalled)]


@pytest.mark.parametrize("first", seeds(40, 400, step=5))
def test_rule_102_the_operator_does_what_the_rules_say(first: int) -> None:
    assert found_in(first, first + 5) == []


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_000, 11_000, 500))
def test_rule_102_the_operator_does_what_the_rules_say_over_many_transcripts(first: int) -> None:
    assert found_in(first, first + 500) == []


def agree(first: int, last: int) -> None:
    for seed in range(first, last):
        case = draw(seed, signals=True)
        if difference(case) is not None:
            case = shrunk(case)
            pytest.fail(f"{listing(case)}\n{difference(case)}", pytrace=False)


@pytest.mark.parametrize("first", seeds(20, 200, step=5))
def test_runs_replays_and_streams_with_restarts_agree_with_the_rules(first: int) -> None:
    agree(first, first + 5)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_000, 6_000, 200))
def test_many_runs_replays_and_streams_agree_with_the_rules(first: int) -> None:
    agree(first, first + 200)


def draw_signalled(r: random.Random, sources: list[uc.Flow]) -> uc.Flow:
    """A grouping that waits for the signals of a second source, and what may come before and after it."""
    rows, signals = (draw_step(r, source) if r.random() < 0.4 else source for source in sources[:2])
    signal = uc.OnSignal(signals, r.choice([None, uc.col("x") > 20]))
    late = r.choice([None, uc.AfterCount(1)])
    trigger = r.choice(
        [
            uc.AfterWatermark(early=signal, late=late),
            uc.Repeatedly(uc.FirstOf(signal, draw_trigger(r) or uc.AfterWatermark())),
            uc.Repeatedly(uc.AllOf(uc.AfterCount(2), signal)),
        ]
    )
    window = r.choice([uc.Fixed("1 minute"), uc.Sessions("30 seconds"), uc.Sliding("2 minutes", "1 minute")])
    allowed = trigger.child if late is None and isinstance(trigger, uc.Repeatedly) else trigger
    finishes = isinstance(allowed, uc.AfterWatermark) and late is None
    options: dict[str, Any] = {"allow_finish": True} if finishes else {}
    flow = rows.window(window, trigger, **options).combine(by=["k", "id"], x=uc.Sum("x"))
    flow = flow.select("k", "id", "x", "event_time", "diff")
    return draw_step(r, flow) if r.random() < 0.4 else flow


@pytest.mark.parametrize("seed", seeds(30, 3_000))
def test_a_replay_in_shards_gives_the_rows_of_a_run_in_this_process(seed: int) -> None:
    flow, tables = replays.drawn(seed, draw_signalled, [2])
    assert replays.replayed(flow) == replays.run_locally(flow, tables)


@pytest.mark.parametrize("seed", seeds(10, 500))
def test_a_run_from_a_seed_goes_on_as_one_run(seed: int, tmp_path: Path) -> None:
    r = random.Random(seed)
    script: list[Any] = []
    for _ in range(r.randrange(4, 10)):
        rows = [(r.randrange(120), r.choice("abc"), r.randrange(9)) for _ in range(r.randrange(4))]
        script.append(keyed(*rows) if r.random() < 0.5 else told((0, r.choice(["flush", "no"]), 1)))
        if r.random() < 0.2:
            script.append(uc.Watermark(r.randrange(60) * SECOND, input=r.choice(["rows", "told"])))
    flow, cut = sums(), r.randrange(1, len(script))
    whole = shown(flow.run(script))
    first = flow.run(script[:cut])
    then = shown(flow.run(script[cut:], start=first.seed(tmp_path / "seed")))
    assert shown(first) + [(step + cut, *rest) for step, *rest in then] == whole


@pytest.mark.parametrize("breaks", [False, True])
def test_check_flow_draws_rows_and_signals(breaks: bool) -> None:
    flow = sums(trigger=lambda f: uc.AfterWatermark(early=uc.OnSignal(f, FLUSH), late=uc.AfterCount(1)))

    def expected(frames: Any) -> list[dict[str, Any]]:
        rows = frames["rows"].assign(minute=frames["rows"].ts.dt.floor("min"))
        if breaks:
            rows = rows[rows.x != 3]
        totals = rows.groupby(["k", "minute"], dropna=False).x.sum()
        return [{"k": None if k != k else k, "x": int(x)} for (k, _), x in totals.items()]

    def check() -> None:
        uc.testing.check_flow(flow, expected, examples=12, nulls=False, allow=("bad",))

    if not breaks:
        check()
        return
    with pytest.raises(FlowViolation):
        check()


def test_flows_together_share_a_grouping_with_signals() -> None:
    flow = sums()
    both = uc.together(all=flow, large=flow.where(uc.col("x") > 1))
    assert both.explain().count("stage 2") == 0
    script = [keyed((1, "a", 1), (2, "b", 2)), told((0, "flush", 1))]
    found = both.run(script)
    assert found["all"].panes.equals(flow.run(script).panes)
    assert found["large"]["k"].to_pylist() == ["b"]


def test_a_checkpoint_sees_other_signals() -> None:
    def made(when: Any = FLUSH, signals: bool = True) -> Any:
        flow = sums(when) if signals else sums(trigger=lambda f: uc.AfterWatermark(early=uc.AfterCount(1)))
        (print_,) = fingerprints(flow, graph_of(flow))
        return print_

    assert differences(made(), made()) is None
    assert "when of OnSignal 1 was col('kind') == 'flush'" in str(differences(made(), made(uc.col("kind") == "x")))
    assert "and are one source alone" in str(differences(made(), made(signals=False)))


def test_evolve_keeps_windows_and_refuses_other_signals(tmp_path: Path) -> None:
    seed = sums().run([keyed((1, "a", 1))]).seed(tmp_path / "old")
    rows, signals = uc.flow(KEYED, name="rows"), uc.flow(TOLD, name="told")
    trigger = uc.AfterWatermark(early=uc.OnSignal(signals, FLUSH))
    renamed = rows.window("1 minute", trigger, mode="retracting").combine(by="k", total=uc.Sum("x"))
    uc.evolve(seed, renamed, to=tmp_path / "new")
    found = renamed.run([keyed((2, "a", 2)), told((0, "flush", 1))], start=str(tmp_path / "new"))
    assert found["total"].to_pylist() == [3]
    with pytest.raises(StateMismatch, match="give history="):
        uc.evolve(seed, sums(None), to=tmp_path / "other")


def test_explain_names_the_flows() -> None:
    text = sums().explain()
    assert "source: rows, and the signals of the trigger of the next stage" in text
    assert "OnSignal 1: when=col('kind') == 'flush'" in text
    assert "AfterWatermark(early=OnSignal(told, when=col('kind') == 'flush'))" in text
    assert uc.OnSignal(uc.flow(TOLD)).explain() == "when a row of a flow arrives"


def test_inputs_without_names_have_those_of_the_step() -> None:
    rows, signals = uc.flow(KEYED), uc.flow(TOLD)
    flow = rows.window("1 minute", uc.AfterWatermark(early=uc.OnSignal(signals))).combine(by="k", x=uc.Sum("x"))
    one, other = (
        uc.Elements(entry.rows, input=name)
        for entry, name in ((keyed((1, "a", 1)), "keyed"), (told((0, "x", 1)), "signals"))
    )
    assert len(flow.run([one, other])) == 1


def test_several_flows_of_signals_have_a_port_each() -> None:
    rows = uc.flow(KEYED, name="rows")
    one, other = (uc.flow(TOLD, name=name) for name in ("told", "more"))
    both = uc.AllOf(uc.OnSignal(one, FLUSH), uc.OnSignal(other), uc.OnSignal(one, uc.col("kind") == "go"))
    flow = rows.window("1 minute", uc.Repeatedly(both)).combine(by="k", x=uc.Sum("x"))
    script = [keyed((1, "a", 1)), told((0, "flush", 1)), uc.Elements(told((0, "x", 1)).rows, input="more")]
    assert flow.run(script).num_rows == 0
    assert shown(flow.run([*script, told((0, "go", 1))])) == [(3, 1, "a", 1, "signal")]


def test_what_is_refused() -> None:
    rows = uc.flow(KEYED)
    with pytest.raises(InvalidArgument, match=r"takes the flow of signals, such as uc\.flow\(commands\)"):
        uc.OnSignal("commands")
    with pytest.raises(InvalidArgument, match=r"rows in windows need \.combine"):
        uc.OnSignal(rows.window("1 minute"))
    with pytest.raises(InvalidArgument, match="when must be an expression"):
        uc.OnSignal(rows, when="x")  # type: ignore[arg-type]
    with pytest.raises(UnknownColumn, match="did you mean 'kind'"):
        sums(uc.col("knd") == "x")
    with pytest.raises(TypeMismatch, match="gives booleans"):
        sums(uc.col("kind"))
    with pytest.raises(InvalidArgument, match="for which a text has no words"):
        rows.window("1 minute", "Repeatedly(OnSignal(commands))")
    with pytest.raises(InvalidArgument, match="each_batch"):
        uc.flow(KEYED, watermark="each_batch").window("1 minute", uc.OnSignal(rows), allow_finish=True).combine(
            n=uc.Count()
        )
