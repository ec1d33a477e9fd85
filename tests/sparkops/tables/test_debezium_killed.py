"""Rows of PostgreSQL as messages of Debezium, a topic, a flow on Spark and a live table in PostgreSQL, under kills.

The truth is what PostgreSQL itself says of the rows that it has.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from apps import committed as next_batch
from apps import running
from kafka_broker import Broker
from postgres_server import PostgresServer
from programs import program
from row_changes import LOGICAL, UNSENT, RowChanges

MOMENTS = ("offsets", "state", "commits", "any")
TOO_LATE = "Timed out while waiting for the Python worker"
"""The words of a run that ends by itself, as Spark has it on a busy machine."""

TABLE = """CREATE TABLE orders
    (id bigint PRIMARY KEY, ts timestamp NOT NULL, shop text, cents bigint, note text NOT NULL)"""
TRUTH = """SELECT extract(epoch FROM date_trunc('hour', ts))::bigint, shop, count(*)::bigint, sum(cents)::bigint,
    max(note COLLATE "C") FROM orders GROUP BY 1, 2"""
SALES = "SELECT extract(epoch FROM window_start)::bigint, shop, orders::bigint, cents::bigint, note FROM sales"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PostgresServer]:
    server = PostgresServer(tmp_path / "postgres", LOGICAL)
    server.start()
    yield server
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


def send(broker: Broker, topic: str, changes: RowChanges) -> bool:
    """Messages by their keys into two partitions; True if a value was not sent."""
    parts: dict[int, list[Any]] = {0: [], 1: []}
    for message in changes.messages():
        parts[sum(message.key) % 2].append(message)
    for partition, some in parts.items():
        values, keys = [message.value for message in some], [message.key for message in some]
        broker.send(topic, values, partition, keys, acks="all")
    return any(UNSENT.encode() in (message.value or b"") for some in parts.values() for message in some)


def agree(broker: Broker, server: PostgresServer, folder: Path, seed: int, kills: int, upset: int) -> None:
    """Check the live table against the rows, after kills of the query, and some of both servers."""
    r, out, ids, unsent = random.Random(seed), folder / "out", list[int](), False
    out.mkdir()
    topic = broker.topic(2)
    changes = RowChanges(server, "orders", "id", {"id": int, "ts": micros, "cents": int})
    changes.run(TABLE, "ALTER TABLE orders ALTER note SET STORAGE EXTERNAL")
    changes.begin()
    arguments = [broker.servers, topic, server.url("sales"), out]
    for kill in range(kills):
        changes.run(*statements(r, ids, 40))
        unsent |= send(broker, topic, changes)
        with running(out, *arguments, script=program("debezium_live")) as app:
            moment, batch = r.choice(MOMENTS), next_batch(out)
            alive = app.wait(r.random() * 30) if moment == "any" else app.wait_for(batch, moment)
            alive = alive and app.wait(r.random() * r.choice([0.1, 1, 4]))
            assert alive or next_batch(out) > batch or TOO_LATE in app.said(), app.said()
            if kill % upset == upset - 1:
                broker.kill()
                server.stop("immediate")
                time.sleep(0.5)
                server.start()
                broker.start()
    changes.run(*statements(r, ids, 40))
    unsent |= send(broker, topic, changes)
    for _ in range(5):
        with running(out, *arguments, script=program("debezium_live")) as app:
            app.process.wait()
            if app.process.returncode == 0:
                break
            assert TOO_LATE in app.said(), app.said()
    assert unsent
    assert sorted(changes.run(SALES)) == sorted(changes.run(TRUTH))


@pytest.mark.spark
def test_a_live_table_over_debezium_has_what_the_database_has(
    broker: Broker, server: PostgresServer, tmp_path: Path
) -> None:
    agree(broker, server, tmp_path, seed=1, kills=1, upset=1)


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(2, 4))
def test_twenty_kills(broker: Broker, server: PostgresServer, tmp_path: Path, seed: int) -> None:
    agree(broker, server, tmp_path, seed=seed, kills=20, upset=5)
