"""A step with several outputs: each has the rows of a step that emits to it alone."""

from __future__ import annotations

import decimal
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from row_steps import SCHEMA, Ledger, draw_rows, ledger, script_of
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch
from uncombine.flows.graph import graph_together

NUMBER = pa.schema({"n": pa.int64()})


class Emits:
    """Has the context of a call, and emits the rows of one output alone."""

    def __init__(self, ctx: Any, name: str | None) -> None:
        self.ctx, self.name = ctx, name

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ctx, name)

    def emit(self, values: Any, time: Any = None, diff: int = 1, to: str | None = None) -> None:
        if to == self.name:
            self.ctx.emit(values, time, diff)


def alone(name: str | None) -> Any:
    """The function `Ledger` with one output."""

    class Alone(Ledger):
        output = Ledger.output if name is None else Ledger.outputs[name]

        def on_row(self, row: dict[str, Any], state: dict[str, Any], ctx: Any) -> None:
            super().on_row(row, state, Emits(ctx, name))

    return Alone


def source(weighted: bool = False) -> uc.Flow:
    return uc.flow(SCHEMA, watermark="1 minute", processing_time="seen", diff="w" if weighted else None)


@pytest.mark.parametrize("seed", seeds(40, 2_000))
def test_rule_94_each_output_has_the_rows_of_a_step_that_emits_to_it_alone(seed: int) -> None:
    r, weighted = random.Random(seed), seed % 2 == 1
    flow, script = source(weighted), script_of({None: draw_rows(r, weighted).slice(0, 20)})
    followed = r.choice((None, *Ledger.outputs))
    for rows, name in zip(ledger(flow), (None, *Ledger.outputs), strict=True):
        want = flow.process(by="k", function=alone(name))
        assert rows.schema == want.schema
        assert rows.run(script).panes.equals(want.run(script).panes)
        if name != followed:
            continue
        # A step after it reads the rows, holds and retractions of this output.
        after, wanted = (
            one.window("5 minutes", "each row", "retracting").combine(by="k", total=uc.Sum("x"), n=uc.Count())
            for one in (rows, want)
        )
        assert after.run(script).panes.equals(wanted.run(script).panes)


def emitting(emit: Callable[[Any, dict[str, Any]], Any], output: pa.Schema | None = None) -> Any:
    """A function that does this with the context of each row."""

    class Mine:
        state = NUMBER

        def on_row(self, row: dict[str, Any], state: dict[str, Any], ctx: Any) -> None:
            emit(ctx, row)

    if output is not None:
        Mine.output = output  # type: ignore[attr-defined]
    return Mine


ROWS = pa.table({"ts": pa.array([1, 2, 2, 3], pa.timestamp("us", "UTC")), "k": ["a", "b", "a", "a"], "x": [5, 7, 9, 1]})


def test_rule_94_rows_that_are_alike_in_two_outputs_are_two_rows() -> None:
    def emit(ctx: Any, row: dict[str, Any]) -> None:
        ctx.emit({}, to="one")
        ctx.emit({}, diff=-1, to="other")
        ctx.emit({}, to="other")
        ctx.emit({}, diff=2, to="none")

    flow = uc.flow(ROWS).process(
        function=emitting(emit), outputs=dict.fromkeys(("one", "other"), NUMBER) | {"none": pa.schema([])}
    )
    assert [len(flow.output(name).run()) for name in ("one", "other", "none")] == [4, 0, 4]
    assert flow.output("none").schema.names == ["event_time", "diff"]
    assert flow.output("none").combine(n=uc.Count()).run()["n"].to_pylist() == [8]


def test_rule_94_without_an_output_of_the_function_the_step_gives_the_rows_of_all() -> None:
    def emit(ctx: Any, row: dict[str, Any]) -> None:
        ctx.emit({"n": row["x"]}, to="small" if row["x"] < 6 else "large")

    flow = uc.flow(ROWS).process("k", function=emitting(emit), outputs={"small": NUMBER, "large": NUMBER})
    rows = flow.run().select(["k", "small", "large"]).to_pylist()
    assert rows[0] == {"k": "a", "small": {"n": 5}, "large": None}
    assert sum(row["small"] is None for row in rows) == 2
    assert flow.output("large").run()["n"].to_pylist() == [row["large"]["n"] for row in rows if row["large"]]


def test_rule_94_rows_are_netted_output_by_output() -> None:
    """Maps have no hash, and equal rows that are added stay two rows where nothing is retracted."""

    def emit(ctx: Any, row: dict[str, Any]) -> None:
        for _ in range(2):
            ctx.emit({"m": [("x", 1)]}, to="maps")
            ctx.emit({"n": row["x"]}, time=ctx.time, to="numbers", diff=1 if row["x"] > 5 else -1)
            ctx.emit({"n": 1})

    outputs = {"maps": pa.schema({"m": pa.map_(pa.string(), pa.int64())}), "numbers": NUMBER}
    flow = uc.flow(ROWS).process("k", function=emitting(emit, NUMBER), outputs=outputs)
    assert flow.run()["diff"].to_pylist() == flow.output("maps").run()["diff"].to_pylist() == [1] * 8
    numbers = flow.output("numbers").run()
    rows = zip(numbers["n"].to_pylist(), numbers["diff"].to_pylist(), strict=True)
    assert sorted(rows) == [(1, -2), (5, -2), (7, 2), (9, 2)]


def test_outputs_have_any_types_and_the_same_columns_in_others() -> None:
    kinds = [pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.list_(pa.decimal128(5, 2)), pa.null()]
    values = ["ä", "ö", [decimal.Decimal("1.25"), None], None]
    outputs = {f"o{place}": pa.schema({"value": kind}) for place, kind in enumerate(kinds)}

    def emit(ctx: Any, row: dict[str, Any]) -> None:
        for name, value in zip(outputs, values, strict=True):
            ctx.emit({"value": value}, to=name)

    flow = uc.flow(ROWS).process(function=emitting(emit), outputs=outputs)
    assert [flow.output(name).run()["value"].to_pylist()[3] for name in outputs] == values


def test_two_outputs_are_of_one_step_and_its_function_is_called_once() -> None:
    calls = list[int]()

    def emit(ctx: Any, row: dict[str, Any]) -> None:
        calls.append(row["x"])
        ctx.emit({"n": row["x"]}, to="small" if row["x"] < 6 else "large")

    function, rows = emitting(emit), uc.flow(ROWS)

    def split(**outputs: pa.Schema) -> uc.Flow:
        return rows.process("k", function=function, outputs=outputs)

    flows = {
        "small": split(small=NUMBER, large=NUMBER).output("small"),
        "large": split(small=NUMBER, large=NUMBER).output("large").window("1 minute").combine(n=uc.Count()),
    }
    both = uc.together(**flows)
    assert len(graph_together(list(both.flows.values())).steps) == 2
    assert {name: len(result) for name, result in both.run().items()} == {"small": 2, "large": 1}
    assert len(calls) == len(ROWS)
    told = both.explain()
    assert "  small: stage 1 > output 'small'\n" in told
    assert "  stage 2 of stage 1 > output 'large': " in told
    assert "outputs={'small': 'n: int64', 'large': 'n: int64'}" in told
    other = split(small=NUMBER, large=pa.schema({"n": pa.int32()})).output("small")
    assert len(graph_together([flows["small"], other]).steps) == 2
    assert "output 1: name='small'" in flows["small"].explain()
    assert "output 1: name=&#x27;small&#x27;" in flows["small"]._repr_html_()


def of(emit: Callable[[Any], Any], output: pa.Schema | None = None, **outputs: Any) -> Callable[[], Any]:
    function = emitting(lambda ctx, row: emit(ctx), output)
    return lambda: uc.flow(ROWS).process("k", function=function, outputs=outputs or None).run()


def split(**outputs: Any) -> uc.Flow:
    return uc.flow(ROWS).process("k", function=emitting(lambda ctx, row: None), outputs=outputs)


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no name": (
        of(lambda ctx: ctx.emit({}), alerts=NUMBER, stats=NUMBER),
        InvalidArgument,
        "ctx.emit() of a step that has outputs by name needs the one to which the row goes: to='alerts' or to='stats'",
    ),
    "another name": (
        of(lambda ctx: ctx.emit({}, to="alert"), alerts=NUMBER, stats=NUMBER),
        InvalidArgument,
        "ctx.emit() names an output 'alert', which the step does not have: did you mean 'alerts'?",
    ),
    "an empty name": (of(lambda ctx: ctx.emit({}, to=""), NUMBER, alerts=NUMBER), InvalidArgument, "an output ''"),
    "no text": (of(lambda ctx: ctx.emit({}, to=[1]), NUMBER, alerts=NUMBER), InvalidArgument, "names an output [1]"),
    "no outputs": (
        of(lambda ctx: ctx.emit({}, to="alerts"), NUMBER),
        InvalidArgument,
        "ctx.emit() names an output 'alerts', and the step has none by name: write process(..., outputs={'alerts':",
    ),
    "another column": (
        of(lambda ctx: ctx.emit({"m": 1}, to="alerts"), pa.schema({"m": pa.int64()}), alerts=NUMBER),
        InvalidArgument,
        "ctx.emit() has no column 'm' for the output 'alerts'",
    ),
    "another type": (
        of(lambda ctx: ctx.emit({"n": "x"}, to="alerts"), NUMBER, stats=NUMBER, alerts=NUMBER),
        TypeMismatch,
        "a row that Mine emits does not fit the output 'alerts'",
    ),
    "another type of the function's own": (
        of(lambda ctx: ctx.emit({"n": "x"}), NUMBER, alerts=NUMBER),
        TypeMismatch,
        "a row that Mine emits does not fit Mine.output",
    ),
    "no dict": (lambda: uc.flow(ROWS).process(function=Ledger, outputs=NUMBER), TypeMismatch, "takes a dict with"),
    "no output": (lambda: uc.flow(ROWS).process(function=Ledger, outputs={}), TypeMismatch, "takes a dict with"),
    "no schema": (lambda: split(alerts={"n": "int"}), TypeMismatch, "columns of 'alerts' must be an Arrow schema"),
    "the name of a key": (lambda: split(k=NUMBER), InvalidArgument, "'k' is a column of every result: give the output"),
    "a key": (
        lambda: split(alerts=pa.schema({"k": pa.string()})),
        InvalidArgument,
        "'k' is a column of every result: leave it out of 'alerts'",
    ),
    "a number as a name": (
        lambda: uc.flow(ROWS).process(function=Ledger, outputs={3: NUMBER}),
        InvalidArgument,
        "the names of outputs as texts, and 3 is none",
    ),
    "an output of another name": (
        lambda: split(alerts=NUMBER, stats=NUMBER).output("alert"),
        InvalidArgument,
        "output() names an output 'alert', which the step does not have: did you mean 'alerts'?",
    ),
    "an output of a step with one": (
        lambda: uc.flow(ROWS).process(function=emitting(lambda ctx, row: None, NUMBER)).output("alerts"),
        InvalidArgument,
        "output() names an output 'alerts', and the step has none by name",
    ),
    "an output later": (
        lambda: split(alerts=NUMBER).output("alerts").output("alerts"),
        InvalidArgument,
        "output('alerts') comes right after the step that has outputs",
    ),
    "an output of no step": (lambda: uc.flow(ROWS).output("alerts"), InvalidArgument, "comes right after the step"),
    "an output without a name": (
        lambda: split(alerts=NUMBER).output(None),
        TypeMismatch,
        "takes the name of an output",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_is_refused(name: str) -> None:
    make, kind, says = WRONG[name]
    with pytest.raises(kind) as refused:
        make()
    assert says in str(refused.value)
