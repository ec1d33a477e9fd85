"""Formats of messages: JSON, texts and bytes, and the words for them."""

from __future__ import annotations

import json
import pickle
import random
import time
from typing import Any

import pyarrow as pa
import pytest
from hostile_json import PLAIN, ROW
from seeds import seeds

import uncombine as uc
from uncombine.errors import InvalidArgument, TypeMismatch
from uncombine.messages import MessageFormat, format_of

KINDS = pa.schema({"n": pa.int64(), "name": pa.string(), "x": pa.float64(), "items": pa.list_(pa.int64())})
BAD = ['{"n": "one"}', "{", "", "[1]", "7", "null", '{"n": 1.5}', '{"items": 1}', '{"x": {}}', '{"n": 1} {"n": 2}']


@pytest.mark.parametrize("seed", seeds(20))
def test_bad_messages_of_json_leave_the_others(seed: int) -> None:
    """Few bad ones, and many, among so many messages that they are cut into parts."""
    r = random.Random(seed)
    share = r.choice([0.0, 0.0005, 0.01, 0.5])
    messages, rows, good = [], [], []
    for i in range(r.choice([10, 3000])):
        good.append(r.random() >= share)
        row = {"n": i, "name": r.choice(["a", None]), "x": i / 7, "items": r.choice([None, [1, 2]])}
        messages.append(json.dumps(row) if good[-1] else r.choice(BAD))
        rows += [row] if good[-1] else []
    decoded = uc.messages.Json(KINDS).decode(pa.array([message.encode() for message in messages], pa.binary()))
    assert decoded.table.to_pylist() == rows
    assert decoded.good.to_pylist() == good
    assert len(decoded.reasons) == good.count(False)
    assert all(0 < len(reason) <= 210 for reason in decoded.reasons.to_pylist())


def test_the_reasons_of_json() -> None:
    messages = [b"{", b"[1]", b'{"n": "one"}', b"\xff", b'{"n": 1, "x": []}']
    reasons = uc.messages.Json(KINDS).decode(pa.array(messages)).reasons.to_pylist()
    assert reasons[0].startswith("it is no JSON: ")
    assert reasons[1:3] == ["it is no object of JSON", "member 'n' is no int64: 'one'"]
    assert reasons[3].startswith("it is no JSON: ")
    assert reasons[4] == "member 'x' is no double: []"


def test_one_bad_message_among_many_is_not_slow() -> None:
    """A hundred thousand of which each is read alone take ten times as long as this."""
    messages = [json.dumps({"n": i, "name": str(i), "x": i / 7}).encode() for i in range(100_000)]
    format = uc.messages.Json(KINDS)
    began = time.process_time()
    format.decode(pa.array(messages))
    whole = time.process_time() - began
    messages[50_000] = b'{"n": "one"}'
    began = time.process_time()
    assert format.decode(pa.array(messages)).reasons.to_pylist() == ["member 'n' is no int64: 'one'"]
    assert time.process_time() - began < 6 * whole + 0.5


def test_texts_and_bytes() -> None:
    values = pa.array([b"a", b"\xff", b""])
    assert uc.messages.Text("t").decode(values).table.to_pydict() == {"t": ["a", ""]}
    assert uc.messages.Bytes().decode(values.slice(1)).table.to_pydict() == {"value": [b"\xff", b""]}


FORMATS: list[MessageFormat] = [
    uc.messages.Json(ROW),
    uc.messages.Json(PLAIN),
    uc.messages.Text(),
    uc.messages.Bytes(),
    uc.messages.Avro("long"),
    uc.messages.Avro({"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}]}),
]


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: type(format).__name__)
def test_the_law_of_formats(format: MessageFormat) -> None:
    """Parts are decoded as the whole, into the columns that were promised; a format travels, and nothing raises."""
    r = random.Random(7)
    values = pa.array([r.choice([b"\x02", b"{}", b'{"n": 1}', r.randbytes(r.randrange(9))]) for _ in range(60)])
    whole, copy = format.decode(values), pickle.loads(pickle.dumps(format))
    assert (copy, hash(copy), copy.settled("t")) == (format, hash(format), format)
    assert whole.table.schema == format.schema
    assert whole.table.num_rows == whole.good.true_count == len(values) - len(whole.reasons)
    parts = [copy.decode(values.slice(first, 7)) for first in range(0, 60, 7)]
    assert pa.concat_tables([part.table for part in parts]).to_pylist() == whole.table.to_pylist()
    assert [reason for part in parts for reason in part.reasons.to_pylist()] == whole.reasons.to_pylist()
    empty = format.decode(values.slice(0, 0))
    assert (empty.table.schema, len(empty.good), len(empty.reasons)) == (format.schema, 0, 0)


def test_words_for_formats() -> None:
    assert format_of("string") == uc.messages.Text()
    assert format_of("binary", name="key") == uc.messages.Bytes("key")
    assert format_of(KINDS) == uc.messages.Json(KINDS)
    assert format_of(uc.messages.Text("t")) == uc.messages.Text("t")


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ("strings", InvalidArgument, "value= knows no format 'strings': did you mean 'string'"),
        (7, TypeMismatch, "value= takes 'string', 'binary', an Arrow schema of JSON, or a format"),
    ],
)
def test_words_that_are_refused(value: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        format_of(value)


def test_options_that_are_refused() -> None:
    with pytest.raises(TypeMismatch, match="takes an Arrow schema"):
        uc.messages.Json({"n": "long"})  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="takes columns of different names"):
        uc.messages.Json(pa.schema([("n", pa.int64()), ("n", pa.int64())]))
    with pytest.raises(InvalidArgument, match="takes the name of its column"):
        uc.messages.Text("")
