"""Random histories of a table, and their messages in the convention of each system, written by plain Python."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import uncombine as uc
from uncombine.changelogs import Changelog

TIME = pa.timestamp("us", "UTC")
SECOND = 1_000_000
START = 1_453_291_200 * SECOND
ROW = pa.schema({"ts": TIME, "id": pa.string(), "k": pa.string(), "x": pa.int64()})
KEYS = ["id"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Event:
    """A change of one row; `at` is its place in the log."""

    at: int
    old: Row | None
    new: Row | None
    snapshot: bool = False

    @property
    def key(self) -> Any:
        return (self.new or self.old or {})["id"]


def history(r: random.Random, count: int, deletes: bool = True, nulls: bool = True) -> list[Event]:
    """Inserts, updates and deletes of rows with a few keys; an update may change any column but the key."""
    table: dict[Any, Row] = {}
    ids = ["a", "b", "c", 'd"\\', "é🙂", *([None] if nulls else [])]
    out = list[Event]()
    for at in range(count):
        key = r.choice(ids)
        old = table.get(key)
        if old is not None and deletes and r.random() < 0.3:
            del table[key]
            out.append(Event(at, old, None))
            continue
        time = START + at * 7 * SECOND - r.randrange(60) * SECOND
        k, x = r.choice(["u", "v", None]), r.choice([None, 0, 1, -5, 7])
        new = {"ts": time, "id": key, "k": k, "x": x}
        if old is not None and r.random() < 0.5:
            new = {**old, "x": x}
        table[key] = new
        out.append(Event(at, old, new, snapshot=at < 3 and old is None))
    return out


def left(events: Sequence[Event]) -> dict[Any, Row]:
    """The table after the events."""
    table: dict[Any, Row] = {}
    for event in sorted(events, key=lambda event: event.at):
        table.pop(event.key, None)
        if event.new is not None:
            table[event.key] = event.new
    return table


def weighted(events: Sequence[Event]) -> pa.Table:
    """The rows with weights."""
    rows = [
        {**row, "diff": weight}
        for event in events
        for row, weight in ((event.old, -1), (event.new, 1))
        if row is not None
    ]
    return pa.Table.from_pylist(rows, ROW.append(pa.field("diff", pa.int64())))


IMAGE = pa.struct(list(ROW))
SOURCE = pa.struct([("lsn", pa.int64()), ("table", pa.string())])
PLACE = pa.field("place", pa.int64())


def _op(event: Event) -> str:
    return "d" if event.new is None else ("r" if event.snapshot else ("c" if event.old is None else "u"))


def debezium(events: Sequence[Event]) -> pa.Table:
    rows = [{"op": _op(e), "before": e.old, "after": e.new, "source": {"lsn": e.at, "table": "t"}} for e in events]
    tombstones = [i for i, e in enumerate(events) if e.new is None]
    for i in reversed(tombstones):
        rows.insert(i + 1, {"op": None, "before": None, "after": None, "source": None})
    kinds = [("op", pa.string()), ("before", IMAGE), ("after", IMAGE), ("source", SOURCE)]
    return pa.Table.from_pylist(rows, pa.schema(kinds))


def debezium_keyed(events: Sequence[Event]) -> pa.Table:
    """As PostgreSQL sends it without REPLICA IDENTITY FULL."""
    rows = [
        {
            "op": _op(e),
            "before": {"ts": 0, "id": e.key, "k": None, "x": 0} if e.new is None else None,
            "after": e.new,
            "source": {"lsn": e.at, "table": "t"},
        }
        for e in events
    ]
    kinds = [("op", pa.string()), ("before", IMAGE), ("after", IMAGE), ("source", SOURCE)]
    return pa.Table.from_pylist(rows, pa.schema(kinds))


def debezium_json(events: Sequence[Event], wrapped: bool = False) -> pa.Table:
    texts: list[str | None] = []
    for e in events:
        envelope: Any = {
            "before": e.old,
            "after": e.new,
            "source": {"lsn": e.at, "more": [1]},
            "op": _op(e),
            "ts_ms": e.at,
        }
        texts.append(
            json.dumps({"schema": {"type": "struct"}, "payload": envelope} if wrapped else envelope, indent=e.at % 2)
        )
        if e.new is None:
            texts.append(None)
    return pa.table({"value": pa.array(texts, pa.string())})


def without_same_k(event: Event) -> Row | None:
    """The new row as PostgreSQL sends it where `k` is large: without a value that the update did not change."""
    if event.old is None or event.new is None or event.old["k"] != event.new["k"]:
        return event.new
    return {**event.new, "k": "__debezium_unavailable_value"}


def debezium_unsent(events: Sequence[Event]) -> pa.Table:
    """As PostgreSQL sends it without REPLICA IDENTITY FULL, where `k` is large."""
    old = {"ts": None, "k": None, "x": None}
    rows = [
        {
            "before": {**old, "id": e.key} if e.new is None else None,
            "after": without_same_k(e),
            "source": {"lsn": e.at},
            "op": _op(e),
        }
        for e in events
    ]
    return pa.table({"value": pa.array(map(json.dumps, rows), pa.string())})


def flat(events: Sequence[Event]) -> pa.Table:
    rows = [
        {**(e.new or {"id": e.key, "ts": 0}), "__op": _op(e), "__deleted": str(e.new is None).lower(), "__lsn": e.at}
        for e in events
    ]
    more = [("__op", pa.string()), ("__deleted", pa.string()), ("__lsn", pa.int64())]
    return pa.Table.from_pylist(rows, pa.schema([*ROW, *more]))


def worded(events: Sequence[Event], column: str, words: Sequence[str], old_rows: bool = True) -> pa.Table:
    insert, before, after, delete = words
    rows = []
    for e in events:
        if e.old is not None and (e.new is None or old_rows):
            rows.append({**e.old, column: delete if e.new is None else before, "place": e.at})
        if e.new is not None:
            rows.append({**e.new, column: insert if e.old is None else after, "place": e.at})
    return pa.Table.from_pylist(rows, pa.schema([*ROW, (column, pa.string()), PLACE]))


def kafka(events: Sequence[Event]) -> pa.Table:
    rows = [{"key": {"id": e.key}, "value": e.new, "offset": e.at} for e in events]
    kinds = [("key", pa.struct([("id", pa.string())])), ("value", IMAGE), ("offset", pa.int64())]
    return pa.Table.from_pylist(rows, pa.schema(kinds))


def kafka_json(events: Sequence[Event]) -> pa.Table:
    rows = [
        {
            "key": json.dumps({"id": e.key}).encode(),
            "value": None if e.new is None else json.dumps({n: v for n, v in e.new.items() if n != "id"}).encode(),
            "offset": e.at,
        }
        for e in events
    ]
    return pa.Table.from_pylist(rows, pa.schema([("key", pa.binary()), ("value", pa.binary()), ("offset", pa.int64())]))


def _text(row: Row) -> Row:
    """The values as PostgreSQL writes them: times are texts."""
    if row["ts"] is None:
        return row
    seconds, micros = divmod(row["ts"], SECOND)
    time = str(pa.scalar(seconds, pa.timestamp("s")))
    return {**row, "ts": f"{time}.{micros:06d}+00"}


def wal2json(events: Sequence[Event], keyed: bool = False) -> pa.Table:
    texts = ['{"action":"B"}']
    for e in events:
        message: dict[str, Any] = {
            "action": {"r": "I", "c": "I"}.get(_op(e), _op(e).upper()),
            "schema": "s",
            "table": "t",
        }
        if e.new is not None:
            message["columns"] = [{"name": n, "type": "any", "value": v} for n, v in _text(e.new).items()]
        if e.old is not None and not (keyed and e.new is not None):
            old = {"id": e.key} if keyed else _text(e.old)
            message["identity"] = [{"name": n, "type": "any", "value": v} for n, v in old.items()]
        texts.append(json.dumps(message))
        texts.append(json.dumps({**message, "table": "other"}))
    places = [-1, *(e.at for e in events for _ in range(2)), -1]
    return pa.table({"data": [*texts, '{"action":"C"}'], "lsn": places})


def wal2json_1(events: Sequence[Event]) -> pa.Table:
    """Transactions of up to three changes."""
    texts = []
    for first in range(0, len(events), 3):
        changes = []
        for e in events[first : first + 3]:
            kind = "delete" if e.new is None else ("insert" if e.old is None else "update")
            change: dict[str, Any] = {"kind": kind, "schema": "s", "table": "t"}
            if e.new is not None:
                change |= {"columnnames": list(e.new), "columnvalues": list(_text(e.new).values())}
            if e.old is not None:
                change["oldkeys"] = {"keynames": list(e.old), "keyvalues": list(_text(e.old).values())}
            changes.append(change)
        texts.append(json.dumps({"change": changes}))
    return pa.table({"data": texts})


@dataclass(frozen=True)
class Form:
    """A convention: how messages are read, and how they are written for a history."""

    changelog: Changelog
    messages: Callable[[Sequence[Event]], pa.Table]
    deletes: bool = True
    nulls: bool = True

    @property
    def keyed(self) -> bool:
        return getattr(self.changelog, "keys", None) is not None


c = uc.changelog
FLINK = ("+I", "-U", "+U", "-D")
DELTA = ("insert", "update_preimage", "update_postimage", "delete")
OPS = {"I": 1, "UB": -1, "U": 1, "D": -1}

FORMS: dict[str, Form] = {
    "debezium": Form(c.Debezium(), debezium),
    "debezium keyed": Form(c.Debezium("id", order="source.lsn"), debezium_keyed),
    "debezium old rows, keyed": Form(
        c.Debezium("id", order="source.lsn"), lambda e: debezium(e).filter(debezium(e)["op"].is_valid())
    ),
    "debezium json": Form(c.Debezium(schema=ROW), debezium_json),
    "debezium json, wrapped": Form(c.Debezium(schema=ROW), lambda e: debezium_json(e, wrapped=True)),
    "debezium json, keyed": Form(
        c.Debezium("id", order=("source.lsn", "ts_ms"), schema=ROW), lambda e: debezium_json(e).drop_null()
    ),
    "debezium json, unsent": Form(c.Debezium("id", order="source.lsn", schema=ROW), debezium_unsent),
    "flat": Form(c.Debezium("id", order="__lsn", flat=True), flat),
    "flat, op only": Form(c.Debezium("id", order="__lsn", flat=True), lambda e: flat(e).drop_columns(["__deleted"])),
    "flat, deleted only": Form(c.Debezium("id", order="__lsn", flat=True), lambda e: flat(e).drop_columns(["__op"])),
    "delta": Form(
        c.DeltaFeed(),
        lambda e: worded(e, "_change_type", DELTA).rename_columns([*ROW.names, "_change_type", "_commit_version"]),
    ),
    "flink": Form(c.Flink(metadata=["place"]), lambda e: worded(e, "row_kind", FLINK)),
    "flink upsert": Form(
        c.Flink(keys="id", order="place", metadata=["place"]), lambda e: worded(e, "row_kind", FLINK, old_rows=False)
    ),
    "kafka": Form(c.KafkaUpsert("id"), kafka),
    "kafka json": Form(c.KafkaUpsert("id", schema=ROW), kafka_json),
    "wal2json": Form(c.Postgres(ROW, table="s.t"), wal2json),
    "wal2json, format 1": Form(c.Postgres(ROW), wal2json_1),
    "wal2json keyed": Form(c.Postgres(ROW, "t", keys="id", order="lsn"), lambda e: wal2json(e, keyed=True)),
    "ops": Form(c.Ops("op", OPS, metadata=["place"]), lambda e: worded(e, "op", list(OPS))),
    "ops keyed": Form(
        c.Ops("op", {**OPS, "UB": 0}, keys="id", order="place", metadata=["place"]),
        lambda e: worded(e, "op", list(OPS)),
    ),
    "spark update": Form(
        c.SparkUpdate("id", order="place", metadata=["place", "op"]),
        lambda e: worded(e, "op", list(OPS), old_rows=False),
        deletes=False,
    ),
}


def bundles(r: random.Random, events: Sequence[Event]) -> list[Sequence[Event]]:
    """The events in a few bundles, some of them empty."""
    cuts = sorted(r.randrange(len(events) + 1) for _ in range(r.randrange(4)))
    return [events[first:stop] for first, stop in zip([0, *cuts], [*cuts, len(events)], strict=True)]


def totals(flow: uc.Flow) -> uc.Flow:
    """A flow whose result depends on every column of a row and on its time."""
    early = uc.AfterWatermark(early=uc.Always(), late=uc.Always())
    windowed = flow.window(uc.Fixed("1 minute"), early, "retracting", allowed_lateness="30 seconds")
    return windowed.combine(by=["k"], rows=uc.Count(), x=uc.Sum("x"), ids=uc.CountDistinct("id"))


def net(table: pa.Table) -> Counter[str]:
    """The rows that are left of a changelog."""
    found: Counter[str] = Counter()
    for row in table.to_pylist():
        weight = row.pop("diff")
        found[repr([value for name, value in sorted(row.items()) if name not in ("pane", "step")])] += weight
    return Counter({row: weight for row, weight in found.items() if weight})
