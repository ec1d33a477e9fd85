"""The rows of messages: good ones in their order, bad ones with their places, whatever stands beside them."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest

import uncombine as uc
from uncombine.errors import UnreadableMessage
from uncombine.kafka.bounded import divided
from uncombine.kafka.partitions import Part, Partition
from uncombine.kafka.reading import MESSAGE
from uncombine.kafka.rows import NO_VALUE, PARTITION, MessageRows, refuse

PLACE = Partition("t", 3)
VALUE, KEY = uc.messages.Json(pa.schema({"n": pa.int64()})), uc.messages.Json(pa.schema({"id": pa.string()}))


def messages(pairs: list[tuple[bytes | None, bytes | None]], first: int = 7) -> pa.Table:
    keys, values = zip(*pairs, strict=True) if pairs else ((), ())
    columns: dict[str, Any] = {"key": keys, "value": values, "offset": range(first, first + len(pairs))}
    return pa.table(
        [pa.array(columns.get(field.name, [None] * len(pairs)), field.type) for field in MESSAGE], schema=MESSAGE
    )


def made(rows: MessageRows, pairs: list[Any], columns: list[str] | None = None) -> tuple[list[Any], list[Any]]:
    table, unreadable = rows(PLACE, messages(pairs), columns or rows.schema.names)
    assert table.schema.names == (columns or rows.schema.names)
    return table.to_pylist(), unreadable.to_pylist()


@pytest.mark.parametrize("seed", range(30))
def test_rule_74_random_messages_have_the_rows_of_plain_python(seed: int) -> None:
    r = random.Random(seed)
    choices = [b'{"n": 1}', b'{"n": null}', b"{", b"\xff", None, b'{"n": "x"}', b"{}"]
    keys = [b'{"id": "a"}', None, b"[", b'{"id": null}']
    pairs = [(r.choice(keys), r.choice(choices)) for _ in range(r.randrange(12))]
    expected, bad = [], []
    for offset, (key, value) in enumerate(pairs, 7):
        good = key != b"[" and value in (b'{"n": 1}', b'{"n": null}', b"{}")
        if not good:
            bad.append(offset)
            continue
        expected.append(
            {
                "id": None if key is None else json.loads(key).get("id"),
                "n": json.loads(value or b"").get("n"),
                "offset": offset,
                PARTITION: "t/3",
            }
        )
    rows, unreadable = made(MessageRows(VALUE, KEY, ("offset",), named=True), pairs)
    assert rows == expected
    assert [one["line"] for one in unreadable] == bad
    assert {one["file"] for one in unreadable} <= {"t/3"}


def test_a_message_without_a_value_is_left_out_where_a_row_is_made_of_it() -> None:
    pairs = [(b"k", None), (b"k", b"x")]
    assert made(MessageRows(VALUE), pairs)[1][0]["cause"] == NO_VALUE
    rows, unreadable = made(MessageRows(uc.messages.Text(), uc.messages.Bytes("key")), pairs)
    assert (rows, unreadable) == ([{"key": b"k", "value": None}, {"key": b"k", "value": "x"}], [])


def test_a_changelog_gets_a_struct_of_each_format() -> None:
    rows = MessageRows(VALUE, KEY, ("offset",), nested=True)
    good, bad = made(rows, [(b'{"id": "a"}', b'{"n": 1}'), (b'{"id": "a"}', None), (None, b"{")])
    assert good == [
        {"key": {"id": "a"}, "value": {"n": 1}, "offset": 7},
        {"key": {"id": "a"}, "value": None, "offset": 8},
    ]
    assert [one["line"] for one in bad] == [9]


def test_some_columns_or_none() -> None:
    rows = MessageRows(VALUE, None, ("offset", "timestamp"))
    assert made(rows, [(None, b'{"n": 1}')], ["offset"])[0] == [{"offset": 7}]
    table, _ = rows(PLACE, messages([(None, b'{"n": 1}'), (None, b"{")]), [])
    assert table.num_rows == 1


def test_the_first_bad_message_is_named() -> None:
    _, unreadable = MessageRows(VALUE)(PLACE, messages([(None, b"{" + b"x" * 99)]), ["n"])
    with pytest.raises(UnreadableMessage, match=r"offset 7 of t/3 cannot be read .*\{x{39}\.\.\."):
        refuse(unreadable)


@pytest.mark.parametrize("seed", range(50))
def test_parts_are_divided_into_all_offsets_once(seed: int) -> None:
    r = random.Random(seed)
    parts = []
    for n in range(r.randrange(1, 6)):
        first = r.randrange(9)
        parts.append(Part(Partition("t", n), first, first + r.randrange(1, 200)))
    count = r.randrange(1, 9)
    groups = divided(parts, count)
    read = [(part.partition, offset) for some in groups for part in some for offset in range(*part[1:])]
    assert read == [(part.partition, offset) for part in parts for offset in range(*part[1:])]
    sizes = [sum(part.last - part.first for part in some) for some in groups]
    assert len(groups) == min(count, len(read))
    assert max(sizes) - min(sizes) <= 1
    assert divided([], count) == []
