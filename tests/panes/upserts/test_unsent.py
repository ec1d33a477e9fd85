"""Values that were not sent because they did not change: against a dict, in any bundles, order and number of times."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from seeds import seeds
from stepping import Log

from uncombine.panes.state.chunk_log import load, save
from uncombine.panes.upserts.operator import UpsertsOperator
from uncombine.panes.upserts.upserts import Upserts

MARK = "?"
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "n": pa.int64(),
        "text": pa.string(),
        "raw": pa.binary(),
        "tags": pa.list_(pa.string()),
        "lsn": pa.int64(),
        "diff": pa.int64(),
    }
)
LARGE = ("text", "raw", "tags")
UNSENT = {"text": MARK, "raw": MARK.encode(), "tags": [MARK]}
ROW = ("id", "n", *LARGE)
SEEDS = seeds(60, 600)

Row = dict[str, Any]


class Driven:
    """An operator whose state is stored and loaded after each step, and the table that its output leaves."""

    def __init__(self, order: tuple[str, ...]) -> None:
        self.operator = UpsertsOperator(Upserts(by=("id",), row=ROW, order=order, diff="diff", mark=MARK), SCHEMA)
        self.log = Log()
        self.loaded = load(None, self.log, self.operator)
        self.table: dict[int, Row] = {}
        self.bad = list[Row]()

    def step(self, rows: list[Row]) -> None:
        bundle = pa.Table.from_pylist(rows, SCHEMA)
        stepped = self.operator.step(self.loaded.state, bundle, 0)
        self.bad += [rows[place] for place in stepped.left_out["bad"]]
        assert stepped.state.counts.bad == len(self.bad)
        self.loaded = load(save(stepped.state, self.loaded, self.log), self.log, self.operator)
        for row in stepped.panes.to_pylist():
            weight = row.pop("diff")
            if weight < 0:
                assert self.table.pop(row["id"]) == row
            else:
                assert row["id"] not in self.table
                self.table[row["id"]] = row
        assert self.operator.count_entries(self.loaded.state) >= len(self.table)


def history(r: random.Random, count: int, deletes: bool = True, first: bool = False) -> list[Row]:
    """Versions of a few keys, which leave out large values; with `first` the first of each key is whole."""
    seen, out = set[int](), list[Row]()
    for lsn in range(count):
        key = r.randrange(4)
        if deletes and r.random() < 0.15:
            out.append({"id": key, "lsn": lsn, "diff": -1})
            continue
        row: Row = {
            "id": key,
            "n": r.choice([None, r.randrange(9)]),
            "text": r.choice([None, "", "a", f"long {lsn}"]),
            "raw": r.choice([None, b"\x00", b"%d" % lsn]),
            "tags": r.choice([None, [], ["?", "a"], [f"{lsn}"]]),
            "lsn": lsn,
            "diff": 1,
        }
        if not (first and key not in seen):
            row |= {name: UNSENT[name] for name in LARGE if r.random() < 0.5}
        seen.add(key)
        out.append(row)
    return out


def left(versions: list[Row]) -> tuple[dict[int, Row], list[Row]]:
    """The table that versions leave one after the other, and those that are left out."""
    table, bad = dict[int, Row](), list[Row]()
    for row in versions:
        if row["diff"] < 0:
            table.pop(row["id"], None)
            continue
        unsent = [name for name in LARGE if row[name] == UNSENT[name]]
        before = table.get(row["id"])
        if unsent and before is None:
            bad.append(row)
            continue
        table[row["id"]] = {name: (before or {})[name] if name in unsent else row[name] for name in ROW}
    return table, bad


def cut(r: random.Random, rows: list[Row]) -> list[list[Row]]:
    at = sorted(r.randrange(len(rows) + 1) for _ in range(r.randrange(8)))
    return [rows[first:stop] for first, stop in zip([0, *at], [*at, len(rows)], strict=True)]


def by_lsn(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["lsn"])


@pytest.mark.parametrize("seed", SEEDS)
def test_rule_63_in_the_order_of_arrival_each_value_is_that_of_the_row_before(seed: int) -> None:
    r = random.Random(seed)
    driven, done = Driven(()), list[Row]()
    for some in cut(r, history(r, r.randrange(60))):
        driven.step(some)
        done += some
        assert (driven.table, driven.bad) == left(done)


@pytest.mark.parametrize("seed", SEEDS)
def test_rule_63_with_an_order_a_bundle_may_have_its_versions_in_any_order_and_repeated(seed: int) -> None:
    r = random.Random(seed)
    driven, done = Driven(("lsn",)), list[Row]()
    for some in cut(r, history(r, r.randrange(60))):
        table, bad = left([*done, *some])
        driven.step(r.sample(some, len(some)))
        assert driven.table == table
        assert by_lsn(driven.bad) == bad
        done += some
        again = [row for row in r.sample(done, min(len(done), 5)) if row not in driven.bad]
        driven.step(again)
        assert driven.table == table
        assert by_lsn(driven.bad) == bad


@pytest.mark.parametrize("seed", SEEDS)
def test_rule_63_versions_that_come_later_correct_values_that_were_filled(seed: int) -> None:
    """The first version of each key comes first, and the others in any order over any bundles."""
    r = random.Random(seed)
    versions = history(r, r.randrange(60), deletes=False, first=True)
    firsts = {row["id"]: row for row in reversed(versions)}
    others = [row for row in versions if row is not firsts[row["id"]]]
    driven = Driven(("lsn",))
    driven.step(list(firsts.values()))
    done = list(firsts.values())
    for some in cut(r, r.sample(others, len(others))):
        driven.step(some)
        done += some
        assert driven.table == left(by_lsn(done))[0]
        assert driven.bad == []


def test_rule_63_a_row_that_lacks_a_value_after_a_deletion_is_left_out() -> None:
    driven = Driven(("lsn",))
    whole = {"id": 1, "n": 1, "text": "a", "raw": b"a", "tags": ["a"], "lsn": 1, "diff": 1}
    driven.step([whole, {"id": 1, "lsn": 2, "diff": -1}])
    driven.step([{**whole, "text": MARK, "lsn": 3}])
    assert driven.table == {}
    assert [row["lsn"] for row in driven.bad] == [3]
    driven.step([{**whole, "text": "b", "lsn": 4}, {**whole, "text": MARK, "lsn": 5, "n": 5}])
    assert (driven.table[1]["text"], driven.table[1]["n"]) == ("b", 5)


def test_a_state_of_earlier_versions_goes_on() -> None:
    """It has no store of versions that sent a value; its rows are whole."""
    plain = UpsertsOperator(Upserts(by=("id",), row=ROW, order=("lsn",), diff="diff"), SCHEMA)
    log, whole = Log(), {"id": 1, "n": 1, "text": "a", "raw": b"a", "tags": ["a"], "lsn": 1, "diff": 1}
    state = plain.step(plain.initial(), pa.Table.from_pylist([whole], SCHEMA), 0).state
    manifest = save(state, load(None, log, plain), log)
    driven = Driven(("lsn",))
    driven.log, driven.loaded = log, load(manifest, log, driven.operator)
    driven.table[1] = {name: whole[name] for name in ROW}
    driven.step([{**whole, "n": 2, "text": MARK, "lsn": 2}])
    assert driven.table[1] == {"id": 1, "n": 2, "text": "a", "raw": b"a", "tags": ["a"]}
