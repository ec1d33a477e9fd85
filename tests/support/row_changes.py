"""Changes of the rows of a table of PostgreSQL as messages of Debezium: what the server's own decoder says of them.

The server writes its log for logical decoding, and `pgoutput`, its own decoder, gives each change with its place in the
log. It sends no old row, and no large value that an update leaves as it was, as with Debezium's defaults.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from postgres_server import SETTINGS, PostgresServer

LOGICAL = f"{SETTINGS} -c wal_level=logical"
UNSENT = "__debezium_unavailable_value"

Row = dict[str, str | None]


class Message(NamedTuple):
    """A message of Debezium; one without a value is the tombstone after a deletion."""

    key: bytes
    value: bytes | None


class RowChanges:
    """The changes of a table since the last look, as messages of Debezium."""

    def __init__(self, server: PostgresServer, table: str, key: str, kinds: dict[str, Any]) -> None:
        """`kinds` makes a value of JSON of the text of a column; other columns are texts."""
        self.server, self.table, self.key, self.kinds = server, table, key, kinds

    def begin(self) -> None:
        self.run(f"CREATE PUBLICATION changes FOR TABLE {self.table}")
        self.run("SELECT slot_name::text FROM pg_create_logical_replication_slot('changes', 'pgoutput')")

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements, each a transaction of its own; the rows of the last one."""
        from adbc_driver_postgresql import dbapi

        rows = list[tuple[Any, ...]]()
        with dbapi.connect(self.server.url(), autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                rows = cursor.fetchall() if cursor.description else []
        return rows

    def messages(self) -> Iterator[Message]:
        """The messages of the changes that have come."""
        options = "'changes', NULL, NULL, 'proto_version', '1', 'publication_names', 'changes'"
        asked = f"SELECT (lsn - '0/0')::bigint, data FROM pg_logical_slot_get_binary_changes({options})"
        names: list[str] = []
        for place, data in self.run(asked):
            match data[:1]:
                case b"R":
                    names = _names(data)
                case b"I":
                    yield self._message("c", _row(data, 6, names)[0], place)
                case b"U":
                    yield from self._update(data, names, place)
                case b"D":
                    old = _row(data, 6, names)[0]
                    yield self._message("d", old, place)
                    yield Message(self._key(old), None)

    def _update(self, data: bytes, names: list[str], place: int) -> Iterator[Message]:
        """An update; one of the key is a deletion and a new row."""
        at = 6
        if data[5:6] == b"K":
            old, at = _row(data, 6, names)
            yield self._message("d", old, place)
            yield Message(self._key(old), None)
            yield self._message("c", _row(data, at + 1, names)[0], place)
            return
        yield self._message("u", _row(data, at, names)[0], place)

    def _message(self, op: str, row: Row, place: int) -> Message:
        values = {name: self._value(name, text) for name, text in row.items()}
        sides = (values, None) if op == "d" else (None, values)
        source = {"connector": "postgresql", "table": self.table, "lsn": place}
        envelope = {"before": sides[0], "after": sides[1], "source": source, "op": op, "ts_ms": 0}
        return Message(self._key(row), json.dumps(envelope).encode())

    def _key(self, row: Row) -> bytes:
        return json.dumps({self.key: self._value(self.key, row[self.key])}).encode()

    def _value(self, name: str, text: str | None) -> Any:
        return text if text is None or text == UNSENT else self.kinds.get(name, str)(text)


def _names(data: bytes) -> list[str]:
    """The columns of a table, of the message that describes it."""
    _, _, rest = data[5:].split(b"\0", 2)
    (count,), rest = struct.unpack("!h", rest[1:3]), rest[3:]
    names = []
    for _ in range(count):
        name, _, rest = rest[1:].partition(b"\0")
        names.append(name.decode())
        rest = rest[8:]
    return names


def _row(data: bytes, at: int, names: list[str]) -> tuple[Row, int]:
    """The values of a row as text, and the place after it; a value that was not sent has Debezium's mark."""
    row, at = Row(), at + 2
    for name in names:
        kind, at = data[at : at + 1], at + 1
        row[name] = UNSENT if kind == b"u" else None
        if kind == b"t":
            (size,) = struct.unpack("!i", data[at : at + 4])
            row[name], at = data[at + 4 : at + 4 + size].decode(), at + 4 + size
    return row, at
