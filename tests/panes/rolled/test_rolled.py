"""Rows that look back, corrected by late rows and retractions, against a loop over all rows that were ever taken."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rolled_rows import COMBINERS, Row, results, sees
from seeds import seeds
from stepping import SCHEMA, Driven, scripts, table_of

import uncombine as uc
from uncombine.errors import InvalidArgument, StateMismatch
from uncombine.lookbacks.lookback import LookBack
from uncombine.panes.rolled.operator import RolledOperator
from uncombine.panes.rolled.rolled import Rolled
from uncombine.panes.state.store import Store
from uncombine.panes.state.store_rows import StoreRows
from uncombine.windows.times import MAX_TIME

PLAIN = SCHEMA.remove(3)
SEEDS = pytest.mark.parametrize("seed", seeds(6, 200))


def whole(rows: list[Row], lookbacks: list[LookBack], min_rows: int) -> Counter[tuple[Any, ...]]:
    """Each row with its results over all rows."""
    out: Counter[tuple[Any, ...]] = Counter()
    for key in {row[1] for row in rows}:
        mine = sorted(row for row in rows if row[1] == key)
        for place, row in enumerate(mine):
            found: tuple[Any, ...] = ()
            for one in lookbacks:
                last = mine[max(place + 1 - one.rows, 0) : place + 1] if one.rows else None
                found += results([o for o in mine if sees(one, row, o)] if last is None else last, min_rows)
            out[(*row, *found, row[0])] += 1
    return out


def drawn(draw: random.Random) -> tuple[dict[str, LookBack], dict[str, Any]]:
    if draw.random() < 0.3:
        return {"": LookBack(rows=draw.choice([1, 2, 5]))}, {"order": "x"}
    closed = draw.choice(["right", "left", "both", "neither"])
    lookbacks = {
        name: LookBack(micros=micros, closed=closed, coarse=draw.choice([1, 1, 10]))
        for name, micros in draw.sample([("s", 4), ("m", 25), ("l", 90)], draw.choice([1, 2]))
    }
    if draw.random() < 0.2:
        lookbacks["ever"] = LookBack(closed=closed)
    return lookbacks, {}


@SEEDS
@pytest.mark.parametrize("lateness", [0, 12, 150])
@pytest.mark.parametrize("changelog", [False, True])
@pytest.mark.parametrize("emit", ["at_once", "final"])
def test_rule_84_rows_are_corrected_by_those_that_they_see(
    seed: int, lateness: int, changelog: bool, emit: Any
) -> None:
    draw = random.Random(seed)
    lookbacks, options = drawn(draw)
    min_rows = draw.choice([1, 2])
    rolled = Rolled(
        COMBINERS,
        lookbacks,
        "id",
        min_rows=min_rows,
        emit=emit,
        allowed_lateness=f"{lateness} us",
        diff="w" if changelog else None,
        max_future=None,
        **options,
    )
    run = Driven(RolledOperator(rolled, SCHEMA if changelog else PLAIN), stored=seed % 2 == 1)
    taken: Counter[Row] = Counter()
    before, shown = -(10**18), Counter[tuple[Any, ...]]()
    for bundle in [*scripts(seed, changelog=changelog, late=lateness + 10), None]:
        rows, after = (bundle.rows, bundle.watermark) if bundle else ([], MAX_TIME)
        for time, key, x, weight in rows:
            if time + lateness >= before:
                taken[time, key, float(x)] += weight if changelog else 1
        given = run.step(table_of(rows, run.operator.schema), after)
        held = [row for row, count in taken.items() for _ in range(max(count, 0))]
        wanted = whole(held, list(lookbacks.values()), min_rows)
        if emit == "final":
            wanted = Counter({row: n for row, n in wanted.items() if row[0] + lateness < after})
            assert Counter(row[:-1] for row in given for _ in range(row[-1])) == wanted - shown
            assert not shown - wanted
            shown = wanted
        assert run.net == wanted
        before = after
    assert run.end() == []


def test_rows_leave_the_state() -> None:
    for lookback, most in ((LookBack(micros=20), 28), (LookBack(rows=5), 11)):
        order = "x" if lookback.rows else None
        rolled = Rolled({"n": uc.Count()}, {"": lookback}, order=order, allowed_lateness="5 us")
        run = Driven(RolledOperator(rolled, PLAIN))
        for time in range(200):
            run.step(table_of([(time, "a", 1.0, 1)], PLAIN), time)
            assert run.operator.count_entries(run.state) <= most


@pytest.mark.parametrize("emit", ["at_once", "final"])
def test_rule_89_a_row_reads_and_writes_its_neighbourhood(emit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rolled = Rolled({"n": uc.Count()}, {"": LookBack(micros=10)}, "id", emit=emit, allowed_lateness="10 ms")
    run = Driven(RolledOperator(rolled, PLAIN))
    run.step(table_of([(time, "a", 1.0, 1) for time in range(9_000)], PLAIN), 9_000)
    read, put, sizes = StoreRows.read, Store.put, list[int]()

    def counted_read(self: StoreRows, *columns: Any) -> pa.Table:
        sizes.append(len(self))
        return read(self, *columns)

    def counted_put(self: Store, hashes: Any, table: pa.Table, wake: Any) -> Store:
        sizes.append(table.num_rows)
        return put(self, hashes, table, wake)

    monkeypatch.setattr(StoreRows, "read", counted_read)
    monkeypatch.setattr(Store, "put", counted_put)
    given = run.step(table_of([(4_000, "a", 1.0, 1)], PLAIN), 9_000)
    assert len(given) == (21 if emit == "at_once" else 0)
    assert max(sizes) < 40
    sizes.clear()
    given = run.step(table_of([], PLAIN), 14_000)
    assert len(given) == (0 if emit == "at_once" else 4_000)
    assert max(sizes, default=0) < (40 if emit == "at_once" else 5_000)


def test_a_bounded_history_is_no_seed_of_rows_that_are_shown_at_once(tmp_path: Path) -> None:
    """Its rows wait for the end of the input, and a step that shows rows as they come would never show them."""
    table = table_of([(0, "a", 1.0, 1)], PLAIN)
    minute = uc.flow(table).rolling("1 minute").combine(n=uc.Count())
    live = uc.flow(PLAIN, watermark="1 minute").rolling("1 minute").combine(n=uc.Count())
    with pytest.raises(StateMismatch, match="emit was final and is at_once"):
        live.run([uc.Elements(table)], start=minute.seed(to=tmp_path / "a"))
    seed = live.seed(table, to=tmp_path / "b")
    rows = live.run([uc.Elements(table)], start=seed).to_arrow().select(["n", "diff"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [(1, 1), (1, -1), (2, 1), (2, 1)]


def test_rows_without_weights_are_rolled_after_another_step() -> None:
    rows = uc.flow(table_of([(0, "a", 1.0, 1), (1, "a", 2.0, 1)], PLAIN)).in_order(by="id")
    assert rows.rolling("1 minute", by="id").combine(n=uc.Count()).run()["n"].to_pylist() == [1, 2]


def test_a_flow_gives_the_rows_of_the_table() -> None:
    draw = random.Random(5)
    times = [draw.randrange(100) * 1_000_000 for _ in range(200)]
    table = pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "k": [draw.choice("ab") for _ in times],
            "x": [draw.random() for _ in times],
        }
    )
    options: dict[str, Any] = {"period": {"s": "7 seconds", "m": "1 minute"}, "by": "k", "closed": "both"}
    combiners = {"n": uc.Count(), "total": uc.Sum("x", exact=True), "middle": uc.Median("x")}
    found = uc.flow(table).rolling(**options).combine(**combiners).run().to_arrow()
    wanted = uc.rolling(table, **options, **combiners)
    rows = [sorted(map(repr, t.select(wanted.column_names).to_pylist())) for t in (found, wanted)]
    assert rows[0] == rows[1]
    assert set(found["diff"].to_pylist()) == {1}


def test_a_script_shows_corrections() -> None:
    schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64()})
    flow = uc.flow(schema, watermark="1 minute").rolling("1 minute").combine(total=uc.Sum("x"))
    script = [uc.Elements([{"ts": 30_000_000, "x": 1}]), uc.Elements([{"ts": 10_000_000, "x": 2}])]
    rows = flow.run(script).to_arrow().select(["x", "total", "diff"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [(1, 1, 1), (1, 1, -1), (2, 2, 1), (1, 3, 1)]


def test_options_that_do_not_fit() -> None:
    flow = uc.flow(pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64()}))
    with pytest.raises(InvalidArgument, match="needs order="):
        flow.rolling(rows=3).combine(n=uc.Count())
    with pytest.raises(InvalidArgument, match="emit='later'"):
        flow.rolling("1 day", emit="later").combine(n=uc.Count())  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="rename the result"):
        flow.rolling("1 day").combine(diff=uc.Count())
    with pytest.raises(InvalidArgument, match="needs a combiner"):
        flow.rolling("1 day").combine()
    with pytest.raises(AttributeError, match=r"flow.rolling\(...\).combine"):
        flow.rolling("1 day").run()  # type: ignore[attr-defined]
