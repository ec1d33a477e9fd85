"""Changelogs of a table for tests, the table that they leave, and the checks that all targets pass."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from uncombine.errors import TableMismatch, TableUnreachable
from uncombine.panes.state.seed import SeedMaker
from uncombine.tables import Changes, Keeper, Layout, Target, changes_of, target_of, write_once

ROWS = pa.schema(
    {
        "k": pa.string(),
        "window": pa.struct({"start": pa.timestamp("us", "UTC"), "end": pa.timestamp("us", "UTC")}),
        "n": pa.int64(),
        "x": pa.float64(),
        "diff": pa.int64(),
    }
)
LAYOUT = Layout(ROWS, ("k", "window_start", "window_end"), "diff")
SECOND = 1_000_000

Rows = dict[Any, dict[str, Any]]
"""The rows of a table by their keys."""


def random_batches(seed: int, count: int, keys: int = 12) -> Iterator[tuple[pa.Table, Rows]]:
    """Batches of a changelog, and the rows that are left after each; a key comes, changes and goes several times."""
    r = random.Random(seed)
    windows = [None, *({"start": i * SECOND, "end": (i + 1) * SECOND} for i in range(3))]
    names = [None, "", *(f"k{i}" for i in range(keys))]
    left: Rows = {}
    for _ in range(count):
        rows = []
        for _ in range(r.choice([0, 1, 5, 60])):
            name, window = r.choice(names), r.choice(windows)
            key = name, *((None, None) if window is None else window.values())
            if key in left:
                rows.append({**left.pop(key), "diff": -1})
            if r.random() < 0.7:
                x = r.choice([None, -0.0, math.inf, math.nan, 1.5])
                left[key] = {"k": name, "window": window, "n": r.choice([None, r.randrange(9)]), "x": x}
                rows.append({**left[key], "diff": 1})
        yield pa.Table.from_pylist(rows, ROWS), dict(left)


def changes(rows: pa.Table, layout: Layout = LAYOUT) -> Changes:
    """The changes by the rows of a batch."""
    return Changes.of(layout, [changes_of(rows, layout)])


def table_of(left: Rows) -> pa.Table:
    """The rows that are left, as a table has them."""
    rows = pa.Table.from_pylist(list(left.values()), ROWS.remove(ROWS.names.index("diff")))
    return in_order(Layout(rows.schema, LAYOUT.keys).flat(rows).cast(LAYOUT.schema))


def in_order(table: pa.Table) -> list[str]:
    """The rows as texts in an order of their own; -0.0 and 0.0 are different, NaN equals NaN."""
    return sorted(map(repr, table.to_pylist()))


def follows(url: str, seed: int, count: int = 12) -> int:
    """Check a table after each of random batches, some of which come again, over several runs; how many rows came."""
    r, came, keeper = random.Random(seed), 0, Keeper(writer_of(url))
    keeper.start()
    try:
        for batch, (rows, left) in enumerate(random_batches(seed, count)):
            assert keeper.take(batch, changes(rows))
            came += rows.num_rows
            if r.random() < 0.3:
                keeper.close()
                keeper = Keeper(writer_of(url))
                assert keeper.start() == batch
            while r.random() < 0.3:
                assert not keeper.take(r.randint(max(0, batch - 1), batch), changes(rows))
            assert in_order(keeper.writer.read()) == table_of(left)
    finally:
        keeper.close()
    return came


def writer_of(url: str, layout: Layout = LAYOUT, owner: str = "me") -> Any:
    """A writer of a table."""
    target: Target = target_of(url)
    target.check(layout)
    return target.writer(layout, owner)


def row(k: str, n: int, diff: int = 1) -> dict[str, Any]:
    return {"k": k, "window": None, "n": n, "x": None, "diff": diff}


def batch_of(*rows: dict[str, Any]) -> Changes:
    return changes(pa.Table.from_pylist(list(rows), ROWS))


def refuses(url: str) -> None:
    """Check that a table refuses other writers, other rows, and batches that do not follow, and stays as it is."""
    with pytest.raises(TableMismatch, match="2 of 3 changes do not fit"):
        write_once(target_of(url), batch_of(row("a", 1, -1), row("b", 1), row("c", 1, -1), row("c", 2)))
    first = writer_of(url)
    assert first.start() == -1
    assert first.start() == -1
    assert first.read().num_rows == 0
    assert first.apply(0, batch_of(row("a", 1), row("b", 2)))
    kept = in_order(first.read())
    first.close()

    def refused(words: str, batch: int = 1, given: Changes | None = None, **other: Any) -> None:
        writer = writer_of(url, **other)

        def work() -> None:
            writer.start()
            writer.apply(batch, batch_of(row("c", 3)) if given is None else given)

        with pytest.raises(TableMismatch, match=words):
            work()
        writer.close()

    refused("is written with another checkpoint", owner="you")
    columns = ROWS.append(pa.field("more", pa.int64()))
    refused("column 'more' is new", layout=Layout(columns, LAYOUT.keys, "diff"))
    refused("the keys were", layout=Layout(ROWS, ("k",), "diff"))
    changed = ROWS.set(ROWS.names.index("n"), pa.field("n", pa.string()))
    refused("column 'n' was int64 and is string", layout=Layout(changed, LAYOUT.keys, "diff"))
    refused("has the batches up to 0, but the checkpoint goes on with batch 2", batch=2)
    unfit = "1 of 2 changes do not fit|has a row for a key that the flow adds"
    refused(unfit, given=batch_of(row("c", 3), row("a", 1)))
    refused(unfit, given=batch_of(row("c", 3), row("d", 1, -1)))
    refused(unfit, given=batch_of(row("c", 3), row("d", 1, -1), row("d", 2)))

    last = writer_of(url)
    assert last.start() == 0
    assert in_order(last.read()) == kept
    assert last.apply(1, batch_of(row("a", 1, -1), row("a", 5)))
    assert sorted(map(tuple, zip(*last.read().select(["k", "n"]).to_pydict().values(), strict=True))) == [
        ("a", 5),
        ("b", 2),
    ]
    assert last.read(limit=1)["k"].to_pylist() == ["a"]
    last.close()


FIRST = dt.datetime(1, 1, 1, tzinfo=dt.UTC)
LAST = dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC)
LARGE = decimal.Decimal("-12345678901234567890123456789012345.678")

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    'a"quoted"name': (pa.string(), ['it\'s "quoted"', "'); DROP TABLE t; --"]),
    "select": (pa.string(), ["", None]),
    "Straße 😀": (pa.string(), ["🦆\u200d\n\t\\", "x" * 1_000_000]),
    "a.b": (pa.decimal128(38, 3), [LARGE, decimal.Decimal("0.001")]),
    "f": (pa.float64(), [math.nan, math.inf]),
    "f4": (pa.float32(), [-math.inf, -0.0]),
    "$1 ?": (pa.binary(), [b"\x00\xff'", b""]),
    "%s {0}": (pa.timestamp("us", "UTC"), [FIRST, LAST]),
    "local": (pa.timestamp("us"), [FIRST.replace(tzinfo=None), LAST.replace(tzinfo=None)]),
    "day": (pa.date32(), [FIRST.date(), LAST.date()]),
    "yes": (pa.bool_(), [True, None]),
    "i8": (pa.int8(), [-128, 127]),
    "i64": (pa.int64(), [-(2**63), 2**63 - 1]),
    "u64": (pa.uint64(), [0, 2**64 - 1]),
    "rowid": (pa.int64(), [7, 7]),
}
"""Columns with hard names and hard values."""

NESTED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "list": (pa.list_(pa.string()), [["a'", None], []]),
    "struct": (pa.struct({"a'b": pa.int64(), "c": pa.list_(pa.float64())}), [{"a'b": 1, "c": [1.5]}, None]),
}


HOUR = 3_600_000_000
LENGTHS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "length": (pa.duration("us"), [-(2**63), 2**63 - 1]),
    "month?": (pa.duration("us"), [30 * 24 * HOUR, -24 * HOUR - 1]),
    "in s": (pa.duration("s"), [None, -400 * 86_400]),
    "in ms": (pa.duration("ms"), [0, -1]),
}
"""Lengths of time, of which databases have parts: months, days and microseconds."""


def holds(url: str, columns: dict[str, tuple[pa.DataType, list[Any]]]) -> None:
    """Check that a table gives back hard values under hard names: as rows, as keys, and after an update of them."""
    key = 'the_"key"_😀'
    schema = pa.schema({key: pa.string(), **{name: kind for name, (kind, _) in columns.items()}, "diff": pa.int64()})
    layout = Layout(schema, (key,), "diff")
    writer = writer_of(url, layout)

    def rows(keys: Sequence[str], diffs: Sequence[int], turned: bool) -> pa.Table:
        values = {name: given[:: -1 if turned else 1][: len(keys)] for name, (_, given) in columns.items()}
        return pa.table({key: keys, **values, "diff": diffs}, schema=schema)

    keys = ["'; DELETE FROM t", 'é"\n']
    before, after = rows(keys, [1, 1], False), rows(keys, [1, 1], True)
    writer.start()
    writer.apply(0, changes(before, layout))
    assert in_order(writer.read()) == in_order(layout.flat(before).cast(layout.schema))
    writer.apply(1, changes(pa.concat_tables([rows(keys, [-1, -1], False), after]), layout))
    assert in_order(writer.read()) == in_order(layout.flat(after).cast(layout.schema))
    writer.apply(2, changes(rows(keys[:1], [-1], True), layout))
    assert writer.read()[key].to_pylist() == keys[1:]
    writer.apply(3, changes(rows(keys[1:], [-1], True), layout))
    assert writer.read().num_rows == 0
    writer.close()


KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "f": (pa.float64(), [math.nan, math.inf, -math.inf, None]),
    "f4": (pa.float32(), [5e-45, math.nan, None, 0.0]),
    "decimal": (pa.decimal128(38, 3), [LARGE, decimal.Decimal(1), None, -LARGE]),
    "binary": (pa.binary(), [b"", b"\xff'", None, b"\\x00"]),
    "time": (pa.timestamp("us", "UTC"), [FIRST, LAST, None, FIRST]),
    "day": (pa.date32(), [LAST.date(), None, FIRST.date(), None]),
    "yes": (pa.bool_(), [True, False, None, True]),
    "text": (pa.string(), ["", "null", None, "x" * 2000]),
}
"""Hard values of keys, of four rows."""


LENGTH_KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "length": (pa.duration("us"), [None, dt.timedelta(days=30), dt.timedelta(days=-1), dt.timedelta(0)]),
}
"""Keys that are lengths of time."""


def finds(url: str, columns: dict[str, tuple[pa.DataType, list[Any]]] = KEYS) -> None:
    """Check that a table finds rows by hard keys."""
    schema = pa.schema({**{name: kind for name, (kind, _) in columns.items()}, "n": pa.int64(), "diff": pa.int64()})
    layout = Layout(schema, tuple(columns), "diff")
    keys = {name: values for name, (_, values) in columns.items()}
    old, new = (pa.table({**keys, "n": [n] * 4, "diff": [1] * 4}, schema=schema) for n in (1, 2))
    gone = [table.set_column(len(columns) + 1, "diff", [[-1] * 4]).cast(schema) for table in (old, new)]
    writer = writer_of(url, layout)
    writer.start()
    writer.apply(0, changes(old, layout))
    writer.apply(1, changes(pa.concat_tables([gone[0], new]), layout))
    assert in_order(writer.read()) == in_order(layout.flat(new).cast(layout.schema))
    for row in range(4):
        writer.apply(2 + row, changes(gone[1].slice(row, 1), layout))
        assert in_order(writer.read()) == in_order(layout.flat(new).cast(layout.schema).slice(row + 1))
    writer.close()


def lacks_column(url: str, name: str) -> None:
    """Check that a table without a column of the flow is refused, and that no batch changes it."""
    works: list[Any] = [
        lambda one: one.start(),
        lambda one: one.apply(1, batch_of(row("b", 2))),
        lambda one: one.read(),
    ]
    if not url.startswith("iceberg:"):
        works.append(lambda one: one.files())
    for work in works:
        writer = writer_of(url)
        with pytest.raises(TableMismatch, match=f"has no column '{name}', which the flow has: something else has"):
            work(writer)
        writer.close()


def adapted(url: str) -> None:
    """Check that a table becomes that of a changed flow, once: with new columns, and no values in dropped ones."""
    first = writer_of(url)
    first.start()
    assert first.apply(0, batch_of({**row("a", 1), "x": 1.5}, {**row("b", 2), "x": 2.5}))
    first.close()
    fields = [
        ROWS.field("k"),
        ROWS.field("window"),
        ROWS.field("n"),
        pa.field("more", pa.float64()),
        ROWS.field("diff"),
    ]
    now = pa.schema(fields)
    layout = Layout(now, LAYOUT.keys, "diff")
    maker = SeedMaker(owner="me", batch=0)
    other = writer_of(url, Layout(pa.schema([*fields[:2], pa.field("n", pa.string()), fields[4]]), LAYOUT.keys, "diff"))
    other.adapts = True
    with pytest.raises(TableMismatch, match="cannot become the table of the changed flow"):
        other.start(maker)
    other.close()
    plain = writer_of(url, layout, owner="you")
    with pytest.raises(TableMismatch):
        plain.start(maker)
    plain.close()
    new = [{**row("a", 1), "more": 0.5}]
    for again in (False, True):
        writer = writer_of(url, layout, owner="you")
        writer.adapts = True
        writer.start(maker)
        rows = pa.Table.from_pylist([{**one, "diff": 1} for one in new], now)
        old = pa.Table.from_pylist([{**row("a", 1), "more": None, "diff": -1}], now)
        assert writer.apply(0, changes(pa.concat_tables([old, rows]), layout)) != again
        left = sorted(writer.read().to_pylist(), key=lambda one: one["k"])
        assert [(one["k"], one["n"], one["more"]) for one in left] == [("a", 1, 0.5), ("b", 2, None)]
        assert [one.get("x") for one in left] == [None, None]
        writer.close()


def taken_over(url: str) -> None:
    """Check that a writer takes over the table of the maker of a seed at its last batch, once, and no other table."""
    maker = SeedMaker(owner="me", batch=1)

    def refused(words: str, writer: Any, maker: SeedMaker | None = None) -> None:
        with pytest.raises(TableMismatch, match=words):
            writer.start(maker)
        writer.close()

    refused("is not the table of the query or the run that made the seed", writer_of(url, owner="you"), maker)
    first = writer_of(url)
    first.start()
    assert first.apply(0, batch_of(row("a", 1), row("b", 2)))
    refused("has the batches up to 0, and the seed those up to 1: let the", writer_of(url, owner="you"), maker)
    assert first.apply(1, batch_of(row("a", 1, -1), row("a", 5)))
    refused("is not the table of the query", writer_of(url, owner="you"), SeedMaker(owner="others", batch=1))
    refused("the keys were", writer_of(url, Layout(ROWS, ("k",), "diff"), owner="you"), maker)
    kept = in_order(first.read())
    first.close()
    assert writer_of(url).start() == 1, "nothing of it was written"
    for _ in range(2):
        second = writer_of(url, owner="you")
        assert second.start(maker) == -1
        assert in_order(second.read()) == kept
        second.close()
    refused("is written with another checkpoint", writer_of(url))
    late = writer_of(url)
    with pytest.raises(TableMismatch, match="is written with another checkpoint"):
        late.apply(2, batch_of(row("c", 3)))
    late.close()
    assert second.apply(0, batch_of(row("b", 2, -1), row("c", 3)))
    assert not second.apply(0, batch_of(row("b", 2, -1), row("c", 3)))
    assert second.start(maker) == 0
    assert second.apply(1, batch_of(row("c", 3, -1)))
    assert second.read().select(["k", "n"]).to_pylist() == [{"k": "a", "n": 5}]
    second.close()
    third = writer_of(url, owner="third")
    assert third.start(SeedMaker(owner="you", batch=1)) == -1
    assert third.apply(0, batch_of(row("d", 4)))
    assert sorted(third.read()["k"].to_pylist()) == ["a", "d"]
    third.close()
    again = writer_of(url, owner="third")
    assert again.start() == 0
    again.close()


def still_written(url: str) -> None:
    """Check that no batch is lost or doubled if a table is taken over while its former query writes a batch.

    The former query begins its batch, the table is taken over, and the batch is committed.
    """
    one, other = writer_of(url), writer_of(url, owner="you")
    maker = SeedMaker(owner="me", batch=0)
    one.start()
    assert one.apply(0, batch_of(row("a", 1)))
    given = batch_of(row("a", 1, -1), row("a", 2))
    calls = iter(range(9))

    def late() -> object:
        if next(calls) == 1:
            assert other.start(maker) == -1
        return given.batches()

    refused = False
    try:
        one.apply(1, Changes(given.layout, given.rows, late))  # type: ignore[arg-type]
    except TableUnreachable:
        refused = True
    if refused:
        assert other.apply(0, given)
        assert other.read()["n"].to_pylist() == [2]
    else:
        with pytest.raises(TableMismatch, match="was still written by its former query"):
            other.apply(0, given)
