"""Labels that look back over events, corrected by late ones and by retractions, against a loop over all rows taken."""

from __future__ import annotations

import random
from collections import Counter
from statistics import median
from typing import Any

import pyarrow as pa
import pytest
from seeds import seeds
from stepping import Driven, scripts

import uncombine as uc
from uncombine.lookbacks.lookback import LookBack
from uncombine.panes.rolled.labels import COLUMN, IS_LABEL, KNOWN
from uncombine.panes.rolled.operator import RolledOperator
from uncombine.panes.rolled.rolled import Rolled
from uncombine.windows.times import MAX_TIME, UTC_MICROS

COMBINERS = {"n": uc.Count(), "total": uc.Sum("x"), "middle": uc.Median("x"), "best": uc.Max("x")}
SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "number": pa.int64(),
        COLUMN + "x": pa.int64(),
        IS_LABEL: pa.bool_(),
        "event_time": UTC_MICROS,
        KNOWN: UTC_MICROS,
        "diff": pa.int64(),
    }
)
Row = tuple[Any, ...]


def row_of(time: int, key: Any, number: int, delay: int) -> Row:
    """A label if the number is 0, and an event otherwise; what a row is follows from it, also where it comes again."""
    label = number == 0
    return (key, 1, None, True, time, None) if label else (key, None, number, False, time, time + delay)


def results(xs: list[int], min_rows: int) -> Row:
    if len(xs) < min_rows > 1:
        return (None,) * len(COMBINERS)
    return (len(xs), sum(xs), median(xs), max(xs)) if xs else (0, None, None, None)


def whole(taken: Counter[Row], lookbacks: list[LookBack], min_rows: int, known: bool) -> Counter[Row]:
    rows = [row for row, count in taken.items() for _ in range(max(count, 0))]
    out: Counter[Row] = Counter()
    for key, number, _, is_label, time, _ in rows:
        if is_label:
            found: Row = ()
            for one in lookbacks:
                begin = -(10**18) if one.ever else time - one.micros + one.first_open
                end = time if one.sees_ties else time - 1
                xs = [r[2] for r in rows if not r[3] and r[0] == key and begin <= r[4] <= end]
                if known:
                    xs = [r[2] for r in rows if not r[3] and r[0] == key and begin <= r[4] <= end and r[5] <= time]
                found += results(xs, min_rows)
            out[(key, number, *found, time)] += 1
    return out


@pytest.mark.parametrize("seed", seeds(6, 200))
@pytest.mark.parametrize("lateness", [0, 12])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("emit", ["at_once", "final"])
def test_rule_91_labels_are_corrected_by_the_events_that_they_see(
    seed: int, lateness: int, known: bool, emit: Any
) -> None:
    draw = random.Random(seed)
    closed, min_rows = draw.choice(["right", "left", "both", "neither"]), draw.choice([1, 2])
    lookbacks = {"s": LookBack(micros=draw.choice([4, 25]), closed=closed), "l": LookBack(micros=90, closed=closed)}
    if draw.random() < 0.3:
        lookbacks["ever"] = LookBack(closed=closed)
    schema = SCHEMA if known else SCHEMA.remove(SCHEMA.get_field_index(KNOWN))
    options: dict[str, Any] = {"time": "event_time", "diff": "diff", "max_future": None, "min_rows": min_rows}
    options |= {"allowed_lateness": f"{lateness} us", "emit": emit, "labels": True}
    run = Driven(RolledOperator(Rolled(COMBINERS, lookbacks, "id", **options), schema), stored=seed % 2 == 1)
    taken, shown, before = Counter[Row](), Counter[Row](), -(10**18)
    for bundle in [*scripts(seed, steps=15), None]:
        drawn, after = (bundle.rows, bundle.watermark) if bundle else ([], MAX_TIME)
        rows = [(*row_of(time, key, x, 7 * (x == 2)), weight) for time, key, x, weight in drawn]
        for *row, weight in rows:
            if row[4] + lateness >= before:
                taken[tuple(row)] += weight
        columns = dict(zip(SCHEMA.names, zip(*rows, strict=True), strict=True)) if rows else {}
        table = pa.table({name: pa.array(columns.get(name, ())).cast(SCHEMA.field(name).type) for name in schema.names})
        given = run.step(table, after)
        wanted = whole(taken, list(lookbacks.values()), min_rows, known)
        if emit == "final":
            wanted = Counter({row: n for row, n in wanted.items() if row[-1] + lateness < after})
            assert Counter(row[:-1] for row in given for _ in range(row[-1])) == wanted - shown
            shown = wanted
        assert run.net == wanted
        before = after
    assert run.end() == []


def test_labels_and_events_leave_the_state() -> None:
    options: dict[str, Any] = {"time": "event_time", "diff": "diff", "allowed_lateness": "5 us", "labels": True}
    for emit in ("at_once", "final"):
        run = Driven(
            RolledOperator(Rolled({"n": uc.Count()}, {"": LookBack(micros=20)}, "id", emit=emit, **options), SCHEMA)
        )
        for time in range(45):
            rows = [(*row_of(time, "a", x, 0), 1) for x in (0, 1)]
            columns = [pa.array(values).cast(f.type) for values, f in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
            run.step(pa.Table.from_arrays(columns, schema=SCHEMA), time)
            # The labels of the allowed lateness, and the events of the period before them.
            assert run.operator.count_entries(run.state) <= 7 + 28
            assert run.operator.count_waiting(run.state) == (0 if emit == "at_once" else min(time + 1, 6))
        run.end()
