"""The step that remembers the last row of each key: against a dict, in any bundles, order and number of arrivals."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from seeds import seeds
from stepping import Log

from uncombine.errors import InvalidArgument, OutOfRange, TypeMismatch
from uncombine.panes.state.chunk_log import load, save
from uncombine.panes.upserts.operator import UpsertsOperator
from uncombine.panes.upserts.upserts import Upserts
from uncombine.windows.times import MAX_TIME, MIN_TIME

SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("us", "UTC"),
        "id": pa.float64(),
        "name": pa.dictionary(pa.int32(), pa.string()),
        "tags": pa.list_(pa.string()),
        "lsn": pa.int64(),
        "part": pa.date32(),
        "diff": pa.int64(),
    }
)
ROW = ("ts", "id", "name", "tags")
DAY = 86_400_000_000

Version = tuple[Any, ...]


def text(row: dict[str, Any]) -> str:
    """A row as text; -0.0 equals 0.0."""
    return repr({**row, "id": None if row["id"] is None else row["id"] + 0.0})


class Driven:
    """An operator whose state is stored and loaded after each step."""

    def __init__(self, order: tuple[str, ...] = (), **options: Any) -> None:
        self.operator = UpsertsOperator(Upserts(by=("id",), row=ROW, order=order, diff="diff", **options), SCHEMA)
        self.state, self.log = self.operator.initial(), Log()
        self.loaded = load(None, self.log, self.operator)
        self.net: Counter[str] = Counter()
        self.bad = 0

    def step(self, rows: list[dict[str, Any]], watermark: int = 0) -> list[dict[str, Any]]:
        bundle = self.operator.bundle([pa.Table.from_pylist(rows, SCHEMA)], (), 0)
        stepped = self.operator.step(self.state, bundle, watermark)
        assert stepped.panes.schema == self.operator.output_schema
        assert stepped.output_watermark == max(watermark, self.state.output_watermark)
        manifest = save(stepped.state, self.loaded, self.log)
        self.loaded = load(manifest, self.log, self.operator)
        self.state, self.bad = self.loaded.state, stepped.state.counts.bad
        given = stepped.panes.to_pylist()
        signs = [row["diff"] for row in given]
        assert signs == sorted(signs)
        for row in given:
            weight = row.pop("diff")
            assert weight in (-1, 1)
            self.net[text(row)] += weight
            assert self.net[text(row)] in (0, 1)
            row["diff"] = weight
        return given

    @property
    def rows(self) -> Counter[str]:
        return +self.net


def version(r: random.Random, lsn: int) -> dict[str, Any]:
    deleted = r.random() < 0.25
    return {
        "ts": r.choice([None, r.randrange(100)]),
        "id": r.choice([None, 0.0, -0.0, 1.5, float("nan")]),
        "name": r.choice(["x", "y", None]),
        "tags": r.choice([None, [], ["a", None]]),
        "lsn": lsn,
        "part": None,
        "diff": -1 if deleted else 1,
    }


def left(versions: list[dict[str, Any]]) -> Counter[str]:
    table: dict[str, dict[str, Any]] = {}
    for row in versions:
        key = "0.0" if row["id"] == 0 else str(row["id"])
        table.pop(key, None)
        if row["diff"] > 0:
            table[key] = {name: row[name] for name in ROW}
    shown = pa.Table.from_pylist(list(table.values()), pa.schema([SCHEMA.field(name) for name in ROW]))
    return Counter(map(text, shown.to_pylist()))


def cut(r: random.Random, rows: list[Any]) -> list[list[Any]]:
    at = sorted(r.randrange(len(rows) + 1) for _ in range(r.randrange(6)))
    return [rows[first:stop] for first, stop in zip([0, *at], [*at, len(rows)], strict=True)]


SEEDS = seeds(60, 600)


@pytest.mark.parametrize("seed", SEEDS)
def test_rule_62_in_the_order_of_arrival_the_last_row_is_left(seed: int) -> None:
    r = random.Random(seed)
    rows = [version(r, 0) for _ in range(r.randrange(40))]
    driven, done = Driven(), list[dict[str, Any]]()
    for some in cut(r, rows):
        driven.step(some)
        done += some
        assert driven.rows == left(done)
    assert driven.operator.count_entries(driven.state) == len(left(rows))


@pytest.mark.parametrize("seed", SEEDS)
def test_rule_63_versions_may_come_in_any_order_and_more_than_once(seed: int) -> None:
    r = random.Random(seed)
    rows = [version(r, lsn - 20) for lsn in range(r.randrange(40))]
    sent = [*rows, *(r.choice(rows) for _ in range(10) if rows)]
    r.shuffle(sent)
    driven, done = Driven(("lsn",)), list[dict[str, Any]]()
    for some in cut(r, sent):
        driven.step(some, watermark=r.randrange(DAY))
        done += some
        assert driven.rows == left(sorted(done, key=lambda row: row["lsn"]))


def test_an_order_of_two_columns_and_rows_of_one_version() -> None:
    driven = Driven(("part", "lsn"))
    same = {"ts": 1, "id": 1.0, "tags": None}
    driven.step(
        [
            {**same, "name": "late", "part": 2, "lsn": 0, "diff": 1},
            {**same, "name": "x", "part": 1, "lsn": 9, "diff": 1},
        ]
    )
    assert "late" in str(driven.rows)
    driven.step([{**same, "name": "again", "part": 2, "lsn": 0, "diff": 1}])
    assert "again" in str(driven.rows)
    assert driven.step([{**same, "name": "again", "part": 2, "lsn": 1, "diff": 1}]) == []
    assert driven.step([{**same, "name": "old", "part": 2, "lsn": 0, "diff": 1}]) == []


def test_a_retraction_is_the_row_with_its_own_time() -> None:
    driven = Driven()
    row = {"id": 1.0, "name": "x", "tags": ["a"]}
    driven.step([{**row, "ts": 5, "diff": 1}])
    given = driven.step([{**row, "ts": 900, "diff": 1}], watermark=800)
    assert [(r["ts"].microsecond, r["diff"]) for r in given] == [(5, -1), (900, 1)]
    assert [r["ts"].microsecond for r in driven.step([{"id": 1.0, "diff": -1}], watermark=2 * DAY)] == [900]


def test_rule_63_a_deleted_key_is_remembered_for_a_while() -> None:
    row = {"ts": 5, "id": 1.0, "name": "x", "tags": None}
    for wait, comes in ((3 * DAY - 1, False), (3 * DAY, False), (3 * DAY + 1, True)):
        driven = Driven(("lsn",), keep_deletes="2 days")
        driven.step([{**row, "lsn": 5, "diff": 1}], watermark=1)
        driven.step([{"id": 1.0, "lsn": 7, "diff": -1}], watermark=DAY)
        assert driven.operator.count_entries(driven.state) == 1
        driven.step([], watermark=wait)
        given = driven.step([{**row, "lsn": 6, "diff": 1}], watermark=wait)
        assert bool(given) == comes
    driven = Driven(("lsn",))
    driven.step([{"id": 1.0, "lsn": 7, "diff": -1}], watermark=MIN_TIME)
    assert driven.step([{**row, "lsn": 6, "diff": 1}], watermark=DAY) == []
    assert Driven().step([{"id": 1.0, "diff": -1}]) == []


def test_at_the_end_of_time_rows_are_still_retracted_and_then_nothing_is_kept() -> None:
    driven = Driven()
    driven.step([{"ts": 5, "id": 1.0, "diff": 1}, {"ts": 5, "id": 2.0, "diff": 1}], watermark=9)
    assert [row["diff"] for row in driven.step([{"ts": 6, "id": 1.0, "diff": 1}], watermark=MAX_TIME)] == [-1, 1]
    assert driven.operator.count_entries(driven.state) == 0


def test_bad_rows_are_counted_and_change_nothing() -> None:
    driven = Driven()
    driven.step([{"ts": 5, "id": 1.0, "diff": 1}])
    assert driven.step([{"ts": None, "id": None, "diff": 0}, {"ts": 6, "id": 1.0, "diff": 0}]) == []
    assert driven.bad == 2


def test_rows_of_a_type_without_a_hash_are_retracted_all_the_same() -> None:
    schema = pa.schema({"ts": pa.int64(), "id": pa.int64(), "m": pa.map_(pa.string(), pa.int64()), "diff": pa.int64()})
    operator = UpsertsOperator(Upserts(by=("id",), row=("ts", "id", "m"), diff="diff"), schema)
    row = pa.Table.from_pylist([{"ts": 0, "id": 1, "m": [("a", 1)], "diff": 1}], schema)
    first = operator.step(operator.initial(), row, 0)
    assert operator.step(first.state, row, 0).panes["diff"].to_pylist() == [-1, 1]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(TypeMismatch, match="order="):
        Driven(("name",))
    with pytest.raises(InvalidArgument, match="keep_deletes="):
        Driven(("lsn",), keep_deletes="-1 day")
    with pytest.raises(TypeMismatch, match="hash"):
        UpsertsOperator(
            Upserts(by=("m",), row=("m",), diff="diff"),
            pa.schema({"m": pa.map_(pa.string(), pa.int64()), "diff": pa.int64()}),
        )
    schema = pa.schema({"id": pa.int64(), "n": pa.uint64(), "diff": pa.int64()})
    operator = UpsertsOperator(Upserts(by=("id",), row=("id",), order=("n",), diff="diff"), schema)
    with pytest.raises(OutOfRange, match="int64"):
        operator.step(operator.initial(), pa.table({"id": [1], "n": [2**64 - 1], "diff": [1]}, schema=schema), 0)
    with pytest.raises(TypeMismatch, match="the bundle has columns"):
        operator.step(operator.initial(), pa.table({"id": [1]}), 0)


def test_a_step_keeps_the_chunks_of_keys_that_it_does_not_touch() -> None:
    schema = pa.schema({"id": pa.int64(), "diff": pa.int64()})
    operator = UpsertsOperator(Upserts(by=("id",), row=("id",), diff="diff"), schema)
    state = operator.step(operator.initial(), pa.table({"id": range(50_000), "diff": [1] * 50_000}), 0).state
    again = operator.step(state, pa.table({"id": [7], "diff": [-1]}), 0).state
    assert operator.count_entries(again) == 49_999
    before, after = (s.stores["rows"] for s in (state, again))
    assert after is not None
    assert before is not None
    assert after.chunks[0].table is before.chunks[0].table
