"""Orders in a table of PostgreSQL that come, change and go, and the messages of Debezium about them in a topic."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kafka_broker import Broker
from postgres_server import PostgresServer
from row_changes import LOGICAL, UNSENT, RowChanges

TABLE = """CREATE TABLE orders
    (id bigint PRIMARY KEY, ts timestamp NOT NULL, shop text, cents bigint, note text NOT NULL)"""
TRUTH = """SELECT extract(epoch FROM date_trunc('hour', ts))::bigint, shop, count(*)::bigint, sum(cents)::bigint,
    max(note COLLATE "C") FROM orders GROUP BY 1, 2"""


class ChangingOrders:
    """The table, random changes of it, and its sales by hour and shop as PostgreSQL itself computes them."""

    def __init__(self, server: PostgresServer, seed: int) -> None:
        self.random, self.ids, self.unsent = random.Random(seed), list[int](), 0
        self.changes = RowChanges(server, "orders", "id", {"id": int, "ts": micros, "cents": int})
        self.changes.run(TABLE, "ALTER TABLE orders ALTER note SET STORAGE EXTERNAL")
        self.changes.begin()

    def change(self, count: int) -> None:
        self.changes.run(*statements(self.random, self.ids, count))

    def send(self, broker: Broker, topic: str) -> None:
        """Send the messages of all changes into two partitions by their keys, and count values that were not sent."""
        parts: dict[int, list[Any]] = {0: [], 1: []}
        for message in self.changes.messages():
            parts[sum(message.key) % 2].append(message)
            self.unsent += UNSENT.encode() in (message.value or b"")
        for partition, some in parts.items():
            values, keys = [message.value for message in some], [message.key for message in some]
            broker.send(topic, values, partition, keys, acks="all")

    def sales(self) -> list[tuple[Any, ...]]:
        """The start of each hour in seconds, the shop, its orders, their cents and the last of their notes."""
        return sorted(self.changes.run(TRUTH))


@contextmanager
def logical_server() -> Iterator[PostgresServer]:
    """A server that tells of changes, in a folder that no other run of the tests closes while it goes on."""
    with tempfile.TemporaryDirectory(prefix="uncombine-postgres-") as folder:
        server = PostgresServer(Path(folder) / "postgres", LOGICAL)
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")


def micros(text: str) -> int:
    at = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return int(at.timestamp()) * 1_000_000 + at.microsecond


def statements(r: random.Random, ids: list[int], count: int) -> list[str]:
    """Orders that come, change and go. A note is so large that an update of other columns does not send it."""
    out = []
    for _ in range(count):
        ts, shop = f"'2024-05-01 {12 + r.randrange(3)}:{r.randrange(60):02}:00.5'", r.choice("abc")
        kind = r.choice(["new", "new", "cents", "move", "note", "key", "gone"]) if ids else "new"
        one = r.choice(ids) if ids else 0
        note = r.randbytes(3_000).hex() if r.random() < 0.7 else r.randbytes(4).hex()
        match kind:
            case "new":
                ids.append(new := max(ids, default=0) + 1 + r.randrange(3))
                out.append(f"INSERT INTO orders VALUES ({new}, {ts}, '{shop}', {r.randrange(1000)}, '{note}')")
            case "cents":
                out.append(f"UPDATE orders SET cents = {r.randrange(1000)} WHERE id = {one}")
            case "move":
                out.append(f"UPDATE orders SET ts = {ts}, shop = '{shop}' WHERE id = {one}")
            case "note":
                out.append(f"UPDATE orders SET note = '{note}' WHERE id = {one}")
            case "key":
                ids[ids.index(one)] = new = max(ids) + 1
                out.append(f"UPDATE orders SET id = {new}, note = '{note}' WHERE id = {one}")
            case "gone":
                ids.remove(one)
                out.append(f"DELETE FROM orders WHERE id = {one}")
    return out
