"""Messages of JSON with the number of a JSON Schema, and the columns of such schemas."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from registry_server import Registry, framed, registry_server

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch
from uncombine.messages.json_schema import json_columns

ORDER = {
    "type": "object",
    "$defs": {"money": {"type": "object", "properties": {"cents": {"type": "integer"}}}},
    "properties": {
        "id": {"type": "integer"},
        "who": {"oneOf": [{"type": "null"}, {"type": "string"}]},
        "price": {"$ref": "#/$defs/money"},
        "at": {"type": "string", "format": "date-time"},
        "tags": {"type": ["array", "null"], "items": {"enum": ["a", "b"]}},
        "more": {"type": "object", "additionalProperties": {"type": "number"}},
        "small": {"type": "integer", "connect.type": "int16"},
        "when": {"type": "integer", "connect.type": "int64", "title": "io.debezium.time.MicroTimestamp"},
    },
}
COLUMNS = pa.schema(
    {
        "id": pa.int64(),
        "who": pa.string(),
        "price": pa.struct([("cents", pa.int64())]),
        "at": pa.timestamp("us", "UTC"),
        "tags": pa.list_(pa.string()),
        "more": pa.map_(pa.string(), pa.float64()),
        "small": pa.int16(),
        "when": pa.timestamp("us"),
    }
)


@pytest.fixture
def served() -> Iterator[Registry]:
    with registry_server() as served:
        yield served


def test_the_columns_of_a_json_schema() -> None:
    assert json_columns(json.dumps(ORDER)) == COLUMNS


def test_messages_with_a_number(served: Registry) -> None:
    number = served.register("orders-value", ORDER, "JSON")
    other = served.register("other", "int")
    format = uc.messages.JsonSchema(registry=uc.SchemaRegistry(served.address)).settled("orders")
    assert format.schema == COLUMNS
    row = {"id": 1, "who": None, "price": {"cents": 5}, "at": "2024-05-01T12:00:00Z", "tags": ["a"], "more": {"x": 1}}
    text = json.dumps({**row, "small": 3, "when": 1_000_000}).encode()
    messages = [framed(number, text), text, framed(number, b"{"), framed(other, text), framed(77, text)]
    table, good, reasons = pickle.loads(pickle.dumps(format)).decode(pa.array(messages))
    assert good.to_pylist() == [True, False, False, False, False]
    [read] = table.to_pylist()
    assert (read["price"], read["more"], read["small"]) == ({"cents": 5}, [("x", 1.0)], 3)
    assert (read["at"].isoformat(), read["when"].isoformat()) == ("2024-05-01T12:00:00+00:00", "1970-01-01T00:00:01")
    assert [reason[:24] for reason in reasons.to_pylist()] == [
        "it does not begin with t",
        "it is no JSON: Expecting",
        "schema 2 of the registry",
        "the schema registry has ",
    ]


def test_given_columns(served: Registry) -> None:
    number = served.register("orders-value", ORDER, "JSON")
    format = uc.messages.JsonSchema(pa.schema({"id": pa.string()}), registry=uc.SchemaRegistry(served.address))
    assert format.settled("orders") is format
    assert format.decode(pa.array([framed(number, b'{"id": "x"}')])).table.to_pylist() == [{"id": "x"}]
    with pytest.raises(TypeMismatch, match="takes an Arrow schema"):
        uc.messages.JsonSchema("{}", registry=uc.SchemaRegistry(served.address))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"type": ["string", "integer"]}, "'x', which is of one of several types"),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "is of one of several types"),
        ({}, "has no type"),
        ({"type": "object"}, "is an object without properties"),
        ({"type": "array", "items": {"type": "object"}}, "'x\\[\\]', which is an object without properties"),
        ({"$ref": "#"}, "holds itself"),
        ({"$ref": "other.json"}, "is another schema"),
        ({"$ref": "#/$defs/none"}, "is not there"),
    ],
)
def test_schemas_without_columns(change: Any, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        json_columns(json.dumps({"type": "object", "properties": {"x": change}}))


@pytest.mark.parametrize("text", ["{", '"x"', '{"type": "string"}', '{"type": "object", "additionalProperties": {}}'])
def test_texts_that_are_no_objects(text: str) -> None:
    with pytest.raises(InvalidArgument, match="a JSON Schema of the registry"):
        json_columns(text)
