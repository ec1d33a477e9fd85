"""Functions with state and timers for each key, against a plain loop over dictionaries."""

from __future__ import annotations

import datetime as dt
import decimal
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from seeds import seeds
from stepping import SCHEMA, Driven, scripts, table_of, tuples

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch, UnknownColumn
from uncombine.panes.process import calls
from uncombine.panes.process.operator import ProcessOperator
from uncombine.panes.process.process import Process
from uncombine.windows.times import MAX_TIME, MIN_TIME

PLAIN = SCHEMA.remove(3)
SEEDS = pytest.mark.parametrize("seed", seeds(8, 200))


class Busy:
    """Does a bit of everything, as the rows say; retracts its last result while a timer holds the output watermark."""

    output = pa.schema({"what": pa.string(), "n": pa.int64()})
    state = pa.schema({"seen": pa.list_(pa.int64()), "last": pa.int64(), "at": pa.int64()})

    def on_row(self, row: dict[str, Any], state: dict[str, Any], ctx: Any) -> None:
        x, time = int(row["x"]), ctx.time
        state["seen"] = [*(state["seen"] or []), x * ctx.diff]
        match (x + time) % 6:
            case 0:
                ctx.set_timer("soon", time + 7, "event")
            case 1:
                ctx.set_timer("clock", ctx.processing_time + 5 + x, "processing")
            case 2:
                ctx.set_timer("kept", time + 40, "event", hold=time)
            case 3:
                ctx.delete_timer("soon")
            case 4:
                self.show(ctx)
            case 5 if len(state["seen"]) > 4:
                if state["last"] is not None:
                    ctx.emit({"what": "sum", "n": state["last"]}, time=state["at"], diff=-1)
                ctx.clear()

    def show(self, ctx: Any) -> None:
        state = ctx.state
        if state["last"] is not None:
            ctx.emit({"what": "sum", "n": state["last"]}, time=state["at"], diff=-1)
        state["last"], state["at"] = sum(place * x for place, x in enumerate(state["seen"], 1)), ctx.time
        ctx.emit({"what": "sum", "n": state["last"]})
        ctx.set_timer("forget", ctx.time + 30, "event", hold=ctx.time)

    def on_timer(self, tag: str, ctx: Any) -> None:
        ctx.emit({"what": tag, "n": len(ctx.state["seen"] or [])})
        if tag == "forget":
            ctx.state["last"] = ctx.state["at"] = None
        elif tag == "soon" and not ctx.ended and len(ctx.state["seen"] or []) % 3:
            ctx.state["seen"].append(0)
            ctx.set_timer("soon", ctx.time + 4, "event")
        elif tag == "clock" and ctx.time % 2:
            ctx.set_timer("clock", ctx.processing_time + 3, "processing")


@dataclass
class PlainKey:
    """A key of the plain loop, which is also the context of the calls."""

    world: Any
    key: Any
    state: dict[str, Any] = field(default_factory=lambda: dict.fromkeys(Busy.state.names))
    timers: dict[str, Any] = field(default_factory=dict)
    time = diff = 0

    @property
    def processing_time(self) -> int:
        return self.world.now

    @property
    def ended(self) -> bool:
        return self.world.ended

    def emit(self, values: Any, time: int | None = None, diff: int = 1) -> None:
        self.world.out[self.key, values["what"], values["n"], self.time if time is None else time] += diff

    def set_timer(self, tag: str, time: int, domain: str, hold: int | None = None) -> None:
        self.timers[tag] = (max(time, self.world.now + 1) if domain == "processing" else time, domain, self.time, hold)

    def delete_timer(self, tag: str) -> None:
        self.timers.pop(tag, None)

    def clear(self) -> None:
        self.state, self.timers = dict.fromkeys(self.state), {}


class PlainLoop:
    """The same steps over dictionaries."""

    def __init__(self) -> None:
        self.keys: dict[Any, PlainKey] = {}
        self.output_watermark, self.now, self.ended = MIN_TIME, 0, False

    def step(self, rows: Any, watermark: int, now: int) -> Counter[Any]:
        self.out: Counter[Any] = Counter()
        self._timers("processing", now)
        self.now = now
        for time, key, x, diff in rows:
            ctx = self.keys.setdefault(key, PlainKey(self, key))
            ctx.time, ctx.diff = time, diff
            Busy().on_row({"x": float(x)}, ctx.state, ctx)
        self.ended = watermark == MAX_TIME
        self._timers("event", watermark)
        holds = [hold for ctx in self.keys.values() for *_, hold in ctx.timers.values() if hold is not None]
        self.output_watermark = max(self.output_watermark, min([watermark, *holds]))
        return Counter({row: weight for row, weight in self.out.items() if weight})

    def _timers(self, domain: str, clock: int) -> None:
        for ctx in self.keys.values():
            while due := [(time, tag) for tag, (time, d, *_) in ctx.timers.items() if d == domain and time <= clock]:
                time, tag = min(due)
                _, _, at, hold = ctx.timers.pop(tag)
                ctx.time = max(time if domain == "event" else at, self.output_watermark) if hold is None else hold
                self.now = time if domain == "processing" else self.now
                Busy().on_timer(tag, ctx)


def driven(function: Any = Busy, lateness: int = 0, stored: bool = False, **options: Any) -> Driven:
    process = Process(function, allowed_lateness=f"{lateness} us", max_future=None, **{"by": "id", **options})
    return Driven(ProcessOperator(process, SCHEMA if process.diff else PLAIN), stored)


def added(given: list[Any]) -> Counter[Any]:
    """The rows of output and the sums of their weights."""
    sums: Counter[Any] = Counter()
    for *row, weight in given:
        sums[tuple(row)] += weight
    return sums


@SEEDS
@pytest.mark.parametrize("lateness", [0, 12])
def test_rule_58_59_calls_are_those_of_a_plain_loop(seed: int, lateness: int) -> None:
    run, plain = driven(lateness=lateness, stored=seed % 2 == 1, diff="w"), PlainLoop()
    rng = np.random.default_rng(seed)
    before, dropped, now = -(10**18), 0, 0
    for bundle in scripts(seed, steps=40, late=25):
        net: Counter[Any] = Counter()
        crowded = [(time - time % 5, *row) for time, *row in bundle.rows]
        for time, key, x, weight in crowded:
            if time + lateness < before:
                dropped += 1
            else:
                net[time, key, x] += weight
        rows = [(time, key, x, weight) for (time, key, x), weight in net.items() if weight]
        rows = sorted(rows, key=lambda row: (row[0], row[3] > 0))
        now += int(rng.choice([0, 2, 9]))
        given = run.step(table_of(crowded), bundle.watermark, now)
        assert added(given) == plain.step(rows, bundle.watermark, now)
        assert [(row[-1] > 0, row[-2]) for row in given] == sorted((row[-1] > 0, row[-2]) for row in given)
        assert run.operator.hold(run.state) == plain.output_watermark
        alive = [key for key, ctx in plain.keys.items() if ctx.timers or any(v is not None for v in ctx.state.values())]
        assert run.operator.count_entries(run.state) == len(alive)
        clocks = [t for ctx in plain.keys.values() for t, domain, *_ in ctx.timers.values() if domain == "processing"]
        assert run.operator.next_timer(run.state) == min(clocks, default=None)
        before = bundle.watermark
    assert run.state.counts.dropped == dropped > 0
    assert added(run.end()) == plain.step([], MAX_TIME, now)


class Told:
    """Notes each call, in a list of the test."""

    output = pa.schema({"x": pa.float64()})
    state = pa.schema({"n": pa.int64()})

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def on_row(self, row: dict[str, Any], state: dict[str, Any], ctx: Any) -> None:
        assert state is ctx.state
        self.calls.append((ctx.key, row, ctx.time, ctx.diff, ctx.watermark, ctx.processing_time))
        state["n"] = (state["n"] or 0) + 1

    def on_timer(self, tag: str, ctx: Any) -> None:
        self.calls.append((ctx.key, tag, ctx.time, ctx.watermark, ctx.processing_time))


def test_rule_58_rows_come_by_time_and_retractions_first_as_python_values() -> None:
    told = Told()
    run = driven(told, diff="w")
    run.step(table_of([(5, "a", 1, 1), (3, None, 2, 2), (5, "a", 3, -1), (4, "a", 4, 1), (4, "a", 4, -1)]), 2, now=9)
    instants = [datetime(1970, 1, 1, 0, 0, 0, time, tzinfo=UTC) for time in (3, 5, 5)]
    rows = [
        {"ts": at, "id": key, "x": x} for at, key, x in zip(instants, (None, "a", "a"), (2.0, 3.0, 1.0), strict=True)
    ]
    assert told.calls == [
        (None, rows[0], 3, 2, MIN_TIME, 9),
        ("a", rows[1], 5, -1, MIN_TIME, 9),
        ("a", rows[2], 5, 1, MIN_TIME, 9),
    ]


def calling(**methods: Any) -> type:
    return type("Mine", (Told,), {"on_timer": lambda self, tag, ctx: None, **methods})


class Timed(Told):
    def on_row(self, row: dict[str, Any], state: dict[str, Any], ctx: Any) -> None:
        ctx.set_timer("b", 10, "event")
        ctx.set_timer("a", 10, "event")
        ctx.set_timer("late", 1, "event")
        ctx.set_timer("end", MAX_TIME, "event")
        ctx.set_timer("now", 0, "processing")
        ctx.set_timer("then", 30, "processing")

    def on_timer(self, tag: str, ctx: Any) -> None:
        super().on_timer(tag, ctx)
        if tag == "a":
            ctx.set_timer("next", 12, "event")
            ctx.set_timer("b", 11, "event")
        if tag == "now":
            ctx.set_timer("again", ctx.processing_time + 1, "processing")


def test_rule_59_timers_fire_in_the_order_of_time_and_tag() -> None:
    timed = Timed()
    run = driven(timed)
    run.step(table_of([(5, "k", 1, 1)], PLAIN), 4, now=20)
    assert timed.calls == [("k", "late", 1, 4, 20)]
    assert run.operator.next_timer(run.state) == 21
    timed.calls.clear()
    run.step(PLAIN.empty_table(), 20, now=50)
    assert timed.calls == [
        *(("k", tag, 5, 4, at) for tag, at in [("now", 21), ("again", 22), ("then", 30)]),
        *(("k", tag, at, 20, 50) for tag, at in [("a", 10), ("b", 11), ("next", 12)]),
    ]
    timed.calls.clear()
    assert run.operator.count_entries(run.state) == 1
    run.end()
    assert timed.calls == [("k", "end", 20, MAX_TIME, 50)]


class Buffer(Told):
    """Gives each row at its own time once the watermark is 10 microseconds after it."""

    def on_row(self, row: dict[str, Any], state: dict[str, Any], ctx: Any) -> None:
        ctx.set_timer(str(row["x"]), ctx.time + 10, "event", hold=ctx.time)

    def on_timer(self, tag: str, ctx: Any) -> None:
        ctx.emit({"x": float(tag)})


def test_rule_60_a_timer_holds_the_output_watermark_at_the_time_of_its_results() -> None:
    run = driven(Buffer, by=())
    run.step(table_of([(5, "a", 1, 1), (3, "a", 2, 1)], PLAIN), 12)
    assert run.operator.hold(run.state) == 3
    assert run.step(PLAIN.empty_table(), 14) == [(2.0, 3, 1)]
    assert run.operator.hold(run.state) == 5
    assert run.end() == [(1.0, 5, 1)]


def test_rule_58_the_state_of_a_key_leaves_when_it_is_null_and_has_no_timer() -> None:
    class Twice(Told):
        def on_row(self, row: dict[str, Any], state: dict[str, Any], ctx: Any) -> None:
            super().on_row(row, state, ctx)
            if state["n"] == 2:
                ctx.clear()
                assert state == {"n": None}

    run = driven(Twice, stored=True)
    for held in (1, 0, 1):
        run.step(table_of([(5, "a", 1, 1)], PLAIN), 0)
        assert run.operator.count_entries(run.state) == held


def test_keys_of_any_kind_come_as_a_value_or_as_a_tuple() -> None:
    for by, keys in (("x", [0.0, "nan", None]), (("x", "id"), [(0.0, "a"), ("nan", "a"), (None, "a")]), ((), [()])):
        told = calling(output=pa.schema({"y": pa.int64()}))()
        run = driven(told, by=by)
        rows = [
            (1, "a", 0.0, 1),
            (2, "a", -0.0, 1),
            (3, "a", float("nan"), 1),
            (4, "a", float("nan"), 1),
            (5, "a", None, 1),
        ]
        run.step(table_of(rows, PLAIN).cast(PLAIN), 0)
        run.step(table_of(rows, PLAIN), 0)
        assert run.operator.count_entries(run.state) == len(keys)
        found = [key for key, *_ in told.calls]
        plain = [
            tuple("nan" if v != v else v for v in key) if isinstance(key, tuple) else "nan" if key != key else key
            for key in found
        ]
        assert set(plain) == set(keys)


@pytest.mark.parametrize(
    ("on_row", "error", "words"),
    [
        (lambda self, row, state, ctx: ctx.emit({"y": 1}), InvalidArgument, r"ctx.emit\(\) has no column 'y'"),
        (lambda self, row, state, ctx: ctx.emit({"x": "a"}), TypeMismatch, "does not fit Mine.output"),
        (lambda self, row, state, ctx: ctx.emit({}, diff=0.5), TypeMismatch, "whole number"),
        (lambda self, row, state, ctx: ctx.emit({}, time=6), InvalidArgument, "later stages would drop"),
        (lambda self, row, state, ctx: ctx.emit({}, time=10**18), InvalidArgument, "outside the years"),
        (lambda self, row, state, ctx: ctx.set_timer("a", 9, "event", hold=6), InvalidArgument, "hold the output"),
        (lambda self, row, state, ctx: ctx.set_timer("a", 9, "watermark"), InvalidArgument, "'event' or 'processing'"),
        (lambda self, row, state, ctx: ctx.set_timer(3, 9, "event"), TypeMismatch, "tag must be a text"),
        (lambda self, row, state, ctx: state.update(m=1), InvalidArgument, "Mine.state has no field 'm'"),
        (lambda self, row, state, ctx: state.update(n="a"), TypeMismatch, "does not fit Mine.state"),
    ],
)
def test_wrong_calls_are_refused(on_row: Any, error: type[Exception], words: str) -> None:
    run = driven(calling(on_row=on_row), lateness=3)
    run.step(PLAIN.empty_table(), 10)
    with pytest.raises(error, match=words):
        run.step(table_of([(20, "a", 1, 1)], PLAIN), 10)


VALUES = [
    (pa.int8(), -1),
    (pa.uint64(), 2**64 - 1),
    (pa.float16(), 1.5),
    (pa.decimal256(50, 2), decimal.Decimal("1.25")),
    (pa.string_view(), "ä"),
    (pa.large_string(), "ä"),
    (pa.dictionary(pa.int8(), pa.string()), "ä"),
    (pa.binary(2), b"ab"),
    (pa.binary_view(), b"ab"),
    (pa.date64(), dt.date(2024, 5, 1)),
    (pa.time64("us"), dt.time(1, 2, 3, 4)),
    (pa.timestamp("us"), dt.datetime(2024, 5, 1)),
    (pa.duration("us"), dt.timedelta(days=-1)),
    (pa.large_list(pa.string_view()), ["a", None]),
    (pa.list_(pa.int64(), 2), [1, 2]),
    (pa.map_(pa.string(), pa.struct([("x", pa.string_view())])), [("a", {"x": "y"})]),
    (pa.null(), None),
]


@pytest.mark.parametrize(("kind", "value"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_state_and_output_have_any_type(kind: pa.DataType, value: Any) -> None:
    class Keeps:
        output, state = pa.schema({"was": kind}), pa.schema({"value": kind, "rows": pa.int64()})

        def on_row(self, row: Any, state: Any, ctx: Any) -> None:
            if state["rows"]:
                ctx.emit({"was": state["value"]})
            state |= {"value": value, "rows": 1}

    flow = uc.flow(pa.schema({"ts": pa.timestamp("us"), "k": pa.string()})).process(by="k", function=Keeps)
    again = [uc.Elements([{"ts": i, "k": "a"}]) for i in range(3)]
    assert flow.run(again)["was"].to_pylist() == [value, value]


def test_an_error_in_a_function_names_the_call_and_the_key() -> None:
    run = driven(calling(on_row=lambda self, row, state, ctx: 1 / 0))
    with pytest.raises(ZeroDivisionError) as caught:
        run.step(table_of([(20, "a", 1, 1)], PLAIN), 10)
    assert caught.value.__notes__ == ["in Mine.on_row() for the key 'a'"]


def test_rule_59_a_chain_of_timers_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MOST_AT_THE_END", 50)

    class Ticks(Told):
        step = 1

        def on_row(self, row: dict[str, Any], state: dict[str, Any], ctx: Any) -> None:
            ctx.set_timer("tick", ctx.time, "event")

        def on_timer(self, tag: str, ctx: Any) -> None:
            ctx.set_timer("tick", ctx.time + self.step, "event")

    run = driven(Ticks)
    run.step(table_of([(20, "a", 1, 1)], PLAIN), 400)
    with pytest.raises(InvalidArgument, match=r"again and again as the input ends: set it only where ctx\.ended"):
        run.end()
    Ticks.step = 0
    with pytest.raises(InvalidArgument, match="is not after the timer that sets it"):
        driven(Ticks).step(table_of([(20, "a", 1, 1)], PLAIN), 400)


def test_with_a_watermark_of_each_batch_timers_of_event_time_fire_in_their_bundle() -> None:
    timed = Timed()
    run = driven(timed)
    run.step(table_of([(5, "k", 1, 1)], PLAIN), 0, each_batch=True)
    assert [call[1] for call in timed.calls] == ["late", "a", "b", "next"]
    assert run.operator.count_entries(run.state) == 1


@pytest.mark.parametrize(
    ("function", "options", "error", "words"),
    [
        (3, {}, InvalidArgument, r"int has no method on_row\(row, state, ctx\)"),
        (type("Mine", (Told,), {"output": {"x": "int"}}), {}, TypeMismatch, "Mine.output must be an Arrow schema"),
        (
            type("Mine", (Told,), {"output": pa.schema({"id": pa.string()})}),
            {},
            InvalidArgument,
            "'id' is a column of every",
        ),
        (Told, {"by": "user"}, UnknownColumn, r"process\(by=\)"),
    ],
)
def test_wrong_use_is_refused_when_built(function: Any, options: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        driven(function, **options)


def test_a_function_without_timers_needs_no_method_for_them() -> None:
    class Counting:
        output, state = pa.schema({"n": pa.int64()}), pa.schema({"n": pa.int64()})

        def on_row(self, row: dict[str, Any], state: dict[str, Any], ctx: Any) -> None:
            state["n"] = (state["n"] or 0) + 1
            ctx.emit({"n": state["n"]})
            if state["n"] == 2:
                ctx.set_timer("never", ctx.time + 1, "event")

    operator = ProcessOperator(Process(Counting), PLAIN)
    stepped = operator.step(operator.initial(), table_of([(20, "a", 1, 1)], PLAIN), 10)
    assert tuples(stepped.panes) == [(1, 20, 1)]
    with pytest.raises(InvalidArgument, match=r"Counting sets a timer, and has no method on_timer\(tag, ctx\)"):
        operator.step(stepped.state, table_of([(21, "a", 1, 1)], PLAIN), 10)


def test_emitted_values_are_those_of_the_call() -> None:
    def on_row(self: Any, row: dict[str, Any], state: dict[str, Any], ctx: Any) -> None:
        row.pop("ts"), row.pop("id")
        ctx.emit(row)
        row["x"] = 7.0

    operator = ProcessOperator(Process(calling(on_row=on_row)), PLAIN)
    panes = operator.step(operator.initial(), table_of([(20, "a", 1, 1)], PLAIN), 10).panes
    assert tuples(panes) == [(1.0, 20, 1)]
