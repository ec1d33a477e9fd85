"""Flows that run as one: each has the result that it has by itself, and a step that they share is there once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from seeds import seeds
from together_flows import drawn_together

import uncombine as uc
from uncombine.errors import InvalidArgument, NoSuchStep
from uncombine.flows.graph import graph_together
from uncombine.flows.result import Result

ROWS = [{"ts": 20 * n * 1_000_000, "user": "ab"[n % 2], "x": n} for n in range(30)]
SCRIPT = [uc.Elements(ROWS[:15]), uc.Elements(ROWS[15:]), uc.Watermark(None)]


def source(**options: Any) -> uc.Flow:
    return uc.flow(pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string(), "x": pa.int64()}), **options)


def steps(**flows: uc.Flow) -> int:
    return len(graph_together(list(uc.together(**flows).flows.values())).steps)


def same(one: Result, other: Result) -> bool:
    """True for equal results, whose steps may be counted through in another order.

    A step of two inputs of a flow is there twice in a run by itself, with its counts.
    """
    if len(one.of_stages) < len(other.of_stages):
        return one.panes.equals(other.panes)
    return (
        one.panes.equals(other.panes)
        and sorted(map(repr, one.of_stages)) == sorted(map(repr, other.of_stages))
        and one.output_watermarks == other.output_watermarks
        and sorted(one.dropped_rows) == sorted(other.dropped_rows)
        and one.left_out.num_rows == other.left_out.num_rows
    )


def of_its_sources(flow: uc.Flow, script: list[Any]) -> list[Any]:
    """A script without the rows of other sources, of which the times stay."""
    names = {leaf.settings.name for leaf in graph_together([flow]).leaves}
    return [
        uc.Clock(entry.at) if isinstance(entry, uc.Elements) and entry.input not in names else entry for entry in script
    ]


@pytest.mark.parametrize("seed", seeds(200, 5_000))
def test_rule_92_each_flow_has_the_result_that_it_has_by_itself(seed: int) -> None:
    flows, script = drawn_together(seed)
    results = uc.together(**flows).run(script)
    assert list(results) == list(flows)
    for name, flow in flows.items():
        assert same(results[name], flow.run(of_its_sources(flow, script))), name


def test_a_shared_step_is_there_once_and_its_function_is_called_once() -> None:
    calls: list[int] = []

    def counted(table: pa.Table) -> pa.Table:
        calls.append(table.num_rows)
        return table

    users = source().map(counted, remember=True).window("1 minute").combine(by="user", total=uc.Sum("x"))
    flows = {
        "users": users,
        "top": users.window("5 minutes").combine(best=uc.Max("total")),
        "high": users.where(uc.col("total") > 9),
    }
    assert steps(**flows) == 3
    calls.clear()
    uc.together(**flows).run(SCRIPT)
    assert sum(calls) == len(ROWS)


def test_steps_are_shared_by_value() -> None:
    rows = source()

    def minutes(**options: Any) -> uc.Flow:
        return (
            rows.where(uc.col("x") > options.pop("above", 3))
            .window("1 minute", **options)
            .combine(by="user", n=uc.Count())
        )

    assert steps(a=minutes(), b=minutes()) == 1
    assert steps(a=minutes(), b=minutes(above=4)) == 2
    assert steps(a=minutes(), b=minutes(allowed_lateness="1 hour")) == 2
    assert steps(a=minutes(), b=minutes(trigger="early every 2 rows")) == 2
    assert steps(a=rows.map(lambda t: t).distinct("user"), b=rows.map(lambda t: t.slice(1)).distinct("user")) == 2
    other = source().where(uc.col("x") > 3).window("1 minute").combine(by="user", n=uc.Count())
    assert steps(a=minutes(), b=other) == 2, "another source"


def test_large_tables_go_through_each_flow_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uncombine.local.final_run.ROWS", 10)
    users = uc.flow(ROWS).window("1 minute").combine(by="user", total=uc.Sum("x"))
    flows = {"users": users, "top": users.window("5 minutes").combine(best=uc.Max("total"))}
    results = uc.together(**flows).run()
    assert all(results[name].panes.equals(flow.run().panes) for name, flow in flows.items())


def test_an_interrupt_has_the_results_so_far() -> None:
    given = list[int]()

    def once(table: pa.Table) -> pa.Table:
        given.append(table.num_rows)
        if len([rows for rows in given if rows]) == 2:
            raise KeyboardInterrupt
        return table

    late = source().window("1 minute", "each row").combine(by="user", n=uc.Count())
    flows = {"n": late, "again": late.map(once)}
    with pytest.raises(KeyboardInterrupt) as interrupt:
        uc.together(**flows).run(SCRIPT)
    results = interrupt.value.result  # type: ignore[attr-defined]
    assert list(results) == list(flows)
    assert all("interrupted" in result.note for result in results.values())


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "one flow": (lambda: uc.together(a=source()), InvalidArgument, "takes two flows or more, not 1"),
    "no flow": (lambda: uc.together(a=source(), b=5), InvalidArgument, "takes flows by name, but b= is a int"),
    "an open window": (
        lambda: uc.together(a=source(), b=source().window("1 minute")),
        InvalidArgument,
        "'b' ends with window(...): add .combine(...)",
    ),
    "two watermarks": (
        lambda: uc.together(a=source(watermark="1 minute"), b=source(watermark=uc.EachBatch())),
        InvalidArgument,
        "only one of 'a' and 'b' has EachBatch()",
    ),
    "a DataFrame": (
        lambda: uc.together(a=source(), b=source()).df,
        NoSuchStep,
        "flows together has no df: write write_stream(checkpoint=...).foreach_batch(function)",
    ),
    "a stream without Spark": (
        lambda: uc.together(a=source(), b=source()).write_stream(checkpoint="c"),
        InvalidArgument,
        "these flows run without Spark, so they have no stream to write: write run(script)",
    ),
    "tables without Spark": (
        lambda: uc.together(a=source(), b=source()).to_tables(
            {"a": "duckdb:x.db#a", "b": "duckdb:x.db#b"}, checkpoint="c"
        ),
        InvalidArgument,
        "so no query keeps their tables: write to_table(target) of each flow",
    ),
    "a table of no flow": (
        lambda: uc.together(alerts=source(), b=source()).to_tables({"alert": "duckdb:x.db#a"}, checkpoint="c"),
        InvalidArgument,
        "to_tables() names 'alert', and no flow is called so: did you mean 'alerts'?",
    ),
    "a flow without a table": (
        lambda: uc.together(a=source(), b=source()).to_tables({"a": "duckdb:x.db#a"}, checkpoint="c"),
        InvalidArgument,
        "to_tables() has no table for 'b'",
    ),
    "no rows": (lambda: uc.together(a=source(), b=source()).run(), InvalidArgument, "run() needs a script"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_is_refused(name: str) -> None:
    make, kind, says = WRONG[name]
    with pytest.raises(kind) as refused:
        make()
    assert says in str(refused.value)
