"""Lookups in flows: which row is met, retractions, bounded runs, shards, later steps, and wrong use."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from engine import Engine
from opened import opened
from seeds import seeds
from streams import rows_flow
from table_scripts import LOOKUPS

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch, UnknownColumn
from uncombine.panes.lookup.lookup import Lookup
from uncombine.panes.lookup.operator import LookupOperator
from uncombine.testing import check_flow

TIME = pa.timestamp("us", "UTC")
SECOND = 1_000_000
ORDERS = pa.schema({"ts": TIME, "user": pa.string(), "n": pa.int64(), "w": pa.int64()})
USERS = pa.schema({"at": TIME, "id": pa.string(), "city": pa.string(), "w": pa.int64()})


def orders(*rows: tuple[int, str, int, int]) -> uc.Elements:
    return uc.Elements([dict(zip(ORDERS.names, row, strict=True)) for row in rows], input="orders")


def users(*rows: tuple[int, str, str, int]) -> uc.Elements:
    return uc.Elements([dict(zip(USERS.names, row, strict=True)) for row in rows], input="users")


def looked_up(how: Any = "lookup", left: str | None = "w", **options: Any) -> uc.Flow:
    flows = opened(ORDERS, name="orders", diff=left), opened(USERS, name="users", time="at", diff="w")
    if left is None:
        flows = flows[0].select("ts", "user", "n"), flows[1]
    return flows[0].join(flows[1], on={"user": "id"}, how=how, **options)


def shown(result: uc.Result) -> list[tuple[Any, ...]]:
    return [(row["step"], row["n"], row["city"], row["diff"]) for row in result.to_pylist()]


def summed(panes: pa.Table) -> Counter[str]:
    """Rows with the sums of their weights: equal right rows of a shard may be met one by one, or as one."""
    out: Counter[str] = Counter()
    for row in panes.to_pylist():
        out[repr([row[name] for name in panes.column_names if name != "diff"])] += row["diff"]
    return out


MOVED = ((1, "a", "Rome", -1), (2, "a", "Oslo", 1))


def test_rule_99_a_row_meets_what_is_valid_when_it_comes_and_is_not_corrected() -> None:
    script = [
        orders((5, "a", 1, 1)),
        users((1, "a", "Rome", 1)),
        orders((5, "a", 2, 1)),
        users(*MOVED),
        orders((4, "a", 3, 1), (6, "b", 4, 1)),
        users((2, "a", "Oslo", -1)),
        orders((7, "a", 5, 1)),
    ]
    result = looked_up(left=None).run(script)
    assert shown(result) == [(2, 2, "Rome", 1), (4, 3, "Oslo", 1)]
    assert [uc.timestamp(row["event_time"]) for row in result.to_pylist()] == [5, 4]
    every = looked_up("left_lookup", left=None).run(script)
    assert shown(every) == [
        *((0, 1, None, 1), (2, 2, "Rome", 1), (4, 3, "Oslo", 1), (4, 4, None, 1), (6, 5, None, 1)),
    ]


def test_rule_99_right_rows_of_a_bundle_come_before_its_left_rows() -> None:
    """A change, and the order that it comes with: in any order of the inputs, and in tables that are read whole."""
    rows = {"orders": [(9, "a", 1)], "users": [(3, "a", "Oslo")]}
    tables = {
        name: pa.Table.from_pylist([dict(zip(schema.names[:3], row, strict=True)) for row in rows[name]])
        for name, schema in (("orders", ORDERS), ("users", USERS))
    }
    sources = [uc.flow(tables["orders"], name="orders"), uc.flow(tables["users"], time="at", name="users")]
    both = sources[0].join(sources[1], on={"user": "id"}, how="lookup")
    assert both.run().select(["n", "city"]).to_pylist() == [{"n": 1, "city": "Oslo"}]
    grouped = sources[1].window(uc.Global()).combine(by="id", city=uc.Max("city"))
    last = sources[0].join(grouped.select("id", "city", "event_time", "diff"), on={"user": "id"}, how="lookup")
    assert last.run().select(["n", "city"]).to_pylist() == [{"n": 1, "city": "Oslo"}]


@pytest.mark.parametrize("how", LOOKUPS)
def test_rule_100_a_retraction_retracts_what_its_row_gave(how: str) -> None:
    script = [
        orders((5, "a", 1, 1)),
        users((1, "a", "Rome", 2)),
        orders((5, "a", 1, 2)),
        users((1, "a", "Rome", -2), (2, "a", "Oslo", 1)),
        orders((5, "a", 1, -1)),
        orders((5, "a", 1, -2)),
        orders((5, "a", 1, -1)),
        orders((5, "a", 1, 1)),
        orders((5, "a", 1, 1)),
    ]
    alone = how == "left_lookup"
    assert Counter(shown(looked_up(how).run(script))) == Counter(
        [
            *((2, 1, "Rome", 4), (4, 1, "Rome", -2), (5, 1, "Rome", -2), (8, 1, "Oslo", 1)),
            *([(0, 1, None, 1), (5, 1, None, -1)] if alone else []),
        ]
    )


def test_rule_100_a_left_row_and_its_retraction_are_late_together() -> None:
    both = looked_up(allowed_lateness="5 us")
    marks = [uc.Watermark(12, input=name) for name in ("orders", "users")]
    script = [
        *(users((1, "a", "Rome", 1)), orders((7, "a", 1, 1), (6, "a", 2, 1)), *marks),
        orders((7, "a", 1, -1), (6, "a", 2, -1), (6, "a", 3, 1)),
        users(*MOVED),
        orders((7, "a", 4, 1)),
    ]
    result = both.run(script)
    assert shown(result) == [(1, 2, "Rome", 1), (1, 1, "Rome", 1), (4, 1, "Rome", -1), (6, 4, "Oslo", 1)]
    out = result.left_out.to_pylist()
    assert [(row["side"], row["why"], row["row"]["n"]) for row in out] == [("left", "late", 2), ("left", "late", 3)]
    assert result.output_watermarks[-1] == 12 - 5


def test_a_later_step_takes_what_was_given_and_what_was_retracted() -> None:
    both = looked_up("left_lookup", allowed_lateness="1 minute")
    counts = both.window(uc.Fixed("1 second")).combine(by="city", n=uc.Sum("n"))
    script = [
        users((1, "a", "Rome", 1)),
        orders((5, "a", 1, 1), (6, "b", 2, 1)),
        users(*MOVED),
        orders((7, "a", 4, 1), (6, "b", 2, -1)),
        uc.Watermark(None),
    ]
    totals = {row["city"]: row["n"] for row in counts.run(script).table().to_pylist()}
    assert totals == {"Rome": 1, "Oslo": 4}


def test_weights_of_right_rows_count_in_the_next_step() -> None:
    both = looked_up(left=None)
    script = [users((1, "a", "Rome", 3)), orders((5, "a", 1, 1)), uc.Watermark(None)]
    assert both.window(uc.Global()).combine(n=uc.Count()).run(script)["n"].to_pylist() == [3]


@pytest.mark.parametrize("seed", seeds(10, 500))
def test_shards_of_a_stream_give_the_rows_of_one_operator(seed: int) -> None:
    """Micro-batches of both inputs, cut into tasks, in any order, with new workers in between."""
    r, how = random.Random(seed), random.Random(seed).choice(LOOKUPS)
    schemas = {"orders": ORDERS, "users": USERS}
    orders, users = (
        rows_flow(schema, time=schema.names[0], name=name, watermark="20 us", diff="w", shards=3)
        for name, schema in schemas.items()
    )
    engine = Engine(orders.join(users, on={"user": "id"}, how=how, allowed_lateness="30 us"), seed)
    options = Lookup({"user": "id"}, how, allowed_lateness="30 us", right_time="at", left_diff="w", right_diff="w")
    operator = LookupOperator(options, ORDERS, USERS)
    state, latest = operator.initial(), dict.fromkeys(schemas, -(2**62))
    given: dict[str, list[tuple[Any, ...]]] = {"orders": [], "users": []}
    for place in range(10):
        tables = {}
        for name, schema in schemas.items():
            rows = []
            for _ in range(r.randrange(6)):
                if given[name] and r.random() < 0.4:
                    rows.append((*r.choice(given[name])[:3], -1))
                else:
                    value = r.randrange(4) if name == "orders" else r.choice(["Rome", "Oslo", None])
                    rows.append((place * 10 + r.randrange(-30, 20), r.choice(["a", "b", None]), value, 1))
                    given[name].append(rows[-1])
            tables[name] = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
            latest[name] = max([latest[name], *(row[0] - 20 for row in rows)])
        result = operator.step(state, tuple(tables.values()), watermark=min(latest.values()))
        panes, counted = engine.batch(tables, 1_000 + place)
        assert summed(panes) == summed(result.panes.select(panes.column_names))
        late = result.state.counts.dropped - state.counts.dropped
        assert sum(one.get("rows_dropped", 0) for one in counted) == late
        state = result.state
        if r.random() < 0.3:
            engine.restart()


def of_arrival(frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Each left row with the right rows that had come by its entry of the script."""
    left, right = (frames[name].reset_index() for name in ("left", "right"))
    pairs = left.dropna(subset="k").merge(right.dropna(subset="k"), on="k", suffixes=("_left", "_right"))
    return pairs[pairs.step_right <= pairs.step_left][["k", "ts_left", "x_left", "ts_right", "x_right"]]


@pytest.mark.parametrize("breaks", [False, True])
def test_check_flow_works_through_a_lookup(breaks: bool) -> None:
    schema = pa.schema({"ts": TIME, "k": pa.string(), "x": pa.int64()})
    left, right = (uc.flow(schema, name=name, watermark="1 minute") for name in ("left", "right"))
    both = left.join(right, on="k", how="lookup")

    def expected(frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
        pairs = of_arrival(frames)
        return pairs[pairs.x_left != pairs.x_right] if breaks else pairs

    if breaks:
        with pytest.raises(uc.errors.FlowViolation):
            check_flow(both, expected, examples=100)
    else:
        check_flow(both, expected, examples=20)


def wrong(**options: Any) -> Any:
    return looked_up(**options)


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: wrong(within=("0 s", "1 s")), InvalidArgument, "whatever their times: leave within= out, or write"),
        (lambda: wrong(unmatched="final"), InvalidArgument, "with a match or none: leave unmatched= out"),
        (lambda: wrong(keep=None), InvalidArgument, "for allowed_lateness=: leave keep= out"),
        (lambda: wrong(how="look up"), InvalidArgument, "did you mean 'lookup'"),
        (lambda: wrong(allowed_lateness="-1 s"), InvalidArgument, "cannot be negative"),
        (lambda: wrong(suffixes=("", "")), InvalidArgument, "suffixes= takes two different texts"),
        (lambda: uc.flow(ORDERS).join(uc.flow(USERS, time="at"), on="user", how="lookup"), UnknownColumn, "on= of the"),
        (
            lambda: uc.flow(ORDERS).join(uc.flow(USERS, time="at"), on={"n": "id"}, how="lookup"),
            TypeMismatch,
            "on= joins the left column 'n'",
        ),
        (
            lambda: uc.flow(ORDERS, watermark="each_batch").join(
                uc.flow(USERS, time="at", watermark="each_batch"), on={"user": "id"}, how="lookup"
            ),
            InvalidArgument,
            "each_batch",
        ),
        (lambda: uc.flow(ORDERS).lookup_join, AttributeError, "write flow.join"),
        (
            lambda: uc.flow(ORDERS).join(uc.flow(USERS, time="at"), on={"user": "id"}),
            InvalidArgument,
            "or how='lookup' for those that are valid when a row comes",
        ),
    ],
)
def test_wrong_use_is_refused(make: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make()


def test_explain_says_what_the_state_keeps() -> None:
    text = looked_up("left_lookup", allowed_lateness="5 s").explain()
    assert "lookup join on user = id, rows without a match with nulls" in text
    assert "state: the right rows that are valid, for ever; left rows, with those that they met, until the" in text
    assert "for ever; no left rows" in looked_up(left=None).explain()
