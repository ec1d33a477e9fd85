"""Random histories of commits of Delta and Iceberg, and the rows of each version by their own libraries."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

import uncombine as uc

NOON = (uc.col("id") * 0).cast_time("s")
"""One event time for all rows that have an id."""

START = datetime(2024, 5, 1, tzinfo=UTC)

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.timestamp("us", "UTC")),
        ("k", pa.string()),
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("tags", pa.list_(pa.string())),
        ("at", pa.struct([("a", pa.int64()), ("b", pa.string())])),
    ]
)

ADDED = [("more", pa.int64()), ("text", pa.string())]
"""Columns that a history adds."""

COMMITS = ["append", "append", "delete", "update", "merge", "overwrite", "replace", "add", "compact", "restore"]

Row = dict[str, Any]


class History:
    """A table to which random commits are made. A subclass says how."""

    def __init__(self, r: random.Random) -> None:
        self.r, self.next, self.added = r, 0, 0
        self.done: list[str] = []

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*SCHEMA, *(pa.field(*one) for one in ADDED[: self.added])])

    def row(self, id: int | None = None) -> Row:
        r = self.r
        if id is None:
            id, self.next = self.next, self.next + 1
        row: Row = {
            "id": id,
            "ts": START + timedelta(minutes=r.randrange(240)),
            "k": r.choice(["a", "b", "a b/ü", None]),
            "n": r.choice([None, *range(-3, 5)]),
            "x": r.choice([None, 0.5, 1.5, -2.0]),
            "tags": r.choice([None, [], ["x"], ["x", None]]),
            "at": r.choice([None, {"a": None, "b": "z"}, {"a": 1, "b": None}]),
        }
        for name, kind in ADDED[: self.added]:
            row[name] = r.choice([None, 7 if kind == pa.int64() else "seven"])
        return row

    def rows(self, count: int) -> pa.Table:
        return pa.Table.from_pylist([self.row() for _ in range(count)], self.schema)

    def again(self) -> pa.Table:
        """Rows of which some have ids that are there."""
        ids = sorted({self.r.randrange(self.next + 2) for _ in range(self.r.randrange(1, 5))})
        self.next = max(self.next, *(id + 1 for id in ids))
        return pa.Table.from_pylist([self.row(id) for id in ids], self.schema)

    def condition(self) -> str:
        r = self.r
        return r.choice(
            [
                f"id % 3 = {r.randrange(3)}",
                f"n > {r.randrange(-2, 4)}",
                "k = 'a'",
                "k IS NULL",
                f"id = {r.randrange(self.next + 1)}",
            ]
        )

    def commit(self) -> None:
        """Make one random commit, or none if the table refuses it."""
        raise NotImplementedError


class DeltaHistory(History):
    """A Delta table, with or without a feed of changes, perhaps with partitions."""

    def __init__(self, path: Path | str, r: random.Random, feed: bool) -> None:
        super().__init__(r)
        self.path, self.feed = str(path), feed
        self.partitions = r.choice([None, ["k"], ["k", "n"]])
        self.url = f"delta:{self.path}"
        write_deltalake(
            self.path,
            self.rows(r.randrange(1, 8)),
            partition_by=self.partitions,
            configuration={"delta.enableChangeDataFeed": "true"} if feed else None,
        )

    def table(self, version: int | None = None) -> DeltaTable:
        return DeltaTable(self.path, version=version)

    @property
    def version(self) -> int:
        return int(self.table().version())

    def versions(self) -> list[int]:
        return list(range(self.version + 1))

    def content(self, version: int) -> pa.Table:
        return self.table(version).to_pyarrow_table()

    def commit(self) -> None:
        r, table = self.r, self.table()
        what = r.choice(
            ["append", "append", "delete", "update", "merge", "overwrite", "replace", "add", "compact", "restore"]
        )
        self.done.append(what)
        try:
            match what:
                case "append":
                    write_deltalake(table, self.rows(r.randrange(1, 6)), mode="append", schema_mode="merge")
                case "delete":
                    table.delete(self.condition())
                case "update":
                    table.update(
                        updates={r.choice(["n", "x"]): r.choice(["1", "n", "NULL"])}, predicate=self.condition()
                    )
                case "merge":
                    merge = table.merge(self.again(), "t.id = s.id", source_alias="s", target_alias="t")
                    merge = merge.when_matched_update_all() if r.random() < 0.7 else merge.when_matched_delete()
                    merge.when_not_matched_insert_all().execute()
                case "overwrite" if r.random() < 0.4:
                    write_deltalake(table, self.rows(r.randrange(4)), mode="overwrite", schema_mode="merge")
                case "replace":
                    rows = self.rows(3)
                    rows = rows.set_column(2, "k", pa.array(["a"] * 3))
                    write_deltalake(table, rows, mode="overwrite", predicate="k = 'a'", schema_mode="merge")
                case "add" if self.added < len(ADDED):
                    self.added += 1
                    write_deltalake(table, self.rows(1), mode="append", schema_mode="merge")
                case "compact":
                    if r.random() < 0.5:
                        table.optimize.compact()
                    else:
                        table.optimize.z_order(["id"])
                case "restore" if table.version() > 2 and r.random() < 0.5:
                    version = table.version() - r.randrange(1, 3)
                    if self.table(version).schema() == table.schema():  # a column that goes ends a flow
                        table.restore(version)
                case _:
                    table.create_checkpoint()
        except DeltaError as error:
            self.done[-1] += f" ({str(error)[:60]})"


class IcebergHistory(History):
    """An Iceberg table of a catalog in SQLite."""

    def __init__(self, folder: Path, r: random.Random) -> None:
        from pyiceberg.catalog.sql import SqlCatalog
        from pyiceberg.transforms import IdentityTransform

        super().__init__(r)
        folder.mkdir(parents=True, exist_ok=True)
        uri, warehouse = f"sqlite:///{folder}/catalog.db", f"{folder}/warehouse"
        self.catalog = SqlCatalog("default", uri=uri, warehouse=warehouse)
        self.catalog.create_namespace_if_not_exists("shop")
        table = self.catalog.create_table("shop.orders", SCHEMA)
        if r.random() < 0.5:
            with table.update_spec() as spec:
                spec.add_field("k", IdentityTransform(), "k")
        self.url = f"iceberg:{uri}?warehouse={warehouse}#shop.orders"

    def table(self) -> Any:
        return self.catalog.load_table("shop.orders")

    @property
    def version(self) -> int:
        return int(self.table().current_snapshot().snapshot_id)

    def versions(self) -> list[int]:
        table, out = self.table(), []
        snapshot = table.current_snapshot()
        while snapshot is not None:
            out.append(int(snapshot.snapshot_id))
            snapshot = (
                None if snapshot.parent_snapshot_id is None else table.snapshot_by_id(snapshot.parent_snapshot_id)
            )
        return out[::-1]

    def content(self, version: int) -> pa.Table:
        return self.table().scan(snapshot_id=version).to_arrow()

    def iceberg_condition(self) -> str:
        r = self.r
        return r.choice([f"id < {r.randrange(self.next + 1)}", f"n > {r.randrange(-2, 4)}", "k = 'a'", "k IS NULL"])

    def commit(self) -> None:
        r, table = self.r, self.table()
        what = r.choice(["append", "append", "delete", "overwrite", "replace", "upsert", "add"])
        self.done.append(what)
        match what:
            case "delete":
                table.delete(self.iceberg_condition())
            case "overwrite" if r.random() < 0.4:
                table.overwrite(self.rows(r.randrange(1, 4)))
            case "replace":
                table.overwrite(self.rows(2), overwrite_filter=self.iceberg_condition())
            case "upsert":
                self._upsert(table)
            case "add" if self.added < len(ADDED):
                with table.update_schema() as update:
                    update.union_by_name(pa.schema([pa.field(*ADDED[self.added])]))
                self.added += 1
                self.table().append(self.rows(1))
            case _:
                table.append(self.rows(r.randrange(1, 5)))

    def _upsert(self, table: Any) -> None:
        """Rows of ids that may be there take the place of these, by one transaction."""
        rows = self.again()
        ids = ", ".join(map(str, rows["id"].to_pylist()))
        table.overwrite(rows, overwrite_filter=f"id IN ({ids})")


def counted(rows: list[Row], weight: str | None = None, names: list[str] | None = None) -> Counter[str]:
    """Rows with the sums of their weights, none of which is zero."""
    out: Counter[str] = Counter()
    for row in rows:
        out[repr([(name, row.get(name)) for name in names or sorted(row) if name != weight])] += (
            1 if weight is None else row[weight]
        )
    return Counter({row: count for row, count in out.items() if count})


def read(url: str, **options: Any) -> list[Row]:
    """The rows of a table with their weights, at one event time."""
    rows = uc.flow(uc.TableChanges(url, **options), time=NOON).run().to_pylist()
    return [{name: value for name, value in row.items() if name not in ("event_time", "step")} for row in rows]


def follows(history: History) -> None:
    """Each version is the sum of the changes up to it, and so are aggregates over them."""
    rows: list[dict[str, Any]] = []
    before: Any = "earliest"
    for version in history.versions():
        content = history.content(version)
        names = content.column_names
        rows += uc.flow(uc.TableChanges(history.url, start=before, end=version)).run().to_pylist()
        left = counted(content.to_pylist(), None, names)
        assert counted(rows, "diff", names) == left, history.done
        assert counted(uc.flow(uc.TableChanges(history.url, end=version)).run().to_pylist(), "diff", names) == left
        before = version
    changes = uc.flow(uc.TableChanges(history.url, start="earliest"))
    totals = changes.window("1 hour").combine(by="k", n=uc.Count(), total=uc.Sum("n"), most=uc.Max("x"))
    found = {
        (row["k"], row["window"]["start"]): (row["n"], row["total"], row["most"])
        for row in totals.run().to_pylist()
        if row["n"]
    }
    df = history.content(history.version).to_pandas()
    expected = {}
    for key, some in df.assign(hour=df["ts"].dt.floor("h")).groupby(["k", "hour"], dropna=False):
        total, most = some["n"].sum(min_count=1), some["x"].max()
        expected[None if pd.isna(key[0]) else key[0], key[1].to_pydatetime()] = (
            len(some),
            None if pd.isna(total) else total,
            None if pd.isna(most) else most,
        )
    assert found == expected, history.done


__all__ = ["NOON", "SCHEMA", "START", "DeltaHistory", "History", "IcebergHistory", "counted", "follows", "read"]
