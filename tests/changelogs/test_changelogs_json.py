"""JSON texts as columns, and columns as JSON texts, against Python's json."""

from __future__ import annotations

import base64
import json
import math
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from changes import ROW, history, wal2json, wal2json_1
from seeds import seeds

import uncombine as uc
from uncombine.changelogs.json_out import texts_of
from uncombine.changelogs.wal2json import Wal2Json
from uncombine.changelogs.wal2json_columns import Image, SecondFormat, Usual
from uncombine.messages.json_columns import json_in
from uncombine.messages.json_columns.json_in import Texts

UTC_MICROS = pa.timestamp("us", "UTC")
WINDOW = pa.struct([("start", UTC_MICROS), ("end", UTC_MICROS)])
KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), ["", "a", 'q"\\/\n\r\t\b\x00\x1f', "é🙂", "{}", "null", "\u2028"]),
    "int": (pa.int64(), [0, -1, 2**63 - 1, -(2**63)]),
    "small": (pa.int8(), [-128, 127]),
    "flag": (pa.bool_(), [True, False]),
    "time": (UTC_MICROS, [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)]),
    "local": (pa.timestamp("ms"), [datetime(2016, 1, 20, 12)]),
    "day": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)]),
    "price": (pa.decimal128(12, 3), [Decimal("-1.500"), Decimal("123456789.123")]),
    "window": (WINDOW, [{"start": datetime(2016, 1, 20, tzinfo=UTC), "end": None}]),
    "items": (pa.list_(pa.int64()), [[], [1, None, 3]]),
    "windows": (pa.list_(WINDOW), [[{"start": datetime(2016, 1, 20, tzinfo=UTC), "end": None}, None]]),
    "float": (pa.float64(), [0.1, -0.0, 1e300, 5e-324, 1.0]),
}
ODD: dict[str, tuple[pa.DataType, list[Any]]] = {
    "float": (pa.float64(), [math.nan, math.inf, -math.inf, 1.5]),
    "bytes": (pa.binary(), [b"", b"\x00\xff"]),
    "map": (pa.map_(pa.string(), pa.int64()), [[("a", 1)]]),
}


def table(r: random.Random, kinds: dict[str, tuple[pa.DataType, list[Any]]], count: int) -> pa.Table:
    return pa.table(
        {n: pa.array([r.choice([None, *values]) for _ in range(count)], kind) for n, (kind, values) in kinds.items()}
    )


def same(one: pa.Table, other: pa.Table) -> bool:
    return repr(one.to_pylist()) == repr(other.to_pylist()) and one.schema == other.schema


@pytest.mark.parametrize("seed", seeds(30))
def test_columns_come_back_from_their_texts(seed: int) -> None:
    r = random.Random(seed)
    rows = table(r, KINDS, r.randrange(60)).slice(r.randrange(3))
    texts = texts_of(rows)
    assert all(list(json.loads(text)) == rows.column_names for text in texts.to_pylist())
    reader = Texts("value", rows.schema)
    read, unread = reader(pa.table({"value": texts}))
    assert same(read, rows)
    assert not unread.any()
    assert reader._at_once(texts) is not None or rows["windows"].null_count < len(rows["windows"])
    slowly, unread = reader._one_by_one(texts)
    assert same(slowly, rows)
    assert not unread.any()


@pytest.mark.parametrize("seed", seeds(10))
def test_values_that_arrow_does_not_read_come_back_too(seed: int) -> None:
    rows = table(random.Random(seed), {**KINDS, **ODD}, 20)
    read, unread = Texts("value", rows.schema)(pa.table({"value": texts_of(rows)}))
    assert same(read, rows.set_column(rows.column_names.index("map"), "map", rows["map"]))
    assert not unread.any()


BAD = [
    "",
    "  ",
    "{",
    "}",
    "[]",
    "[1]",
    "1",
    "null",
    '"x"',
    '{"x": 1} {"x": 2}',
    '{"x": 1',
    '"x": 2}',
    '{"x": "many"}',
    '{"x": 1.5}',
    '\u00a0{"x": 1}',
    '{"x": 1, "deep": ' + "[" * 1000 + "]" * 1000 + "}",
    '{"x": 1, "deep": ' + '["]", {"a\\"": ' * 300 + "1" + "}]" * 300 + "}",
    '{"x": ' + "9" * 5000 + "}",
]
GOOD = [
    '{"x": 7, "deep": ' + "[" * 400 + "]" * 400 + "}",
    '{"x": 7, "long": "' + "[" * 1000 + '"}',
    '{"x": 7, "many": [' + ",".join(["[]"] * 1000) + "]}",
    '{"x": 7, "long": ' + "9" * 5000 + "}",
    '{"x": 7, "half": "\\ud800"}',
    '\ufeff{"x": 7}',
]


@pytest.mark.parametrize("seed", seeds(40))
def test_a_bad_text_is_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts of one piece or of several, with bad ones and nulls among them, also such as make others of two texts."""
    r = random.Random(seed)
    monkeypatch.setattr(json_in, "PIECE", r.choice([1, 3, 1000]))
    texts = [r.choice([r.choice(BAD), r.choice(GOOD), None, *[f'{{"x": {i}}}'] * 4]) for i in range(r.randrange(20))]
    column = pa.array(texts, pa.string())
    read, unread = Texts("value", pa.schema([("x", pa.int64())]))(
        pa.table({"value": r.choice([column, column.cast(pa.binary())])})
    )
    want = [7 if text in GOOD else None if text is None or text in BAD else json.loads(text)["x"] for text in texts]
    assert read["x"].to_pylist() == want
    assert unread.tolist() == [text in BAD for text in texts]


def test_bytes_that_are_no_text_are_bad() -> None:
    read, unread = Texts("value", pa.schema([("x", pa.int64())]))(pa.table({"value": [b'{"x": 1}', b"\xff{}"]}))
    assert read["x"].to_pylist() == [1, None]
    assert unread.tolist() == [False, True]


def test_debeziums_times_and_decimals() -> None:
    """Numbers count units of the type; decimals are texts, numbers, or bytes."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    kinds = {"us": UTC_MICROS, "ms": pa.timestamp("ms", "UTC"), "day": pa.date32(), "price": pa.decimal128(10, 2)}
    bare = base64.b64encode((-150).to_bytes(2, "big", signed=True)).decode()
    rows = [
        {"us": 1, "ms": 1, "day": 1, "price": "1.5"},
        {"us": "1970-01-01T00:00:00Z", "ms": "1970-01-01T01:00:00+01:00", "day": "1970-01-02", "price": 1.5},
        {"us": "1970-01-01 00:00:00", "ms": None, "day": None, "price": bare},
    ]
    reader = Texts("value", pa.schema(kinds))
    want = [
        [epoch + timedelta(microseconds=1), epoch + timedelta(milliseconds=1), date(1970, 1, 2), Decimal("1.50")],
        [epoch, epoch, date(1970, 1, 2), Decimal("1.50")],
        [epoch, None, None, Decimal("-1.50")],
    ]
    for chosen in ([0], [1], [2], [0, 1], [2, 1, 0]):
        read, unread = reader(pa.table({"value": [json.dumps(rows[i]) for i in chosen]}))
        assert [list(row.values()) for row in read.to_pylist()] == [want[i] for i in chosen]
        assert not unread.any()


@pytest.mark.parametrize(
    ("key", "kind", "want"),
    [
        ("7", pa.int64(), 7),
        ("x", pa.string(), "x"),
        ('"x"', pa.string(), "x"),
        (b"7", pa.int64(), 7),
        ('{"id": 7}', pa.int64(), 7),
    ],
)
def test_keys_of_kafka(key: Any, kind: pa.DataType, want: Any) -> None:
    row = pa.schema({"ts": pa.int64(), "id": kind})
    read: Any = uc.changelog.KafkaUpsert("id", schema=row)
    for value, weight in (('{"ts": 5}', 1), (None, -1)):
        messages = pa.table({"key": [key], "value": pa.array([value], pa.string())})
        assert read.reading(messages.schema)(messages).to_pylist() == [
            {"ts": 5 if value else None, "id": want, "diff": weight}
        ]


def test_values_of_postgresql() -> None:
    kinds = {
        "b": pa.bool_(),
        "n": pa.decimal128(10, 2),
        "f": pa.float64(),
        "t": UTC_MICROS,
        "raw": pa.binary(),
        "j": WINDOW,
    }
    values = [True, 1.1, "NaN", "2016-01-20 12:00:26.5+00", "\\x00ff", '{"start": "2016-01-20T00:00:00Z"}']
    columns = [{"name": name, "value": value} for name, value in zip(kinds, values, strict=True)]
    messages = pa.table({"data": [json.dumps({"action": "I", "columns": columns})]})
    [row] = uc.changelog.Postgres(pa.schema(kinds)).reading(messages.schema)(messages).to_pylist()
    assert (row["b"], row["n"], row["raw"], row["t"].microsecond) == (True, Decimal("1.10"), b"\x00\xff", 500_000)
    assert math.isnan(row["f"])
    assert row["j"] == {"start": datetime(2016, 1, 20, tzinfo=UTC), "end": None}


def test_a_time_that_few_texts_have_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The old rows of Debezium are null in the texts of a snapshot, which come first."""
    image = pa.struct([("ts", UTC_MICROS)])
    times = [datetime(2016, 1, 20, tzinfo=UTC), None]
    rows = pa.table(
        {
            "before": pa.array([*[None] * 3_000, {"ts": times[0]}, *[None] * 3_000], image),
            "after": pa.array([{"ts": time} for time in [*times[:1] * 6_000, None]], image),
        }
    )
    monkeypatch.setattr(Texts, "_one_by_one", None)
    read, _ = Texts("value", rows.schema)(pa.table({"value": texts_of(rows)}))
    assert read.equals(rows)


def test_two_objects_in_one_text_of_many_are_bad() -> None:
    texts = [f'{{"x": {i}}}' for i in range(200)]
    texts[1] = '{"x": 1} {"x": 1}'
    read, unread = Texts("value", pa.schema([("x", pa.int64())]))(pa.table({"value": texts}))
    assert read["x"].to_pylist() == [0, None, *range(2, 200)]
    assert np.flatnonzero(unread).tolist() == [1]


def test_a_large_value_that_did_not_change_is_that_of_the_old_row() -> None:
    """PostgreSQL leaves it out of the new row."""
    old = [{"name": "ts", "value": None}, {"name": "text", "value": "long"}, {"name": "x", "value": 1}]
    message = {"action": "U", "columns": [old[0], {"name": "x", "value": 2}], "identity": old}
    row = pa.schema({"ts": UTC_MICROS, "text": pa.string(), "x": pa.int64()})
    messages = pa.table({"data": [json.dumps(message)]})
    read = uc.changelog.Postgres(row).reading(messages.schema)(messages)
    assert [(r["text"], r["x"], r["diff"]) for r in read.to_pylist()] == [("long", 1, -1), ("long", 2, 1)]


@pytest.mark.parametrize("keys", [None, "id"])
@pytest.mark.parametrize("seed", seeds(12))
def test_messages_of_wal2json_in_columns_are_those_one_by_one(
    seed: int, keys: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Usual messages, and all kinds of others among them."""
    r = random.Random(seed)
    events = history(r, 30)
    texts = [*wal2json(events, keyed=keys is not None)["data"].to_pylist(), *wal2json_1(events)["data"].to_pylist()]
    texts += [
        None,
        "",
        "[]",
        "7",
        '{"action":"Z"}',
        '{"action":"I"}',
        '{"action":"I","columns":7}',
        '{"x": "\\"action\\""}',
    ]
    pair = '{"name":"id","value":"a"}'
    texts += [f'{{"action":"D","table":"t","schema":"s","identity":[{pair},{pair}]}}']
    texts += [text.replace('"value": ', '"value" :  ') for text in texts[:9] if text]
    r.shuffle(texts)
    column = pa.array(texts, pa.string())
    for given in (column, column.cast(pa.binary()), pa.array([*column.cast(pa.binary()).to_pylist(), b"\xff"])):
        messages = pa.table({"data": given})
        reading: Any = uc.changelog.Postgres(ROW, r.choice([None, "t", "s.t"]), keys=keys).reading(messages.schema)
        at_once = reading(messages)
        with monkeypatch.context() as patched:
            patched.setattr(SecondFormat, "__call__", lambda self, texts: nothing(self, len(texts)))
            assert at_once.equals(reading(messages))
        assert sum(weight != 0 for weight in at_once["diff"].to_pylist()) > 10


def nothing(given: SecondFormat, count: int) -> Usual:
    """A reading in columns that takes no message."""
    none = Image(pa.array([], pa.string()), {name: np.full(count, -1) for name in given.names})
    return Usual(np.zeros(count, np.bool_), np.zeros(0, np.int64), np.zeros(0, np.int64), none, none)


def test_usual_messages_of_wal2json_are_not_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Wal2Json, "_changes", None)
    events = history(random.Random(1), 30)
    for keys in (None, "id"):
        messages = wal2json(events, keyed=keys is not None)
        assert uc.changelog.Postgres(ROW, "s.t", keys=keys).reading(messages.schema)(messages).num_rows > 20


def test_a_bad_change_is_alone_in_its_transaction() -> None:
    good = {"kind": "insert", "table": "t", "columnnames": ["ts", "x"], "columnvalues": [None, 5]}
    messages = pa.table({"data": [json.dumps({"change": [good, {**good, "kind": "?"}, good]})]})
    row = pa.schema({"ts": UTC_MICROS, "x": pa.int64()})
    read = uc.changelog.Postgres(row).reading(messages.schema)(messages)
    assert [(r["x"], r["diff"]) for r in read.to_pylist()] == [(5, 1), (None, 0), (5, 1)]
