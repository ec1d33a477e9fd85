"""Messages that nobody should send: JSON from a grammar of odd values, good messages with damage, and random bytes."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa

MICROS = pa.timestamp("us", "UTC")
ROW = pa.schema(
    {
        "ts": MICROS,
        "id": pa.string(),
        "k": pa.int64(),
        "small": pa.int8(),
        "x": pa.float64(),
        "price": pa.decimal128(12, 3),
        "flag": pa.bool_(),
        "raw": pa.binary(),
        "day": pa.date32(),
        "local": pa.timestamp("ms"),
        "items": pa.list_(pa.int64()),
        "inner": pa.struct({"at": MICROS, "n": pa.float64()}),
        "map": pa.map_(pa.string(), MICROS),
    }
)
PLAIN = pa.schema([field for field in ROW if field.name not in ("raw", "map")])
"""The columns that Arrow's own reader of JSON has."""

WORDS = ["", "a", "é🙂", "t", "true", "nan", "1", " 7", "0x1F", "1e3", "-0", "2016-01-20", "2016-01-20T12:00:00Z"]
WORDS += [
    "2016-01-20 12:00:26+00",
    "AQI=",
    "\\x00ff",
    "{}",
    "[1]",
    '{"at": 5}',
    "__debezium_unavailable_value",
    "9" * 400,
    "1e-999999999",
    "2." + "0" * 99,
]
NUMBERS = [
    "0",
    "-0",
    "1",
    "-1",
    "127",
    "128",
    "9223372036854775807",
    "9223372036854775808",
    "1.5",
    "1.0",
    "1e2",
    "-0.0",
]
NUMBERS += [
    "5e-324",
    "1e400",
    "-1e400",
    "1e999999",
    "1e-999999",
    "1e-999999999",
    "1." + "0" * 200,
    "15e-" + "0" * 99 + "1",
    "9" * 309,
    "9" * 5000,
    "0.1234567890123456789",
    "1" * 40,
]
BARE = ["null", "true", "false", "NaN", "Infinity", "-Infinity", "nul", "01", "+1", "1.", ".5", "'a'", "undefined", ""]
QUOTED = [r'"\ud800"', r'"\udc00\ud800"', r'"\ud83d\ude42"', r'"\u0000"', '"\\"', '"\x01"', '"\n"', r'"\x"', '"\u2028"']
SPACES = ["", " ", "\n", "\t", "\u00a0", "\u3000", "\ufeff", "\f", "\x00"]
DEPTHS = [10, 400, 499, 520, 990, 1000, 5000, 100_000]


def drawn_value(r: random.Random, depth: int = 3) -> str:
    """The text of a value, which may be no JSON."""
    fate = r.random()
    if depth and fate < 0.12:
        return "[" + ",".join(drawn_value(r, depth - 1) for _ in range(r.randrange(4))) + "]"
    if depth and fate < 0.24:
        return drawn_object(r, [*ROW.names, "at", "n", "z", ""], depth - 1)
    if fate < 0.27:
        levels = r.choice(DEPTHS)
        start, stop = r.choice([("[", "]"), ('{"a":', "}"), ('[{"]":', "}]")])
        return start * levels + "1" + stop * (levels - (r.random() < 0.1))
    if fate < 0.5:
        return r.choice(NUMBERS)
    if fate < 0.6:
        return r.choice(BARE)
    if fate < 0.7:
        return r.choice(QUOTED)
    return json.dumps(r.choice(WORDS), ensure_ascii=r.random() < 0.5)


def drawn_object(r: random.Random, names: list[str], depth: int = 2) -> str:
    """The text of an object; names may be missing or stand there twice."""
    fields = [f"{json.dumps(r.choice(names))}:{drawn_value(r, depth)}" for _ in range(r.randrange(5))]
    return "{" + ",".join(fields) + "}"


def good_row(r: random.Random) -> dict[str, Any]:
    """A row that every format takes."""
    return {
        "ts": r.randrange(10**15),
        "id": r.choice(["a", "b", "é🙂", 'q"\\']),
        "k": r.choice([0, -1, 2**63 - 1]),
        "small": r.choice([None, 5]),
        "x": r.choice([0.1, -0.0, 5e-324, 1.5, None]),
        "price": r.choice(["1.500", None]),
        "flag": r.choice([True, False]),
        "raw": r.choice(["AQI=", None]),
        "day": r.choice([0, 16_000]),
        "local": 5,
        "items": r.choice([[], [1, None], None]),
        "inner": r.choice([{"at": 7, "n": 0.5}, None]),
        "map": r.choice([{"a": 1}, {}]),
    }


_TIMES = ["0", "-1", "9223372036854775807", "1e3", '"0"', *map(json.dumps, WORDS[11:14]), '"99999-01-01"', '"2016"']
_INTS = ["-0", "1.0", "1e2", '"7"', '" 7"', '"0x1F"', '"1_0"', "true", *NUMBERS[:8], "9" * 400]
PLAUSIBLE: dict[str, list[str]] = {
    "ts": _TIMES,
    "id": ['"1"', "1", "1.5", "true", r'"\ud83d\ude42"', r'"\u0000"', '"\u2028"', '"null"', '"{}"'],
    "k": _INTS,
    "small": _INTS,
    "x": [*NUMBERS, "-0", "-0", "NaN", "-Infinity", '"nan"', '"1.5"', '"0x1F"', '" 1"', '"1e400"', '""', "true"],
    "price": ["1", "1.5", "1.50000", '"1.5"', '" 1.5"', '"1e2"', '"NaN"', '"Infinity"', '"AQI="', "1e-999999", "1e8"],
    "flag": ['"t"', '"f"', '"true"', '"1"', '"0"', "1", "0", "1.0", '"TRUE"', '"yes"'],
    "raw": ['"AQI="', '"AQ"', '"\\\\x00ff"', '""', '"00"', "1"],
    "day": ["0", "-1", "2147483648", '"2016-01-20"', '"2016-01-20T12:00:00Z"', "1.5", "9" * 400],
    "local": _TIMES,
    "items": ["[]", "[1,null]", '["1"]', "[1.0]", '"[1]"', "{}", "[[1]]", "[" + "9" * 400 + "]"],
    "inner": [
        "{}",
        '{"at":1}',
        '{"at":"2016-01-20T12:00:00Z","n":"1"}',
        '"{}"',
        "[]",
        '{"at":{}}',
        '{"n":1e400,"n":1}',
    ],
    "map": ["{}", '{"a":1}', '{"a":"2016-01-20"}', '{"a":null,"a":2}', "[]", '{"a":{}}', r'{"\ud800":1}'],
}
"""For each column, the texts of values that it may take."""


def odd_value(r: random.Random, name: str) -> str:
    """The text of a value for a column: one that it may take, or any."""
    return r.choice(PLAUSIBLE[name]) if r.random() < 0.7 else drawn_value(r)


def spoilt_fields(r: random.Random, row: dict[str, Any]) -> list[tuple[str, str]]:
    """The names and texts of a row, with odd values in some fields, and with fields of no column."""
    fields = [(name, json.dumps(value, ensure_ascii=r.random() < 0.5)) for name, value in row.items()]
    for _ in range(r.choice([0, 1, 1, 2])):
        place = r.randrange(len(fields))
        fields[place] = fields[place][0], odd_value(r, fields[place][0])
    if r.random() < 0.3:
        name = r.choice(["z", *row])
        fields.insert(r.randrange(len(fields)), (name, odd_value(r, name) if name in row else drawn_value(r)))
    return fields


def spoilt_row(r: random.Random) -> str:
    """The text of a row as an object, with odd values."""
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in spoilt_fields(r, good_row(r))) + "}"


def postgres_row(r: random.Random) -> dict[str, Any]:
    """A row as wal2json writes it: what is no number, boolean or null is a text."""
    row = good_row(r) | {"ts": "2016-01-20 12:00:26.5+00", "local": "2016-01-20 12:00:00", "day": "2016-01-20"}
    row |= {"raw": r.choice([None, "00ff"]), "items": r.choice([None, "[1, null]"]), "map": None}
    return row | {"inner": r.choice([None, '{"at": 5, "n": 1.5}'])}


def damaged(r: random.Random, text: str) -> bytes:
    """The bytes of a text, as they are or with damage."""
    raw, fate = bytearray(text.encode("utf-8", "surrogatepass")), r.random()
    if fate < 0.6 or not raw:
        return bytes(raw)
    at = r.randrange(len(raw))
    if fate < 0.7:
        return r.choice(SPACES).encode() + bytes(raw) + r.choice(SPACES).encode()
    if fate < 0.78:
        return bytes(raw[:at])
    if fate < 0.86:
        raw[at] = r.randrange(256)
    elif fate < 0.92:
        raw[at:at] = r.choice(["{", "}", "[", '"', ",", "\\", "\n", "\ud800"]).encode("utf-8", "surrogatepass")
    elif fate < 0.95:
        return bytes(raw) + bytes(raw[: at + 1])
    elif fate < 0.97:
        return text.encode(r.choice(["utf-16", "utf-8-sig", "utf-16-le"]), "surrogatepass")
    else:
        return r.randbytes(r.randrange(40))
    return bytes(raw)
