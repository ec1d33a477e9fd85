"""Rows of some keys leave a state, and what was shown of them is retracted through all steps."""

from __future__ import annotations

import json
import random
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from broadcast_flows import ruled
from evolved_rows import drawn, left
from row_steps import SCHEMA, START
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch
from uncombine.flows.evolution.deletion import Deletion, deleted_seed, user_columns
from uncombine.flows.result import Result
from uncombine.local.evolved_seeds import HereWork

ROWS = uc.flow(SCHEMA, watermark="30 seconds")
WINDOWS = ["1 minute", "sessions 40 seconds", uc.Sliding("2 minutes", "1 minute"), "global"]
TRIGGERS = ["each row", "early every 2 rows, late every 1 row"]
NOT_KEPT = "rows that it has given are not retracted, since it does not keep them"
COMBINERS: dict[str, uc.Combiner] = {
    "n": uc.Count(),
    "total": uc.Sum("x"),
    "most": uc.Max("x"),
    "middle": uc.Median("x"),
}


def flow(r: random.Random, second: bool) -> uc.Flow:
    window, trigger = r.choice(WINDOWS), r.choice(TRIGGERS)
    names = r.sample(sorted(COMBINERS), r.randint(1, 3))
    by = ("k", "id") if second or r.random() < 0.5 else "k"
    first = ROWS.window(window, trigger, "retracting", allowed_lateness="10 days")
    first = first.combine(by=by, **{name: COMBINERS[name] for name in names})
    if not second:
        return first
    if r.random() < 0.3:
        first = first.with_columns(rest=uc.col("id") % 2).where(uc.col("rest") >= r.randint(0, 1))
    days = first.window(r.choice(["1 day", "global"]), "each row", "retracting", allowed_lateness="10 days")
    by = r.choice(["id", "k", ("k", "id")])
    return days.combine(by=by, rows=uc.Count(), all=uc.Sum(uc.coalesce(uc.col(names[0]), 0)))


def deleted(result: Result, folder: Path, where: Any) -> Deletion:
    return deleted_seed(result.seed(to=str(folder / "old")), where, str(folder / "new"), HereWork())


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("seed", seeds(80, 2_000))
def test_a_flow_leaves_what_it_would_have_left_without_the_rows(seed: int, second: bool, tmp_path: Path) -> None:
    r = random.Random(seed)
    one, rows, more = flow(r, second), drawn(r, r.randint(5, 30)), drawn(r, r.randint(1, 10))
    gone = r.choice("abc")
    before = one.run([uc.Elements(rows[place : place + 7]) for place in range(0, len(rows), 7)])
    made = deleted(before, tmp_path, uc.col("k") == gone)
    after = one.run([uc.Elements(more), uc.Watermark(None)], start=made.seed)
    kept = [row for row in rows if row["k"] != gone]
    assert left(before, after) == left(one.run([uc.Elements(kept), uc.Elements(more), uc.Watermark(None)]))


def weighted(r: random.Random, count: int, kept: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows, some of which take out an earlier one of those that are kept, which becomes shorter."""
    out = []
    for row in drawn(r, count):
        if kept and r.random() < 0.3:
            out.append({**kept.pop(r.randrange(len(kept))), "w": -1})
        else:
            out.append({**row, "w": 1})
            kept.append(out[-1])
    return out


@pytest.mark.parametrize("seed", seeds(60, 2_000))
def test_a_join_of_weights_in_the_middle_loses_the_rows(seed: int, tmp_path: Path) -> None:
    r = random.Random(seed)
    one, other = (uc.flow(SCHEMA, watermark="30 seconds", diff="w", name=name) for name in "lr")
    how, within = r.choice(["inner", "left", "full"]), r.choice([("-1 minute", "1 minute"), ("0 s", "1 hour")])
    lateness = {"allowed_lateness": "10 days"}
    pairs = one.join(other.rename(x="y", id="other"), on="k", how=how, within=within, **lateness)
    days = pairs.window(r.choice(["1 day", "1 minute"]), "each row", "retracting", **lateness)
    flow = days.combine(by=r.choice(["k", ("k", "id")]), n=uc.Count(), x=uc.Sum("x"), y=uc.Sum("y"))
    gone, kept = r.choice("abc"), {name: list[dict[str, Any]]() for name in "lr"}
    bundles = [(name, weighted(r, r.randint(1, 8), kept[name])) for name in r.choices("lr", k=r.randint(2, 6))]
    before = flow.run([uc.Elements(rows, input=name) for name, rows in bundles])
    made = deleted(before, tmp_path, uc.col("k") == gone)
    others = {name: [row for row in rows if row["k"] != gone] for name, rows in kept.items()}
    more = [uc.Elements(weighted(r, 5, others[name]), input=name) for name in "lr"]
    more += [uc.Watermark(None, input=name) for name in "lr"]
    without = [uc.Elements([row for row in rows if row["k"] != gone], input=name) for name, rows in bundles]
    assert left(before, flow.run(more, start=made.seed)) == left(flow.run([*without, *more])), str(made)


def test_steps_that_may_both_have_the_rows_are_refused(tmp_path: Path) -> None:
    rows = [{"ts": START, "k": k, "id": 1, "x": 3} for k in "aab"]
    users = ROWS.window("1 minute", "each row", "retracting").combine(by=("k", "id"), n=uc.Count())
    other = users.with_columns(k=uc.col("k").str.upper())
    between = users.window("1 hour", "each row", "retracting").combine(by="id", k=uc.Max("k"))
    for number, one in enumerate((other, between)):
        days = one.window("1 day", "each row", "retracting").combine(by="k", rows=uc.Count())
        result = days.run([uc.Elements(rows)])
        with pytest.raises(InvalidArgument, match=r"both have the columns of where=.* they could be taken out twice"):
            deleted(result, tmp_path / str(number), uc.col("k") == "a")
        assert not (tmp_path / str(number) / "new").exists()


def test_what_is_left_is_told(tmp_path: Path) -> None:
    rows = [{"ts": START, "k": "a", "id": 1, "x": 3}, {"ts": START, "k": "b", "id": 1, "x": 4}]
    users = ROWS.window("1 minute", "each row", "retracting").combine(by=("k", "id"), n=uc.Count())
    days = users.window("1 day", "each row", "retracting").combine(by="id", n=uc.Sum("n"))
    made = deleted(days.run([uc.Elements(rows)]), tmp_path, uc.col("k") == "a")
    assert str(made) == (
        "step 1, a grouping by (k: string, id: int64): 1 row deleted\n"
        "1 pane to be retracted at the start\n"
        "still there:\n"
        "- step 2, a grouping by (id: int64): values inside contents of other keys, less those of panes that the steps "
        "before it retract"
    )


def test_rows_that_are_not_kept_are_told(tmp_path: Path) -> None:
    rows = [{"ts": START, "k": "a", "id": 1, "x": 3}]
    shown = ROWS.window("1 minute", "each row", "accumulating").combine(by="k", n=uc.Count())
    told = deleted(shown.run([uc.Elements(rows)]), tmp_path / "a", uc.col("k") == "a").remains
    assert [text.rpartition(": ")[2] for text in told] == [
        "panes that it has shown are not retracted, since its mode is 'accumulating'"
    ]
    in_order = ROWS.in_order("k").run([uc.Elements(rows)])
    made = deleted(in_order, tmp_path / "b", uc.col("k") == "a")
    assert list(made.deleted.values()) == [1]
    assert made.remains == (
        "step 1, in_order(): rows that it has given are not retracted, since it does not keep them",
    )
    rolled = ROWS.rolling("1 minute", by="k").combine(n=uc.Count()).run([uc.Elements([*rows, {**rows[0], "k": "b"}])])
    made = deleted(rolled, tmp_path / "c", uc.col("k") == "a")
    assert list(made.deleted.values()) == [1]
    assert "step 1, rolling(): rows that it has given are not retracted, and results" in made.remains[0]


def test_a_condition_that_finds_nothing_is_refused(tmp_path: Path) -> None:
    rows = [{"ts": START, "k": "a", "id": 1, "x": 3}]
    ids = ROWS.distinct("k", within="1 hour").run([uc.Elements(rows)])
    with pytest.raises(InvalidArgument, match=r"no step keeps the columns that where=.* reads.*: the state has none"):
        deleted(ids, tmp_path / "a", uc.col("k") == "a")
    counts = ROWS.window("1 minute", "each row", "retracting").combine(by="k", n=uc.Count())
    with pytest.raises(InvalidArgument, match=r"the state has 'k'; delete the rows in the source, then uc.evolve\(\)"):
        deleted(counts.run([uc.Elements(rows)]), tmp_path / "b", uc.col("id") == 1)
    with pytest.raises(InvalidArgument, match="takes a condition"):
        deleted(counts.run([uc.Elements(rows)]), tmp_path / "c", uc.col("k"))
    with pytest.raises(TypeMismatch, match="does not work on string and int64"):
        deleted(counts.run([uc.Elements(rows)]), tmp_path / "d", uc.col("k") == 5)
    assert not (tmp_path / "d" / "new").exists()


def test_the_rows_of_a_join_are_found_by_their_names(tmp_path: Path) -> None:
    rows = [{"ts": START, "k": "a", "id": 1, "x": 3}, {"ts": START, "k": "b", "id": 2, "x": 4}]
    left_rows = uc.flow(SCHEMA, watermark="30 seconds", name="l")
    right_rows = uc.flow(SCHEMA.set(2, SCHEMA.field("k").with_name("name")), watermark="30 seconds", name="r")
    pairs = left_rows.join(right_rows, on={"k": "name"}, within=("-1 minute", "1 minute"))
    others = [{**{name: row[name] for name in row if name != "k"}, "name": row["k"]} for row in rows]
    whole = pairs.run([uc.Elements(rows, input="l"), uc.Elements(others, input="r")])
    for place, where in enumerate((uc.col("k") == "a", (uc.col("k") == "b") & (uc.col("x") > 3))):
        made = deleted(whole, tmp_path / str(place), where)
        assert list(made.deleted.values()) == [2], where
        assert [text.rpartition(": ")[2] for text in made.remains] == [NOT_KEPT]
        then = [uc.Elements([{**others[place], "x": 9}], input="r"), uc.Watermark(None, input="l")]
        assert len(pairs.run(then, start=made.seed).to_pylist()) == 0


@pytest.mark.parametrize("asof", [False, True])
def test_the_weights_of_a_joined_input_do_not_shift_its_names(asof: bool, tmp_path: Path) -> None:
    columns = {"id": pa.string(), "diff": pa.int64(), "person": pa.string(), "city": pa.string()}
    schema = pa.schema({**columns, "ts": pa.timestamp("us", "UTC")})
    left = uc.flow(schema, diff="diff", watermark="1 minute", name="l")
    right = uc.flow(SCHEMA.append(pa.field("id2", pa.string())), watermark="1 minute", name="r")
    right = right.select("ts", "id2", "x").rename(id2="id")
    rows = [
        {"id": "1", "diff": 1, "person": "ada", "city": "bob", "ts": START},
        {"id": "2", "diff": 1, "person": "bob", "city": "ada", "ts": START},
    ]
    if asof:
        joined = left.join_asof(right, by="id", direction="forward", tolerance="1 hour")
    else:
        joined = left.join(right, on="id", how="left", within=("-1 hour", "1 hour"))
    made = deleted(joined.run([uc.Elements(rows, input="l")]), tmp_path, uc.col("person") == "ada")
    assert list(made.deleted.values()) == [1]
    then = [uc.Elements([{"ts": START, "id2": id, "x": 7} for id in "12"], input="r")]
    shown = joined.run(then, start=made.seed).to_pylist()
    assert {row["person"] for row in shown if row["x"] == 7} == {"bob"}


@pytest.mark.parametrize("how", ["lookup", "keep"])
def test_rows_of_a_table_beside_a_stream_leave_by_their_key_and_by_their_own_columns(how: str, tmp_path: Path) -> None:
    weighted = SCHEMA.append(pa.field("diff", pa.int64()))
    left, right = (uc.flow(weighted, diff="diff", watermark="1 minute", name=name) for name in "lr")
    options: dict[str, Any] = {"how": "lookup"} if how == "lookup" else {"keep": ("1 hour", None)}
    right = right.select("ts", "k", "x", "diff").rename(x="y")
    both = left.join(right, on="k", allowed_lateness="1 hour", **options)
    orders = [{"ts": START, "k": k, "id": id, "x": id, "diff": 1} for id, k in enumerate("aabb")]
    table = [{"ts": START, "k": k, "id": 0, "x": x, "diff": 1} for k, x in (("a", 7), ("b", 8), ("b", 9))]
    whole = both.run([uc.Elements(table, input="r"), uc.Elements(orders, input="l")])
    stays = {"x": uc.col("x") == 1, "k": uc.col("k") == "a"}
    for name, where in stays.items():
        made = deleted(whole, tmp_path / name, where)
        assert list(made.deleted.values()) == [1 if name == "x" else 3]
        back = [uc.Elements([{**order, "diff": -1}], input="l") for order in orders]
        shown = both.run(back, start=made.seed).to_pylist()
        gone = {1} if name == "x" else {0, 1}
        want = [(order["id"], y, -1) for order in orders for y in ([7] if order["k"] == "a" else [8, 9])]
        assert [(row["id"], row["y"], row["diff"]) for row in shown] == [row for row in want if row[0] not in gone]


def test_the_rows_of_a_join_of_windows_are_found_by_their_names(tmp_path: Path) -> None:
    rows = [{"ts": START, "k": "a", "id": 1, "x": 3}, {"ts": START, "k": "b", "id": 2, "x": 4}]
    sides = [
        uc.flow(SCHEMA, watermark="30 seconds", name=name)
        .window("1 minute", "each row", "retracting")
        .combine(by=key, n=uc.Count(), most=uc.Max("x"))
        for name, key in (("l", "k"), ("r", "k"))
    ]
    pairs = sides[0].join(sides[1], on="k", how="left")
    whole = pairs.run([uc.Elements(rows, input="l")])
    made = deleted(whole, tmp_path, (uc.col("k") == "a") & (uc.col("most") == 3))
    joined = made.seed.steps[-1].made_by
    table = pa.table({"key.0": ["a"], "key.1": ["w"], "value.0": [1], "value.1": [3]})
    assert list(user_columns("left", table, joined)) == ["k", "window", "n", "most"]


def test_keys_leave_a_step_with_broadcast_rows_and_the_shared_state_stays(tmp_path: Path) -> None:
    flow = ruled(*(uc.flow(SCHEMA, watermark="1 hour", name=name) for name in ("keyed", "told")))
    rows = [{"ts": START, "k": k, "id": 1, "x": x} for k, x in (("a", 3), ("b", 5), ("b", 6))]
    script = [uc.Elements(rows, input="keyed"), uc.Elements(rows[:1], input="told")]
    made = deleted(flow.run(script), tmp_path, uc.col("k") == "a")
    assert made.deleted == {"step 1, process()": 1}
    assert made.remains[0] == "step 1, process(): its shared state, which has what on_broadcast() has put there"
    assert made.remains[1].endswith(NOT_KEPT)
    third = {"ts": START, "k": "b", "id": 1, "x": 9}
    again = flow.run([uc.Elements([third], input="keyed")], start=made.seed)
    assert again.select(["k", "id", "x"]).to_pylist() == [{"k": "b", "id": 1, "x": 9 - 3}]


def orders_of_people() -> uc.Flow:
    """Two tables whose key has one name, joined: the number of orders of each customer."""

    def feed(name: str, column: str, kind: pa.DataType) -> uc.Flow:
        row = pa.schema([("ts", pa.timestamp("us", "UTC")), ("id", pa.int64()), (column, kind)])
        text = pa.schema([("key", pa.string()), ("value", pa.string()), ("offset", pa.int64())])
        changelog = uc.changelog.KafkaUpsert("id", schema=row)
        return uc.flow(text, changelog=changelog, watermark="30 seconds", name=name)

    orders, people = feed("orders", "customer", pa.int64()), feed("people", "country", pa.string())
    pairs = orders.join(people.rename(ts="since"), on={"customer": "id"}, how="left_lookup")
    return pairs.window("global", "each row", "retracting").combine(by="customer", n=uc.Count())


def test_a_step_has_its_own_condition(tmp_path: Path) -> None:
    """A condition of all steps would delete the order of somebody else that has the number of the person."""
    flow, offset = orders_of_people(), count()

    def told(name: str, *rows: dict[str, Any]) -> uc.Elements:
        texts = [(json.dumps(row["id"]), json.dumps({"ts": 0, **row})) for row in rows]
        return uc.Elements([{"key": key, "value": value, "offset": next(offset)} for key, value in texts], input=name)

    people = told("people", {"id": 7, "country": "pt"}, {"id": 8, "country": "es"})
    orders = told("orders", {"id": 7, "customer": 8}, {"id": 1, "customer": 7}, {"id": 2, "customer": 7})
    before = flow.run([people, orders])
    with pytest.raises(
        InvalidArgument, match=r"step 1, upserts.* and step 2, upserts.* both have .* its own condition"
    ):
        deleted(before, tmp_path / "one", uc.col("id") == 7)
    of_orders = uc.col("customer") == 7
    with pytest.raises(InvalidArgument, match=r"step 2, upserts does not keep .* it has 'country', 'id', "):
        deleted(before, tmp_path / "two", {2: of_orders})
    with pytest.raises(
        InvalidArgument, match=r"names step 9, and the checkpoint has state of the steps \[1, 2, 3, 4\]"
    ):
        deleted(before, tmp_path / "three", {9: of_orders})
    made = deleted(before, tmp_path / "four", {1: of_orders, 2: uc.col("id") == 7, 3: of_orders, 4: of_orders})
    assert ([*made.deleted.values()][:2], made.retracted) == ([2, 1], 1)
    others = [told("people", {"id": 8, "country": "es"}), told("orders", {"id": 7, "customer": 8})]
    more = [told("orders", {"id": 7, "customer": 9}, {"id": 3, "customer": 8}), uc.Watermark(None)]
    assert left(before, flow.run(more, start=made.seed)) == left(flow.run([*others, *more]))
