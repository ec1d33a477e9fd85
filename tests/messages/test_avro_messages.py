"""Messages of Avro alone, and in the wire format of a registry."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from random_avro import AvroDraw, avro_message, plain_rows
from registry_server import Registry, framed, registry_server
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument
from uncombine.messages.avro_schema import avro_type


def record(*fields: tuple[str, Any], name: str = "order", **defaults: Any) -> dict[str, Any]:
    made = [
        {"name": one, "type": kind} | ({"default": defaults[one]} if one in defaults else {}) for one, kind in fields
    ]
    return {"type": "record", "name": name, "fields": made}


OLD = record(("id", "int"), ("who", "string"))
NEW = record(("id", "long"), ("who", ["null", "string"]), ("n", "int"), n=1)
LATER = record(("id", "long"), ("who", ["null", "string"]), ("more", "string"))


@pytest.fixture
def served() -> Iterator[Registry]:
    with registry_server() as served:
        yield served


def test_versions_of_a_schema_are_read_as_the_newest(served: Registry) -> None:
    one, two = served.register("orders-value", OLD), served.register("orders-value", NEW)
    format = uc.messages.Avro(registry=uc.SchemaRegistry(served.address)).settled("orders")
    assert format.schema == pa.schema({"id": pa.int64(), "who": pa.string(), "n": pa.int32()})
    old, new = avro_message(OLD, {"id": 1, "who": "a"}), avro_message(NEW, {"id": 2, "who": None, "n": 5})
    messages = [framed(two, new), framed(one, old), b"", framed(77, old), framed(one, old + b"!"), b"\x01" + new, new]
    table, good, reasons = pickle.loads(pickle.dumps(format)).decode(pa.array(messages))
    assert table.to_pylist() == [{"id": 2, "who": None, "n": 5}, {"id": 1, "who": "a", "n": 1}]
    assert good.to_pylist() == [True, True, False, False, False, False, False]
    header = "it does not begin with the zero and the schema number of Confluent's wire format"
    assert reasons.to_pylist() == [
        header,
        "the schema registry has no schema 77",
        "it goes on after its last value",
        header,
        header,
    ]
    # A version that comes later is read with the columns that the flow began with.
    three = served.register("orders-value", LATER)
    later = framed(three, avro_message(LATER, {"id": 3, "who": "b", "more": "m"}))
    assert format.decode(pa.array([later])).table.to_pylist() == [{"id": 3, "who": "b", "n": 1}]


def test_a_given_schema_is_read_with(served: Registry) -> None:
    number = served.register("orders-value", NEW)
    format = uc.messages.Avro(record(("id", "double")), registry=uc.SchemaRegistry(served.address))
    assert format.settled("orders") == format
    message = framed(number, avro_message(NEW, {"id": 2, "who": None, "n": 5}))
    assert format.decode(pa.array([message])).table.to_pylist() == [{"id": 2.0}]
    other = uc.messages.Avro(record(("id", "string")), registry=uc.SchemaRegistry(served.address))
    [reason] = other.decode(pa.array([message])).reasons.to_pylist()
    assert reason == "schema 1: field 'id': long was written, and the reader's schema has string"


def test_schemas_of_other_kinds_and_wrong_ones_are_bad_messages(served: Registry) -> None:
    numbers = [served.register("s", "{}", "JSON"), served.register("s", "{")]
    format = uc.messages.Avro("int", registry=uc.SchemaRegistry(served.address))
    reasons = format.decode(pa.array([framed(number, b"\x02") for number in numbers])).reasons.to_pylist()
    assert reasons[0] == "schema 1 of the registry is one of JSON, and not of AVRO"
    assert reasons[1].startswith("schema 2: a schema of Avro is JSON")


def test_keys_that_are_no_records(served: Registry) -> None:
    number = served.register("orders-key", "string")
    format = uc.messages.Avro(registry=uc.SchemaRegistry(served.address)).settled("orders", "key")
    assert format.decode(pa.array([framed(number, b"\x02a")])).table.to_pylist() == [{"key": "a"}]


def test_columns_are_asked_for_once(served: Registry) -> None:
    served.register("orders", OLD)
    format = uc.messages.Avro(registry=uc.SchemaRegistry(served.address), subject="orders")
    assert format.schema.names == format.schema.names == ["id", "who"]
    assert format.decode(pa.array([], pa.binary())).table.num_rows == 0
    assert served.asked == ["/subjects/orders/versions/latest"]


@pytest.mark.parametrize("seed", seeds(16))
def test_messages_of_several_schemas_keep_their_order(seed: int, served: Registry) -> None:
    r = random.Random(seed)
    draw = AvroDraw(r)
    one = draw.record(2)
    two = {**one, "fields": [{"name": "first", "type": "int"}, *reversed(one["fields"])]}
    numbers = {served.register("s", schema): schema for schema in (one, two)}
    format = uc.messages.Avro(one, registry=uc.SchemaRegistry(served.address))
    messages, rows, good = [], [], []
    for _ in range(40):
        number = r.choice([*numbers, 9])
        value, row = draw.of(avro_type(one))
        message = avro_message(numbers.get(number, one), {"first": 1, **value})
        is_short = r.random() < 0.2 and len(message) > 0
        good.append(number != 9 and not is_short)
        messages.append(framed(number, message[:-1] if is_short else message))
        rows += [row] if good[-1] else []
    table, is_good, reasons = format.decode(pa.array(messages))
    assert is_good.to_pylist() == good
    assert plain_rows(table) == rows
    assert len(reasons) == good.count(False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "needs schema=, or registry="),
        ({"schema": "int", "subject": "s"}, "give registry= too"),
        ({"schema": "int", "reader_schema": "string"}, "does not fit schema=: int was written"),
        (
            {"schema": "int", "reader_schema": "int", "registry": uc.SchemaRegistry("http://a")},
            "leave reader_schema= out",
        ),
        ({"schema": "nothing"}, "is JSON, or the name of a type"),
    ],
)
def test_options_that_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        uc.messages.Avro(**arguments)
