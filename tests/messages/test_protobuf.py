"""Protobuf against Google's library: random schemas, values and damage, and the wire format of a registry."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from random_avro import plain_rows
from random_proto import ProtoDraw, row_of, sorted_maps
from registry_server import Registry, framed, registry_server
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch


def rows(table: pa.Table) -> list[Any]:
    return [sorted_maps(row) for row in plain_rows(table)]


@pytest.mark.parametrize("seed", seeds(60))
def test_values_come_back(seed: int) -> None:
    r = random.Random(seed)
    draw = ProtoDraw(r)
    kind, format = draw.kind(), uc.messages.Protobuf(draw.text)
    messages = [kind() for _ in range(r.randrange(1, 30))]
    for message in messages:
        draw.fill(message)
    values = pa.array([message.SerializeToString() for message in messages], pa.binary())
    table, good, reasons = format.decode(values)
    assert table.schema == format.schema
    assert reasons.to_pylist() == []
    assert good.true_count == len(messages)
    assert rows(table) == [sorted_maps(row_of(message)) for message in messages]


@pytest.mark.parametrize("seed", seeds(60))
def test_a_damaged_message_is_bad_or_what_google_reads(seed: int) -> None:
    """Parts of messages come twice and in any order, too: the last value counts, and messages are merged."""
    r = random.Random(seed)
    draw = ProtoDraw(r)
    kind, format = draw.kind(), uc.messages.Protobuf(draw.text)
    whole = []
    for _ in range(6):
        message = kind()
        draw.fill(message)
        whole.append(message.SerializeToString())
    joined = [r.choice(whole) + r.choice(whole) for _ in range(6)]
    messages = [r.choice([one, damaged(r, one)]) for one in [*whole, *joined] * 5]
    table, good, reasons = format.decode(pa.array(messages, pa.binary()))
    assert table.num_rows == good.true_count == len(messages) - len(reasons)
    read = iter(rows(table))
    for message, is_good in zip(messages, good.to_pylist(), strict=True):
        alone = format.decode(pa.array([message], pa.binary()))
        assert alone.good.to_pylist() == [is_good]
        if message in whole or message in joined:  # two durations may be merged to one of two signs
            assert is_good or (message in joined and "a time is out" in alone.reasons[0].as_py())
        if is_good:
            row = next(read)
            assert rows(alone.table) == [row]
            parsed = kind()
            parsed.ParseFromString(message)
            assert row == sorted_maps(row_of(parsed))


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


def test_packed_and_unpacked_numbers_are_alike() -> None:
    format = uc.messages.Protobuf('syntax = "proto3"; message M { repeated sint32 n = 1; repeated fixed32 f = 2; }')
    values = [b"\x0a\x03\x02\x80\x02\x08\x04", b"\x15\1\0\0\0\x12\x08\2\0\0\0\3\0\0\0", b"\x0a\x01\x80", b"\x12\x03abc"]
    table, _, reasons = format.decode(pa.array(values))
    assert table.to_pylist() == [{"n": [1, 128, 2], "f": []}, {"n": [], "f": [1, 2, 3]}]
    assert reasons.to_pylist() == ["it ends too early"] * 2


def test_faults_that_google_does_not_tell() -> None:
    format = uc.messages.Protobuf('syntax = "proto3"; message M { int32 n = 1; bool b = 2; string s = 3; }')
    values = [b"\x08\x80\x80\x80\x80\x10", b"\x10\x02", b"\x0a\x01a", b"\x1a\x01\xff", b"\x0b", b"\x00\x00", b"\x0e"]
    assert format.decode(pa.array(values)).reasons.to_pylist() == [
        "a number is out of the range of its type",
        "a boolean is neither 0 nor 1",
        "a field has the wire type of another type",
        "a text is no UTF-8",
        "it has a group, which is not read",
        "a field has the number 0, or one that is too large",
        "a field has the wire type of another type",
    ]


def test_proto2_has_defaults_of_its_own() -> None:
    text = """message M {
        optional int32 a = 1; required string b = 2; optional int64 c = 3 [default = -7, deprecated = true];
        optional string d = 4 [default = "x\\ty"]; optional E e = 5 [default = B]; optional bool f = 6 [default = true];
        extensions 100 to max; message Inner { } enum E { A = 1; B = 2; }
    }
    extend M { optional int32 more = 100; }
    service S { rpc Get (M) returns (M) { option idempotency_level = NO_SIDE_EFFECTS; } }"""
    format = uc.messages.Protobuf(text)
    [row] = format.decode(pa.array([b""])).table.to_pylist()
    assert row == {"a": None, "b": None, "c": -7, "d": "x\ty", "e": "B", "f": True}
    [row] = format.decode(pa.array([b"\x08\x00\x18\x05\x28\x09"])).table.to_pylist()
    assert (row["a"], row["c"], row["e"]) == (0, 5, "9")


@pytest.fixture
def served() -> Iterator[Registry]:
    with registry_server() as served:
        yield served


ORDERS = """syntax = "proto3"; package shop; import "common/money.proto"; import "google/protobuf/timestamp.proto";
message Other { int32 x = 1; }
message Order { int64 id = 1; common.Money price = 2; message Line { int32 n = 1; } repeated Line lines = 3;
  google.protobuf.Timestamp at = 4; }"""
MONEY = 'syntax = "proto3"; package common; message Money { int64 cents = 1; }'


def test_messages_name_their_type_by_its_place(served: Registry) -> None:
    served.register("money", MONEY, "PROTOBUF")
    reference = [{"name": "common/money.proto", "subject": "money", "version": 1}]
    number = served.register("orders-value", ORDERS, "PROTOBUF", reference)
    newer = ORDERS.replace("int64 id = 1;", "int64 id = 1; string note = 9;").replace(
        "message Other { int32 x = 1; }", ""
    )
    format = uc.messages.Protobuf(message="Order", registry=uc.SchemaRegistry(served.address)).settled("orders")
    two = served.register("orders-value", newer, "PROTOBUF", reference)
    order = b"\x08\x07\x12\x02\x08\x63\x1a\x02\x08\x05\x22\x02\x08\x01"
    messages = [
        framed(number, b"\x02\x02" + order),
        framed(number, b"\x00" + b"\x08\x01"),
        framed(two, b"\x00" + order + b"\x4a\x01n"),
        framed(number, b"\x04\x02\x00" + b"\x08\x01"),
        framed(number, b"\x02\x0a" + order),
        framed(number, b"\xff"),
        framed(number, b""),
        framed(9, b"\x00"),
        framed(two, b"\x02\x00" + order),
    ]
    table, good, reasons = format.decode(pa.array(messages))
    at = table["at"][0].as_py().replace(tzinfo=None)
    assert good.to_pylist() == [True, False, True, False, False, False, False, False, True]
    want = {"id": 7, "price": {"cents": 99}, "lines": [{"n": 5}]}
    assert table.drop_columns(["at"]).to_pylist() == [want] * 3
    assert at.isoformat() == "1970-01-01T00:00:01"
    assert reasons.to_pylist() == [
        "it is a shop.Other, and not a shop.Order, which message= names",
        "it is a shop.Order.Line, and not a shop.Order, which message= names",
        "its schema has no message at the place that it names",
        "it ends too early",
        "it ends too early",
        "the schema registry has no schema 9",
    ]


def test_a_field_of_another_type_does_not_fit(served: Registry) -> None:
    old = 'syntax = "proto3"; message M { I i = 1; message I { int32 n = 1; } }'
    number = served.register("m", old, "PROTOBUF")
    for change, fits in (
        ("int64 n = 1", True),
        ("sint32 n = 1", False),
        ("string n = 1", False),
        ("string s = 2", True),
    ):
        format = uc.messages.Protobuf(old.replace("int32 n = 1", change), registry=uc.SchemaRegistry(served.address))
        reasons = format.decode(pa.array([framed(number, b"\x00\x0a\x02\x08\x05")])).reasons.to_pylist()
        assert reasons == ([] if fits else [f"field 1 of M.I is int32, and the reader's is {change.split()[0]}"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("message", "has its end where more should be"),
        ("message M { int32 n = 1; ", "has its end where more should be"),
        ("message M { int32 n = 1; int64 m = 1; }", "has a field number twice"),
        ("message M { Order n = 1; }", "names a type 'Order' that it does not define"),
        ("message M { repeated group G = 1 { } }", "has a group"),
        ("message M { M m = 1; }", "holds itself"),
        ('syntax = "proto3"; message M { }', "has no fields"),
        ('edition = "2023"; message M { int32 n = 1; }', "has an edition"),
        ('import "a.proto"; message M { int32 n = 1; }', "imports 'a.proto', which is not there"),
        ('syntax = "proto3"; enum E { A = 0; }', "has no message"),
        ("message M { int32 n = 1; } §", "which is no part of one"),
        ('import "google/protobuf/struct.proto"; message M { google.protobuf.Struct s = 1; }', "does not define"),
    ],
)
def test_schemas_that_are_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        uc.messages.Protobuf(text)


def test_options_that_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="has no message 'Ordr': did you mean 'Order'"):
        uc.messages.Protobuf("message Order { optional int32 n = 1; }", "Ordr")
    with pytest.raises(TypeMismatch, match="takes the text of a file"):
        uc.messages.Protobuf(7)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="needs schema=, or registry="):
        uc.messages.Protobuf()
