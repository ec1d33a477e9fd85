"""Debezium's envelopes in messages of Avro, Protobuf and JSON: the rows are those of the same envelopes in columns."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from changes import ROW, Event, history, left, without_same_k
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from random_avro import avro_message
from seeds import seeds

import uncombine as uc

AVRO_ROW = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "id", "type": ["null", "string"]},
        {"name": "k", "type": ["null", "string"]},
        {"name": "x", "type": ["null", "long"]},
    ],
}
SOURCE = {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": ["null", "long"]}]}
ENVELOPE = {
    "type": "record",
    "name": "shop.orders.Envelope",
    "fields": [
        {"name": "before", "type": ["null", AVRO_ROW], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "source", "type": SOURCE},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ],
}
PROTO = """syntax = "proto3"; package shop;
message Value { int64 ts = 1; optional string id = 2; optional string k = 3; optional int64 x = 4; }
message Source { int64 lsn = 1; }
message Envelope { Value before = 1; Value after = 2; Source source = 3; string op = 4; optional int64 ts_ms = 5; }
"""


def envelopes(events: list[Event], old_rows: bool) -> list[dict[str, Any]]:
    return [
        {
            "before": e.old if old_rows or e.new is None else None,
            "after": e.new,
            "source": {"lsn": e.at},
            "op": "d" if e.new is None else "r" if e.snapshot else "c" if e.old is None else "u",
            "ts_ms": e.at,
        }
        for e in events
    ]


def by_avro(rows: list[dict[str, Any]]) -> pa.Table:
    return uc.messages.Avro(ENVELOPE).decode(pa.array([avro_message(ENVELOPE, row) for row in rows])).table


def by_protobuf(rows: list[dict[str, Any]]) -> pa.Table:
    file = descriptor_pb2.FileDescriptorProto(name="e.proto", package="shop", syntax="proto2")  # sends 0, too
    whole = file.message_type.add(name="Value")
    for number, (name, kind) in enumerate({"ts": 3, "id": 9, "k": 9, "x": 3}.items(), 1):
        whole.field.add(name=name, number=number, type=kind, label=1)
    file.message_type.add(name="Source").field.add(name="lsn", number=1, type=3, label=1)
    outer = file.message_type.add(name="Envelope")
    for number, (name, kind) in enumerate({"before": "Value", "after": "Value", "source": "Source"}.items(), 1):
        outer.field.add(name=name, number=number, type=11, type_name=f".shop.{kind}", label=1)
    outer.field.add(name="op", number=4, type=9, label=1)
    outer.field.add(name="ts_ms", number=5, type=3, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Envelope"))
    messages = []
    for row in rows:
        present = {name: value for name, value in row.items() if value is not None}
        for name in ("before", "after"):
            if name in present:
                present[name] = {key: value for key, value in present[name].items() if value is not None}
        messages.append(kind(**present).SerializeToString())
    table = uc.messages.Protobuf(PROTO, "Envelope").decode(pa.array(messages)).table
    image = pa.struct([f.with_type(ROW.field("ts").type) if f.name == "ts" else f for f in table["after"].type])
    return table.set_column(0, "before", table["before"].cast(image)).set_column(1, "after", table["after"].cast(image))


def by_json(rows: list[dict[str, Any]]) -> pa.Table:
    image = pa.struct(list(ROW))
    columns = pa.schema(
        {"op": pa.string(), "before": image, "after": image, "source": pa.struct([("lsn", pa.int64())])}
    )
    return uc.messages.Json(columns).decode(pa.array([json.dumps(row).encode() for row in rows])).table


WAYS = [by_avro, by_protobuf, by_json]


def net(rows: pa.Table) -> dict[str, int]:
    """The weight of each row that is left."""
    out: dict[str, int] = {}
    for row in rows.select([*ROW.names, "diff"]).to_pylist():
        weight = row.pop("diff")
        row["ts"] = row["ts"] and int(row["ts"].timestamp() * 1_000_000)
        key = json.dumps(row, default=str)
        out[key] = out.get(key, 0) + weight
    return {key: weight for key, weight in out.items() if weight}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", seeds(16))
def test_random_histories_leave_the_table(seed: int, way: Callable[[Any], pa.Table]) -> None:
    r = random.Random(seed)
    events = history(r, r.randrange(1, 60), nulls=False)
    want = {json.dumps(row): 1 for row in left(events).values()}
    whole = uc.flow(way(envelopes(events, old_rows=True)), changelog=uc.changelog.Debezium())
    assert net(whole.run()) == want
    messages = way(envelopes(events, old_rows=False))
    keyed = uc.flow(
        messages.take(pa.array(r.sample(range(messages.num_rows), messages.num_rows))),
        changelog=uc.changelog.Debezium(keys="id", order="source.lsn"),
    )
    assert net(keyed.run()) == want


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", seeds(16))
def test_values_that_were_not_sent_are_those_of_the_row_before(seed: int, way: Callable[[Any], pa.Table]) -> None:
    r = random.Random(seed)
    events = history(r, r.randrange(1, 60), nulls=False)
    want = {json.dumps(row): 1 for row in left(events).values()}
    sent = envelopes([Event(e.at, e.old, without_same_k(e), e.snapshot) for e in events], old_rows=False)
    messages = way(r.sample(sent, len(sent)))
    for table, order in ((messages, "source.lsn"), (way(sent), None)):
        flow = uc.flow(table, changelog=uc.changelog.Debezium(keys="id", order=order))
        assert net(flow.run()) == want


def test_a_row_without_a_value_that_no_row_of_its_key_has_is_left_out() -> None:
    """Silently it would be a row with a wrong value."""
    events = [Event(0, None, {"ts": 0, "id": "a", "k": UNSENT, "x": 1}), Event(1, None, {"ts": 0, "id": "b", "x": 2})]
    messages = by_json(envelopes(events, old_rows=False))
    flow = uc.flow(messages.schema, changelog=uc.changelog.Debezium(keys="id"), watermark="1 minute")
    counted = flow.window("1 minute").combine(n=uc.Count(), x=uc.Sum("x"))
    result = counted.run([uc.Elements(messages), uc.Watermark(None)])
    assert result.select(["n", "x"]).to_pylist() == [{"n": 1, "x": 2}]
    (out,) = result.left_out.to_pylist()
    assert (out["why"], out["row"]["id"], out["row"]["k"]) == ("bad", "a", UNSENT)


UNSENT = "__debezium_unavailable_value"


@pytest.mark.parametrize(
    ("kind", "value", "is_bad"),
    [
        (pa.string(), UNSENT, True),
        (pa.binary(), UNSENT.encode(), True),
        (pa.list_(pa.string()), [UNSENT], True),
        (pa.list_(pa.binary()), [UNSENT.encode()], True),
        (pa.list_(pa.string()), [UNSENT, "a"], False),
        (pa.list_(pa.string()), [], False),
        (pa.binary(), b"a", False),
        (pa.list_(pa.int64()), [7], False),
    ],
)
def test_a_value_that_was_not_sent_is_no_value(kind: pa.DataType, value: Any, is_bad: bool) -> None:
    """PostgreSQL leaves out large values that did not change, also bytes and lists; those of keys nobody knows."""
    row = pa.struct([("ts", pa.int64()), ("x", kind)])
    rows = [{"ts": 1, "x": None}, {"ts": 1, "x": value}]
    events = pa.table({"op": ["c", "c"], "before": pa.nulls(2, row), "after": pa.array(rows, row)})
    for keys in (None, "x", "ts"):
        if keys == "x" and pa.types.is_list(kind):
            continue
        read: Any = uc.changelog.Debezium(keys=keys).reading(events.schema)
        assert read(events)["diff"].to_pylist() == [1, 0 if is_bad and keys != "ts" else 1]
    if kind == pa.binary():
        text = json.dumps({"op": "c", "after": {"ts": 1, "x": base64.b64encode(value).decode()}})
        from_json: Any = uc.changelog.Debezium(schema=pa.schema(list(row)))
        messages = pa.table({"value": [text]})
        assert from_json.reading(messages.schema)(messages)["diff"].to_pylist() == [0 if is_bad else 1]
