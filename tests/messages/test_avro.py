"""Avro against fastavro: random schemas, values, evolution and damage."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from random_avro import AvroDraw, avro_message, expected, plain_rows, without_logical
from seeds import seeds

from uncombine.messages.avro_decoder import AvroDecoder
from uncombine.messages.avro_resolution import Mismatch
from uncombine.messages.avro_schema import AvroType, avro_type


def decoder(one: Any, other: Any = None) -> AvroDecoder:
    return AvroDecoder.of(avro_type(one), avro_type(one if other is None else other), "value")


@pytest.mark.parametrize("seed", seeds(40))
def test_values_come_back(seed: int) -> None:
    r = random.Random(seed)
    draw = AvroDraw(r)
    schema = draw.record(3)
    kind = avro_type(json.dumps(schema))
    pairs = [draw.of(kind) for _ in range(r.randrange(1, 40))]
    values = pa.array([avro_message(schema, one) for one, _ in pairs], pa.binary())
    table, good, reasons = decoder(schema)(values)
    assert table.schema == decoder(schema).schema
    assert (good.to_pylist(), reasons.to_pylist()) == ([True] * len(pairs), [])
    assert plain_rows(table) == [row for _, row in pairs]
    first = r.randrange(len(pairs))
    assert plain_rows(decoder(schema)(values.slice(first)).table) == [row for _, row in pairs[first:]]


def read_by_fastavro(schema: Any, message: bytes) -> Any:
    """The value of a message; raises where it is none, or is longer."""
    stream = io.BytesIO(message)
    value = fastavro.schemaless_reader(stream, fastavro.parse_schema(schema), return_record_name=True)
    if stream.read():
        raise ValueError("more bytes")
    return value


def damaged(r: random.Random, message: bytes) -> bytes:
    draw = r.randrange(5)
    if draw == 0:
        return message[: r.randrange(len(message) + 1)]
    if draw == 1:
        return message + r.randbytes(r.randrange(1, 4))
    if draw == 2:
        return r.randbytes(r.randrange(40))
    changed = bytearray(message or b"\x00")
    for _ in range(r.randrange(1, 3)):
        changed[r.randrange(len(changed))] = r.choice([0, 1, 2, 127, 128, 255, r.randrange(256)])
    return bytes(changed)


@pytest.mark.parametrize("seed", seeds(60))
def test_a_damaged_message_is_bad_or_what_fastavro_reads(seed: int) -> None:
    """A damaged message may be another good one; then it is the one that fastavro writes for it."""
    r = random.Random(seed)
    draw = AvroDraw(r)
    schema = draw.record(3)
    kind = avro_type(schema)
    whole = [avro_message(schema, draw.of(kind)[0]) for _ in range(5)]
    messages = [r.choice([message, damaged(r, message)]) for message in whole * 8]
    table, good, reasons = decoder(schema)(pa.array(messages, pa.binary()))
    assert table.num_rows == sum(good.to_pylist()) == len(messages) - len(reasons)
    rows = iter(plain_rows(table))
    for message, is_good in zip(messages, good.to_pylist(), strict=True):
        if message in whole:
            assert is_good
        alone = decoder(schema)(pa.array([message], pa.binary()))
        assert alone.good.to_pylist() == [is_good]
        if is_good:
            row = next(rows)
            assert plain_rows(alone.table) == [row]
            assert expected(kind, read_by_fastavro(without_logical(schema), message)) == row


def test_one_bad_message_among_many() -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}, {"name": "s", "type": "string"}]}
    messages = [avro_message(schema, {"n": i, "s": str(i)}) for i in range(100_000)]
    messages[70_000] = b"\x02\x04\xff\xff"
    table, good, reasons = decoder(schema)(pa.array(messages))
    assert reasons.to_pylist() == ["a text is no UTF-8"]
    assert good.false_count == 1
    assert table["n"].to_pylist() == [i for i in range(100_000) if i != 70_000]


EVOLVED: list[tuple[Any, Any, Any, Any]] = [
    ("int", "long", 7, 7),
    ("int", "double", 7, 7.0),
    ("long", "float", 7, 7.0),
    ("float", "double", 0.5, 0.5),
    ("string", "bytes", "é", "é".encode()),
    ("bytes", "string", b"a", "a"),
    ("int", ["null", "long"], 7, 7),
    (["null", "int"], ["null", "double"], 7, 7.0),
    (["null", "int"], "int", 7, 7),
    (["int", "string"], ["null", "string"], "x", "x"),
    ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}, [1, 2], [1, 2]),
    ({"type": "map", "values": "int"}, {"type": "map", "values": ["null", "long"]}, {"a": 1}, [("a", 1)]),
    (
        {"type": "enum", "name": "e", "symbols": ["A", "B"]},
        {"type": "enum", "name": "e", "symbols": ["C", "A"], "default": "C"},
        "B",
        "C",
    ),
]


@pytest.mark.parametrize(("one", "other", "value", "want"), EVOLVED)
def test_a_schema_that_is_read_as_another(one: Any, other: Any, value: Any, want: Any) -> None:
    fields = [{"name": "gone", "type": ["null", {"type": "array", "items": "string"}]}, {"name": "x", "type": one}]
    old = {"type": "record", "name": "r", "fields": [*fields, {"name": "y", "type": "int"}]}
    new = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "z", "type": "string", "aliases": ["nothing"], "default": "none"},
            {"name": "why", "type": "long", "aliases": ["y"]},
            {"name": "x", "type": other},
            {"name": "many", "type": {"type": "array", "items": "int"}, "default": [1]},
            {"name": "maybe", "type": ["null", "string"], "default": None},
        ],
    }
    row = {"gone": ["a", "b"], "x": value, "y": 3}
    message = avro_message(old, row)
    [read] = decoder(old, new)(pa.array([message])).table.to_pylist()
    assert read == {"z": "none", "why": 3, "x": want, "many": [1], "maybe": None}
    by_fastavro = fastavro.schemaless_reader(
        io.BytesIO(message), fastavro.parse_schema(old), fastavro.parse_schema(new)
    )
    assert by_fastavro | {"x": want} == read


def test_a_branch_that_does_not_fit_is_a_bad_message() -> None:
    read = decoder(["null", "string", "int"], "int")
    messages = [avro_message(["null", "string", "int"], value) for value in (1, "a", None, 2)]
    table, good, reasons = read(pa.array(messages))
    assert table["value"].to_pylist() == [1, 2]
    assert good.to_pylist() == [True, False, False, True]
    assert reasons.to_pylist() == ["the value that it has does not fit the schema of the reader"] * 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("string", "int"),
        ("long", "int"),
        ({"type": "long", "logicalType": "timestamp-micros"}, {"type": "long", "logicalType": "timestamp-millis"}),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 3},
        ),
        ({"type": "fixed", "name": "f", "size": 2}, {"type": "fixed", "name": "f", "size": 3}),
        ({"type": "array", "items": "string"}, {"type": "array", "items": "int"}),
    ],
)
def test_schemas_that_do_not_fit(one: Any, other: Any) -> None:
    with pytest.raises(Mismatch, match="was written, and the reader's schema has"):
        decoder(one, other)


def test_times_of_two_units() -> None:
    one, other = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
    messages = pa.array([avro_message("long", value) for value in (5, 2**62)])
    table, _, reasons = decoder(one, other)(messages)
    assert table["value"].cast(pa.int64()).to_pylist() == [5000]
    assert reasons.to_pylist() == ["a time is out of the range of its type"]


def test_times_of_debezium() -> None:
    schema = {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}
    assert decoder(schema).schema.field(0).type == pa.timestamp("us")


def test_unions_of_several_types_have_a_field_for_each() -> None:
    union = ["null", "string", {"type": "record", "name": "a.P", "fields": [{"name": "n", "type": "int"}]}]
    values = [None, "x", ("a.P", {"n": 1})]
    read = decoder(union)(pa.array([avro_message(union, value) for value in values])).table["value"].to_pylist()
    assert read == [None, {"string": "x", "P": None}, {"string": None, "P": {"n": 1}}]
    both = decoder(["int", "long"])
    assert both(pa.array([avro_message(["int", "long"], 1)])).table.to_pylist() == [{"value": 1}]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("{", "is JSON, or the name of a type"),
        ("Order", "is JSON, or the name of a type"),
        ({"type": "Order"}, "names a type 'Order' that it does not define"),
        ({"type": "record", "name": "r", "fields": [{"name": "r", "type": ["null", "r"]}]}, "refers to itself"),
        ({"type": "array"}, "lacks the type of the values"),
        ({"name": "r"}, "has no type"),
        ({"type": "fixed", "name": "f"}, "is no number"),
        ([], "a union of Avro has branches"),
        ({"type": "array", "items": "null"}, "without any bytes"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 39}, "has 39 digits"),
        ({"type": "record", "name": "r", "fields": [{"type": "int"}]}, "without a name or a type"),
    ],
)
def test_schemas_that_are_refused(schema: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        decoder(schema)


def test_names_in_their_spaces() -> None:
    inner = {"type": "enum", "name": "Kind", "symbols": ["A"]}
    schema = {
        "type": "record",
        "name": "shop.Order",
        "fields": [{"name": "one", "type": inner}, {"name": "two", "type": "Kind"}, {"name": "x", "type": "shop.Kind"}],
    }
    assert [field.type.name for field in avro_type(schema).fields] == ["shop.Kind"] * 3
    used: AvroType = avro_type({"type": "array", "items": "shop.Order"}, [json.dumps(schema)])
    assert used.parts[0].short == "Order"
