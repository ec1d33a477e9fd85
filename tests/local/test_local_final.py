"""Final panes that threads combine, against the operators of a run here, and against raw rows in plain Python."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import finals
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bounded import bounded_flow
from reference.flows.case import grouped
from reference.flows.draw import draw, table
from seeds import seeds, share

import uncombine as uc
from uncombine.errors import UncombineError
from uncombine.flows.graph import graph_of
from uncombine.local import final_run
from uncombine.local.final_run import why_not_final
from uncombine.local.threads import in_threads

ALL = 1 << 40
TRIGGERS = (
    None,
    uc.AfterWatermark(),
    uc.AfterWatermark(late=uc.AfterCount(1)),
    uc.AfterWatermark(early=uc.AllOf(uc.AfterWatermark(), uc.AfterCount(2)), late=uc.Always()),
    uc.Repeatedly(uc.AfterWatermark()),
)


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """Any number of threads, and as many again as there were."""
    before = pa.cpu_count()
    yield
    pa.set_cpu_count(before)


def by_threads(flow: uc.Flow, monkeypatch: pytest.MonkeyPatch, rows: int, count: int) -> Any:
    pa.set_cpu_count(count)
    monkeypatch.setattr(final_run, "ROWS", rows)
    return flow.run()


def by_operators(flow: uc.Flow, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(final_run, "ROWS", ALL)
    return flow.run()


def rows_of(panes: pa.Table) -> Counter[str]:
    return Counter(map(repr, panes.to_pylist()))


def facts(result: Any) -> Any:
    stages = range(1, len(result.of_stages) + 1)
    return (
        result.panes.schema,
        rows_of(result.panes),
        [result.counts(stage) for stage in stages],
        rows_of(result.left_out),
        result.left_out.schema,
        (result.dropped_rows, result.output_watermarks, result.rows_kept),
    )


def drawn(seed: int) -> uc.Flow | None:
    """A random flow over a table; None if the library refuses it, or if it needs the operators."""
    case, r = draw(seed), random.Random(seed)
    for stage in case.stages:
        if r.random() < 0.95:
            ends = {"trigger": r.choice(TRIGGERS), "closing": r.choice(["non_empty", "never"]), "allow_finish": True}
            stage.options.update(ends)  # type: ignore[attr-defined]

    def between(flow: uc.Flow) -> uc.Flow:
        weights = r.choice([None, None, uc.col("diff") * 2, 0 - uc.col("diff"), uc.col("n")])
        return flow if weights is None or "diff" not in flow.schema.names else flow.with_columns(diff=weights)

    try:
        flow = grouped(uc.flow(table(case.bundles), diff="d" if case.changelog else None), case.stages, between)
    except UncombineError:
        return None
    return flow if why_not_final(graph_of(flow)) is None else None


def compared(seeds: range, monkeypatch: pytest.MonkeyPatch) -> int:
    count = 0
    for seed in seeds:
        flow = drawn(seed)
        if flow is None:
            continue
        count += 1
        r = random.Random(seed)
        expected = facts(by_operators(flow, monkeypatch))
        assert facts(by_threads(flow, monkeypatch, r.choice([1, 2, 5]), r.choice([1, 2, 3]))) == expected, seed
    return count


@pytest.mark.weekly
@pytest.mark.parametrize("first", seeds(400, 600, step=100))
def test_random_flows_give_the_panes_of_the_operators(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compared(range(first, first + 100), monkeypatch) > 20


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_000, 21_000, 1_000))
def test_many_random_flows_give_the_panes_of_the_operators(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compared(range(first, first + 1_000), monkeypatch)


NO_GAPS = [
    window
    for window in finals.WINDOWS
    if not isinstance(window, uc.Inherit | uc.Custom) and window != uc.Sliding("10 seconds", "1 minute")
]


@pytest.mark.weekly
@pytest.mark.parametrize("window", share(NO_GAPS), ids=repr)
@pytest.mark.parametrize("changelog", [False, True], ids=["rows", "changelog"])
def test_the_panes_are_those_of_raw_rows(window: uc.Window, changelog: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed, (count, by) in enumerate([(0, ("k",)), (1, ()), (60, ("k", "j")), (200, ("j",))]):
        given = finals.rows(count, seed, changelog)
        policy = "end_of_window" if changelog else finals.POLICIES[seed]
        source = uc.flow(given, diff="d" if changelog else None)
        flow = source.window(window, timestamp=policy).combine(by=by, **finals.COMBINERS)
        assert why_not_final(graph_of(flow)) is None
        panes = by_threads(flow, monkeypatch, 7, seed + 1).panes
        assert finals.found(panes, by) == finals.oracle(given, window, by, policy)


LONGEST = uc.from_scalar(
    "longest", create=int, add=max, merge=max, extract=lambda held: held, accumulator=pa.int64(), output=pa.int64()
)
NEEDS_OPERATORS = {
    "reports": lambda t: uc.flow(t, watermark="1 minute").window(uc.Fixed("1 minute")).combine(n=uc.Count()),
    "times of their own": lambda t: uc.flow(t, processing_time="at").window(uc.Fixed("1 minute")).combine(n=uc.Count()),
    "early": lambda t: (
        uc.flow(t).window(uc.Fixed("1 minute"), uc.AfterWatermark(early=uc.AfterCount(1))).combine(n=uc.Count())
    ),
    "closing": lambda t: uc.flow(t).window(uc.Fixed("1 minute"), closing="always").combine(n=uc.Count()),
    "gaps": lambda t: uc.flow(t).window(uc.Sliding("1 minute", "2 minutes")).combine(n=uc.Count()),
    "of rows": lambda t: uc.flow(t).window(uc.Sessions(uc.col("gap"))).combine(n=uc.Count()),
    "custom": lambda t: (
        uc.flow(t).window(uc.Custom(lambda times: (None, times, times + 1_000_000))).combine(n=uc.Count())
    ),
    "mapped": lambda t: uc.flow(t).window(uc.Fixed("1 minute")).combine(n=uc.Count().map(pc.negate)),
    "mapped inside": lambda t: (
        uc.flow(t)
        .window(uc.Fixed("1 minute"))
        .combine(n=uc.Struct(a=uc.Count() + 1, b=uc.Sum("d").map(pc.negate).where(uc.col("d") > 0)))
    ),
    "own": lambda t: uc.flow(t).window(uc.Fixed("1 minute")).combine(n=LONGEST("d")),
    "differences": lambda t: uc.flow(t, diff="d").window(uc.Fixed("1 minute"), mode="discarding").combine(n=uc.Count()),
    "functions": lambda t: uc.flow(t).map(lambda rows: rows).window(uc.Fixed("1 minute")).combine(n=uc.Count()),
    "filters": lambda t: (
        uc.flow(t).where(lambda rows: pc.equal(rows["d"], 1)).window(uc.Fixed("1 minute")).combine(n=uc.Count())
    ),
    "after": lambda t: (
        uc.flow(t).window(uc.Fixed("1 minute")).combine(n=uc.Count()).with_columns(m=lambda rows: rows["n"])
    ),
    "steps": lambda t: uc.flow(t).distinct("d").window(uc.Fixed("1 minute")).combine(n=uc.Count()),
    "no grouping": uc.flow,
    "unions": lambda t: uc.union(a=uc.flow(t), b=uc.flow(t)).window(uc.Fixed("1 minute")).combine(n=uc.Count()),
}


@pytest.mark.parametrize("name", NEEDS_OPERATORS)
def test_flows_that_need_operators_have_a_reason(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    times = pa.array([0, 1, 70_000_000], pa.timestamp("us", "UTC"))
    gaps = pa.array([1_000_000] * 3, pa.duration("us"))
    flow = NEEDS_OPERATORS[name](pa.table({"ts": times, "at": times, "d": [1, 1, 1], "gap": gaps}))
    assert why_not_final(graph_of(flow))
    expected = facts(by_operators(flow, monkeypatch))
    assert facts(by_threads(flow, monkeypatch, 1, 2)) == expected
    if name != "unions":
        assert "one thread, because" in flow.explain()


def test_explain_says_that_threads_combine_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"ts": pa.array([0, 1], pa.timestamp("us", "UTC"))})
    flow = uc.flow(rows).window(uc.Fixed("1 minute")).combine(n=uc.Count())
    assert "rows are combined in one thread, because more of them save nothing" in flow.explain()
    monkeypatch.setattr(final_run, "ROWS", 1)
    assert "rows are combined in threads" in flow.explain()


def test_a_table_without_a_usable_time_gives_no_panes_and_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"ts": pa.array([None, None], pa.timestamp("us", "UTC")), "x": [1, 2], "unused": ["a", "b"]})
    flow = uc.flow(rows).window(uc.Fixed("1 minute")).combine(total=uc.Sum("x"))
    result = by_threads(flow, monkeypatch, 1, 2)
    assert (result.num_rows, result.counts()["bad"]) == (0, 2)
    assert result.left_out["row"].to_pylist() == rows.to_pylist()


def test_threads_take_turns_at_a_reader_and_keep_the_order() -> None:
    pa.set_cpu_count(3)

    def reader(first: int) -> Iterator[int]:
        for number in range(first, first + 200):
            sum(range(2_000))  # Python refuses a second thread while one is in here
            yield number

    assert in_threads(lambda number: number + sum(range(500)) - 124_750, [reader(0), reader(500)]) == [
        *range(200),
        *range(500, 700),
    ]


def test_several_threads_work_at_once() -> None:
    pa.set_cpu_count(2)
    both = threading.Barrier(2, timeout=60)
    assert len(in_threads(lambda n: both.wait(), [iter([1, 2])])) == 2


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("where", ["reader", "work"])
def test_the_first_fault_ends_the_work(where: str, count: int) -> None:
    pa.set_cpu_count(count)
    done = []

    def reader() -> Iterator[int]:
        for number in range(10_000):
            if where == "reader" and number == 5:
                raise ValueError("of number 5")
            yield number

    def work(number: int) -> None:
        if where == "work" and number == 5:
            raise ValueError("of number 5")
        done.append(number)

    with pytest.raises(ValueError, match="of number 5"):
        in_threads(work, [reader()])
    assert len(done) < 5_000  # without a stop the other threads would do the rest


@pytest.mark.parametrize("weights", [uc.col("diff") * 2, 0 - uc.col("diff"), uc.col("s")], ids=repr)
@pytest.mark.parametrize("way", ["threads", "tasks of Spark"])
def test_weights_that_a_step_changes_count_in_the_next_grouping(
    weights: Any, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = pa.table({"ts": pa.array([60_000_000 * i for i in range(9)], pa.timestamp("us", "UTC")), "x": range(1, 10)})

    def flow(source: uc.Flow) -> uc.Flow:
        minutes = source.window(uc.Fixed("2 minutes"), allowed_lateness="1 hour", mode="retracting")
        changed = minutes.combine(s=uc.Sum("x")).with_columns(diff=weights)
        return changed.window(uc.Fixed("1 hour")).combine(total=uc.Sum("s"), n=uc.Count())

    expected = by_operators(flow(uc.flow(given)), monkeypatch)
    if way == "threads":
        found = by_threads(flow(uc.flow(given)), monkeypatch, 2, 2).panes
    else:
        found = flow(bounded_flow([given.slice(0, 4), given.slice(4)], "ts")).map(lambda rows: rows).df.toArrow()
    assert found.select(["total", "n"]).to_pylist() == expected.select(["total", "n"]).to_pylist()
    assert expected["n"].to_pylist() != [5]
