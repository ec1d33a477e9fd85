"""Operators over single rows after each other: what one gives, the next one takes, and none of it is late."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from seeds import seeds
from stepping import SCHEMA, scripts, table_of, tuples

from uncombine.panes.distinct.distinct import Distinct
from uncombine.panes.distinct.operator import DistinctOperator
from uncombine.panes.in_order.in_order import InOrder
from uncombine.panes.in_order.operator import InOrderOperator
from uncombine.panes.remember.operator import RememberOperator
from uncombine.panes.remember.remember import Remember
from uncombine.windows.times import MAX_TIME

SEEDS = pytest.mark.parametrize("seed", seeds(15, 500))
Net = Counter[Any]


def rounded(table: pa.Table) -> pa.Table:
    return table.select(["ts", "id", "x"]).set_column(2, "x", pc.max_element_wise(table["x"], 1.0))


def built(kind: str, **options: Any) -> Any:
    schema = options.pop("schema")
    match kind:
        case "distinct":
            return DistinctOperator(Distinct("id", "25 us", **options), schema)
        case "in_order":
            return InOrderOperator(InOrder("id", **options), schema)
        case _:
            return RememberOperator(Remember(rounded, **options), schema)


def from_scratch(kind: str, net: Net) -> Net:
    """The rows that are left of a changelog after one operator; times and values decide between rows of one id."""
    out: Net = Counter()
    if kind == "distinct":
        free: dict[Any, int] = {}
        for time, key, x in sorted(row for row, weight in net.items() if weight > 0):
            if time >= free.get(key, time):
                out[time, key, x] = 1
                free[key] = time + 25
        return out
    for (time, key, x), weight in net.items():
        if weight > 0:
            out[time, key, max(x, 1.0) if kind == "remember" else x] += weight
    return out


@SEEDS
def test_rule_53_55_57_a_later_operator_drops_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = [str(kind) for kind in rng.choice(["distinct", "in_order", "remember"], int(rng.integers(2, 4)))]
    lateness = int(rng.choice([0, 12]))
    first = {"time": "ts", "diff": "w", "allowed_lateness": f"{lateness} us", "schema": SCHEMA}
    operators = [built(kinds[0], max_future=None, **first)]
    for kind in kinds[1:]:
        last = operators[-1]
        later = {"time": "event_time", "diff": "diff", "allowed_lateness": f"{last.output_lateness} us"}
        operators.append(built(kind, max_future=None, schema=last.output_schema, **later))
    states = [operator.initial() for operator in operators]
    net, given, before = Counter[Any](), Counter[Any](), -(10**18)
    bundles = [(bundle.rows, bundle.watermark) for bundle in scripts(seed)]
    for number, (rows, watermark) in enumerate([*bundles, ([], MAX_TIME)]):
        # One time is of one key, and one key and time of one value, so that no two rows of an id tie.
        rows = [(time, "abcdefgh"[time % 8], float(time % 3), weight) for time, _, _, weight in rows]
        for time, key, x, weight in rows:
            if time + lateness >= before:
                net[time, key, x] += weight
        table, reading = table_of(rows), watermark
        for place, operator in enumerate(operators):
            stepped = operator.step(states[place], operator.bundle([table], (), 0), reading)
            states[place], table, reading = stepped.state, stepped.panes, operator.hold(stepped.state)
        for *row, weight in tuples(table.select(["ts", "id", "x", "diff"])):
            given[tuple(row)] += weight
        assert min(given.values(), default=0) >= 0, number
        before = watermark
    expected = net
    for kind in kinds:
        expected = from_scratch(kind, expected)
    assert +given == expected
    assert [state.counts.dropped > 0 for state in states] == [True, *[False] * (len(kinds) - 1)]
    assert [operator.count_entries(state) for operator, state in zip(operators, states, strict=True)] == [0] * len(
        kinds
    )
