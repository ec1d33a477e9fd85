"""Ticks over rows that look back, corrected by late rows and retractions, against a loop over ticks and all rows."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from rolled_rows import COMBINERS, Row, results, sees
from seeds import seeds
from stepping import SCHEMA, Driven, scripts, table_of

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.lookbacks.lookback import LookBack
from uncombine.panes.rolled.rolled import Rolled
from uncombine.panes.rolled.tick_operator import TickOperator
from uncombine.panes.state.store_rows import StoreRows
from uncombine.windows.times import MAX_TIME

PLAIN = SCHEMA.remove(3)
TIME = pa.timestamp("us", "UTC")


def whole(rows: list[Row], lookbacks: list[LookBack], every: int, min_rows: int) -> Counter[tuple[Any, ...]]:
    """The ticks of each key over all rows, while something is seen, and the first after it."""
    out: Counter[tuple[Any, ...]] = Counter()
    for key in {row[1] for row in rows}:
        mine = [row for row in rows if row[1] == key]
        tick, held = min(row[0] for row in mine) // every * every, False
        while held or tick <= max(row[0] for row in mine) + every:
            seen = [[row for row in mine if sees(one, (tick, key, 0.0), row)] for one in lookbacks]
            if any(seen) or held:
                found = [value for some in seen for value in results(some, min_rows)]
                out[key, *found, tick] = 1
            tick, held = tick + every, any(seen)
    return out


@pytest.mark.parametrize("seed", seeds(6, 200))
@pytest.mark.parametrize("lateness", [0, 12, 150])
@pytest.mark.parametrize("changelog", [False, True])
@pytest.mark.parametrize("emit", ["at_once", "final"])
def test_rule_97_ticks_are_shown_as_the_watermark_passes_them(
    seed: int, lateness: int, changelog: bool, emit: Any
) -> None:
    draw = random.Random(seed)
    closed, min_rows = draw.choice(["right", "left", "both", "neither"]), draw.choice([0, 1, 2])
    lookbacks = {
        name: LookBack(micros=micros, closed=closed, coarse=draw.choice([1, 1, 10]))
        for name, micros in draw.sample([("s", 4), ("m", 25), ("l", 90)], draw.choice([1, 2]))
    }
    every = draw.choice([1, 7, 20, 100])
    options: dict[str, Any] = {"every": every, "min_rows": min_rows, "emit": emit, "max_future": None}
    options |= {"allowed_lateness": f"{lateness} us", "diff": "w" if changelog else None}
    operator = TickOperator(Rolled(COMBINERS, lookbacks, "id", **options), SCHEMA if changelog else PLAIN)
    run = Driven(operator, stored=seed % 2 == 1)
    taken: Counter[Row] = Counter()
    before, shown = -(10**18), Counter[tuple[Any, ...]]()
    for bundle in [*scripts(seed, steps=15, changelog=changelog, late=lateness + 10), None]:
        rows, after = (bundle.rows, bundle.watermark) if bundle else ([], MAX_TIME)
        for time, key, x, weight in rows:
            if time + lateness >= before:
                taken[time, key, float(x)] += weight if changelog else 1
        given = run.step(table_of(rows, run.operator.schema), after)
        held = [row for row, count in taken.items() for _ in range(max(count, 0))]
        passed = after - (lateness if emit == "final" else 0)
        every_tick = whole(held, list(lookbacks.values()), every, min_rows)
        wanted = Counter({row: n for row, n in every_tick.items() if row[-1] < passed})
        if emit == "final":
            assert Counter(row[:-1] for row in given for _ in range(row[-1])) == wanted - shown
            assert not shown - wanted
            shown = wanted
        assert run.net == wanted
        before = after
    assert run.end() == []


def test_without_keys_and_results_that_stay_are_not_shown_again() -> None:
    options: dict[str, Any] = {"every": 10, "allowed_lateness": "100 us", "max_future": None}
    run = Driven(TickOperator(Rolled({"best": uc.Max("x")}, {"": LookBack(micros=10)}, **options), PLAIN))
    run.step(table_of([(5, "a", 7.0, 1), (6, "b", 1.0, 1)], PLAIN), 5)
    assert run.net == {}
    assert run.step(table_of([], PLAIN), 31) == [(7.0, 10, 1), (None, 20, 1)]
    assert run.step(table_of([(7, "c", 3.0, 1)], PLAIN), 31) == []
    assert run.step(table_of([(7, "c", 8.0, 1)], PLAIN), 31) == [(7.0, 10, -1), (8.0, 10, 1)]
    run.end()


def test_rows_and_ticks_leave_the_state() -> None:
    options: dict[str, Any] = {"every": 5, "allowed_lateness": "5 us"}
    for emit, most in (("at_once", 20 + 2 * 5 + 7 + 3), ("final", 20 + 2 * 5 + 7)):
        run = Driven(TickOperator(Rolled({"n": uc.Count()}, {"": LookBack(micros=20)}, emit=emit, **options), PLAIN))
        for time in range(80):
            run.step(table_of([(time, "a", 1.0, 1)], PLAIN), time)
            assert run.operator.count_entries(run.state) <= most
        run.end()


def test_a_late_row_reads_the_rows_near_it(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"every": 50, "allowed_lateness": "10 ms"}
    run = Driven(TickOperator(Rolled({"n": uc.Count()}, {"": LookBack(micros=100)}, "id", **options), PLAIN))
    run.step(table_of([(time, "a", 1.0, 1) for time in range(9_000)], PLAIN), 9_000)
    sizes, read = list[int](), StoreRows.read

    def counted(self: StoreRows, *columns: Any) -> pa.Table:
        sizes.append(len(self))
        return read(self, *columns)

    monkeypatch.setattr(StoreRows, "read", counted)
    given = run.step(table_of([(4_000, "a", 1.0, 1)], PLAIN), 9_000)
    assert sorted(row[-2:] for row in given) == [(4_000, -1), (4_000, 1), (4_050, -1), (4_050, 1)]
    assert sum(sizes) < 700


def test_a_flow_of_ticks_equals_the_ticks_of_its_table() -> None:
    draw = random.Random(5)
    second = 1_000_000
    rows = [
        {"ts": draw.randrange(300) * second, "k": draw.choice(["a", "b", None]), "x": draw.randrange(9)}
        for _ in range(60)
    ]
    table = pa.Table.from_pylist(rows, pa.schema({"ts": pa.timestamp("us", "UTC"), "k": pa.string(), "x": pa.int64()}))
    looks = {"m1": "1 minute", "s10": "10 seconds"}
    combiners: dict[str, Any] = {"n": uc.Count(), "middle": uc.Median("x")}
    wanted = uc.rolling(table, looks, every="7 seconds", by="k", **combiners)
    flow = uc.flow(table).rolling(looks, every="7 seconds", by="k").combine(**combiners)
    found = flow.run().panes.drop_columns(["step"])
    assert found.schema.names == ["k", "m1_n", "m1_middle", "s10_n", "s10_middle", "event_time", "diff"]
    names = [*found.schema.names[:-2]]
    as_rows = [Counter(map(repr, t.select([*names, time]).rename_columns([*names, "t"]).to_pylist()))
               for t, time in ((found, "event_time"), (wanted, "ts"))]  # fmt: skip
    assert as_rows[0] == as_rows[1]
    assert "rolling over m1 1 minute, s10 10 seconds each 7 seconds by k" in flow.explain()


def test_a_watermark_that_follows_the_clock_stops_at_each_tick() -> None:
    """Without further rows, each tick is shown at its time, less the lag, and the last says that nothing is left."""
    minute = 60_000_000
    schema = pa.schema({"ts": TIME, "x": pa.int64()})
    for emit in ("at_once", "final"):
        flow = uc.flow(schema, watermark=uc.ProcessingTime("1 minute")).rolling(
            "2 minutes", every="1 minute", emit=emit, allowed_lateness="2 minutes"
        )
        script = [uc.Elements([{"ts": 10 * minute + 1, "x": 3}], at=10 * minute + 5), uc.Clock(30 * minute)]
        run = flow.combine(total=uc.Sum("x")).run(script)
        rows = run.panes.select(["total", "event_time", "diff"])
        times = rows["event_time"].cast(pa.int64()).to_pylist()
        assert list(zip(rows["total"].to_pylist(), times, strict=True)) == [
            (3, 11 * minute), (3, 12 * minute), (None, 13 * minute)
        ]  # fmt: skip
        assert set(rows["diff"].to_pylist()) == {1}
        late_row = uc.Elements([{"ts": 12 * minute, "x": 4}], at=14 * minute)
        again = flow.combine(total=uc.Sum("x")).run([script[0], late_row, script[1]]).panes
        net: Counter[Any] = Counter()
        for total, time, diff in zip(
            again["total"].to_pylist(), again["event_time"].cast(pa.int64()).to_pylist(), again["diff"].to_pylist(),
            strict=True,
        ):  # fmt: skip
            net[total, time // minute] += diff
        assert +net == {(3, 11): 1, (7, 12): 1, (4, 13): 1, (None, 14): 1}


def test_options_that_do_not_fit() -> None:
    flow = uc.flow(pa.schema({"ts": TIME, "k": pa.string(), "x": pa.int64()}))
    with pytest.raises(InvalidArgument, match="always has: give period= a length of time"):
        flow.rolling({"ever": None}, every="1 minute").combine(n=uc.Count())
    with pytest.raises(InvalidArgument, match="rename the result"):
        flow.rolling("1 hour", by="k", every="1 minute").combine(k=uc.Count())
    whole_batches = uc.flow(flow.schema, watermark="each_batch")
    with pytest.raises(InvalidArgument, match="says when a tick is over"):
        whole_batches.rolling("1 hour", every="1 minute").combine(n=uc.Count())
