"""Broadcast rows of `process`, step by step, against the calls in plain Python."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from broadcast_rows import BROADCAST, KEYED, Judge, PlainLoop, Quiet, added, bundles, table_of
from seeds import seeds
from stepping import Log

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch
from uncombine.panes.process.broadcast import BroadcastInput
from uncombine.panes.process.broadcast_operator import BroadcastOperator
from uncombine.panes.process.process import Process
from uncombine.panes.state.chunk_log import load, save
from uncombine.windows.times import MAX_TIME


def operator_of(function: Any, lateness: int = 0, weighted: bool = True) -> BroadcastOperator:
    diff = "w" if weighted else None
    process = Process(
        function,
        by="k",
        diff=diff,
        allowed_lateness=f"{lateness} us",
        max_future=None,
        broadcast=BroadcastInput("ts", diff),
    )
    schemas = (KEYED, BROADCAST) if weighted else (KEYED.remove(3), BROADCAST.remove(3))
    return BroadcastOperator(process, *schemas)


@pytest.mark.parametrize("function", [Judge, Quiet])
@pytest.mark.parametrize("seed", seeds(40, 2_000))
def test_rule_97_98_calls_are_those_of_a_plain_loop(seed: int, function: Any) -> None:
    r, lateness = Random(seed), (0, 12_000)[seed % 2]
    operator, plain = operator_of(function, lateness), PlainLoop(function(), lateness)
    state, log, manifest = operator.initial(), Log(), None
    for keyed, broadcast, watermark in [*bundles(r, 30), ([], [], MAX_TIME)]:
        loaded = load(manifest, log, operator)
        bundle = operator.bundle([table_of(keyed, KEYED), table_of(broadcast, BROADCAST)], (), 0)
        stepped = operator.step(state if seed % 3 else loaded.state, bundle, watermark)
        state = stepped.state
        manifest = save(state, loaded, log)
        assert added(stepped.panes) == plain.step(keyed, broadcast, watermark)
        assert operator.hold(state) == plain.output_watermark
        assert state.counts.dropped == plain.late
    assert plain.late > 0
    assert operator.count_entries(state) == 0
    assert all(len(store) == 0 for store in state.stores.values() if store is not None)


def test_rule_97_what_no_broadcast_row_changed_is_not_written_again() -> None:
    operator = operator_of(Quiet)
    none = (table_of([], KEYED), table_of([], BROADCAST))
    told = operator.step(operator.initial(), (none[0], table_of([(5, 1, 7, 1)], BROADCAST)), 0).state
    after = operator.step(told, (table_of([(6, "a", 3, 1)], KEYED), none[1]), 0).state
    assert after.stores["shared"] is told.stores["shared"]


class Order:
    """Notes broadcast rows in the order of their calls."""

    output, state = pa.schema({"order": pa.list_(pa.int64())}), pa.schema({"n": pa.int64()})
    shared = pa.schema({"order": pa.list_(pa.int64())})

    def on_broadcast(self, row: dict[str, Any], shared: dict[str, Any], ctx: Any) -> None:
        shared["order"] = [*(shared["order"] or ()), row["bound"] * ctx.diff]

    def on_row(self, row: dict[str, Any], state: dict[str, Any], ctx: Any) -> None:
        ctx.emit({"order": ctx.shared["order"]})


@pytest.mark.parametrize("weighted", [False, True])
def test_rule_98_broadcast_rows_of_one_time_have_one_order_however_they_come(weighted: bool) -> None:
    operator, r, found = operator_of(Order, weighted=weighted), Random(5), set()
    rows = [(5, rule, rule, 1) for rule in range(1, 8)] + [(4, 0, 90, 1), (6, 0, 91, 1)]
    rows += [(5, 0, 50, -1)] if weighted else []
    keyed = table_of([(9, "a", 0, 1)], KEYED, weighted)
    for _ in range(10):
        r.shuffle(rows)
        bundle = (keyed, table_of(rows, BROADCAST, weighted))
        found.add(tuple(operator.step(operator.initial(), bundle, 0).panes["order"].to_pylist()[0]))
    (order,) = found
    assert (order[0], order[-1]) == (90, 91)
    assert not weighted or order[1] == -50
    assert sorted(order[1 + weighted : -1]) == list(range(1, 8))


def test_rule_98_a_row_sees_broadcast_rows_of_its_time_and_before_and_of_earlier_bundles() -> None:
    operator = operator_of(Order)

    def seen(state: Any, keyed: list[Any], broadcast: list[Any]) -> tuple[Any, Any]:
        result = operator.step(state, (table_of(keyed, KEYED), table_of(broadcast, BROADCAST)), 0)
        return result.state, result.panes["order"].to_pylist()

    rows = [(time, "a", 0, 1) for time in (4, 5, 6)]
    state, shown = seen(operator.initial(), rows, [(5, 1, 1, 1), (7, 1, 2, 1)])
    assert shown == [None, [1], [1]]
    _, shown = seen(state, [(4, "a", 1, 1)], [])
    assert shown == [[1, 2]]


def test_rule_97_a_broadcast_row_is_never_late_and_a_bad_one_is_counted() -> None:
    operator = operator_of(Order)
    state = operator.step(operator.initial(), (table_of([], KEYED), table_of([], BROADCAST)), 1_000_000).state
    told = table_of([(5, 1, 3, 1), (None, 1, 4, 1)], BROADCAST)
    keyed = table_of([(5, "a", 0, 1), (2_000_000, "a", 0, 1)], KEYED)
    result = operator.step(state, (keyed, told), 1_000_000)
    assert result.panes["order"].to_pylist() == [[3]]
    assert {why: places.tolist() for why, places in result.left_out.items()} == {"late": [0], "bad": [3]}
    assert (result.state.counts.dropped, result.state.counts.bad) == (1, 1)


def calling(**methods: Any) -> type:
    return type("Mine", (Order,), methods)


@pytest.mark.parametrize(
    ("methods", "error", "words"),
    [
        ({"on_broadcast": lambda s, row, shared, ctx: ctx.emit({})}, InvalidArgument, r"ctx.emit is of a key"),
        ({"on_broadcast": lambda s, row, shared, ctx: ctx.key}, InvalidArgument, r"write on_broadcast_key\(row, key"),
        ({"on_broadcast": lambda s, row, shared, ctx: ctx.x}, AttributeError, "has no 'x'"),
        (
            {"on_broadcast": lambda s, row, shared, ctx: shared.update(m=1)},
            InvalidArgument,
            "Mine.shared has no field 'm'",
        ),
        (
            {"on_broadcast": lambda s, row, shared, ctx: shared.update(order="a"), "on_row": lambda *_: None},
            TypeMismatch,
            "does not fit Mine.shared",
        ),
        ({"on_row": lambda s, row, state, ctx: ctx.shared.update(order=None)}, AttributeError, "update"),
    ],
)
def test_wrong_calls_are_refused(methods: Any, error: type[Exception], words: str) -> None:
    operator = operator_of(calling(**methods))
    with pytest.raises(error, match=words):
        operator.step(operator.initial(), (table_of([(5, "a", 0, 1)], KEYED), table_of([(5, 1, 3, 1)], BROADCAST)), 0)


def test_an_error_says_in_which_call_it_was() -> None:
    def fails(self: Any, *arguments: Any) -> None:
        raise ValueError("no")

    for name in ("on_broadcast", "on_broadcast_key"):
        keeps = lambda self, row, state, ctx: state.update(n=1)  # noqa: E731
        operator = operator_of(calling(on_row=keeps, **{name: fails}))
        with pytest.raises(ValueError, match="no") as raised:
            operator.step(
                operator.initial(), (table_of([(5, "a", 0, 1)], KEYED), table_of([(6, 1, 3, 1)], BROADCAST)), 0
            )
        assert f"in Mine.{name}()" in raised.value.__notes__[0]


def test_functions_and_columns_that_do_not_fit_are_refused_before_anything_starts() -> None:
    rows = uc.flow(table_of([(5, "a", 0, 1)], KEYED, False))
    told = uc.flow(table_of([(5, 1, 3, 1)], BROADCAST, False))
    with pytest.raises(InvalidArgument, match=r"Order has a method on_broadcast\(\), and no rows come to it"):
        rows.process(function=Order)
    with pytest.raises(InvalidArgument, match=r"Mine has no method on_broadcast\(row, shared, ctx\): write one"):
        rows.process(function=calling(on_broadcast=None), broadcast=told)
    with pytest.raises(TypeMismatch, match=r"Mine.shared must be an Arrow schema"):
        rows.process(function=calling(shared=None), broadcast=told)
    with pytest.raises(InvalidArgument, match=r"process\(\) takes a flow, not a Table"):
        rows.process(function=Order, broadcast=pa.table({"x": [1]}))
    with pytest.raises(InvalidArgument, match=r"process\(\) has no late="):
        rows.process(function=Order, broadcast=told, late="emit")
    with pytest.raises(InvalidArgument, match=r"process\(\) has no option 'lateness'"):
        rows.process(function=Order, broadcast=told, lateness="1 s")
    with pytest.raises(InvalidArgument, match=r"the event time column 'ts' of the flow of broadcast rows was left out"):
        rows.process(function=Order, broadcast=told.select("rule", "bound"))
    maps = told.map(lambda table: table.append_column("m", pa.nulls(table.num_rows, pa.map_(pa.string(), pa.int64()))))
    with pytest.raises(TypeMismatch, match=r"process\(broadcast=\).*'m'"):
        rows.process(function=Order, broadcast=maps)


class Reads:
    """Reads a shared state that the step does not have."""

    output, state = pa.schema({"x": pa.int64()}), pa.schema({"n": pa.int64()})

    def on_row(self, row: dict[str, Any], state: dict[str, Any], ctx: Any) -> None:
        ctx.emit({"x": ctx.shared["x"]})


def test_a_step_without_broadcast_rows_has_no_shared_state() -> None:
    with pytest.raises(InvalidArgument, match=r"give process\(\) their flow by broadcast="):
        uc.flow(table_of([(5, "a", 0, 1)], KEYED, False)).process(function=Reads).run()
