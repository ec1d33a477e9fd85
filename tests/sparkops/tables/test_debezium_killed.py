"""Rows of PostgreSQL as messages of Debezium, a topic, a flow on Spark and a live table in PostgreSQL, under kills.

The truth is what PostgreSQL itself says of the rows that it has.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from apps import committed as next_batch
from apps import running
from changing_orders import ChangingOrders, logical_server
from kafka_broker import Broker
from programs import program

MOMENTS = ("offsets", "state", "commits", "any")
TOO_LATE = "Timed out while waiting for the Python worker"
"""The words of a run that ends by itself, as Spark has it on a busy machine."""

SALES = "SELECT extract(epoch FROM window_start)::bigint, shop, orders::bigint, cents::bigint, note FROM sales"


def agree(broker: Broker, folder: Path, seed: int, kills: int, upset: int) -> None:
    """Check the live table against the rows, after kills of the query, and some of both servers."""
    r, out, topic = random.Random(seed), folder / "out", broker.topic(2)
    out.mkdir()
    with logical_server() as server:
        orders = ChangingOrders(server, seed)
        arguments = [broker.servers, topic, server.url("sales"), out]
        for kill in range(kills):
            orders.change(40)
            orders.send(broker, topic)
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
        orders.change(40)
        orders.send(broker, topic)
        for _ in range(5):
            with running(out, *arguments, script=program("debezium_live")) as app:
                app.process.wait()
                if app.process.returncode == 0:
                    break
                assert TOO_LATE in app.said(), app.said()
        assert orders.unsent > 0
        assert sorted(orders.changes.run(SALES)) == orders.sales()


@pytest.mark.soak
@pytest.mark.spark
def test_a_live_table_over_debezium_has_what_the_database_has(broker: Broker, tmp_path: Path) -> None:
    agree(broker, tmp_path, seed=1, kills=1, upset=1)


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(2, 4))
def test_twenty_kills(broker: Broker, tmp_path: Path, seed: int) -> None:
    agree(broker, tmp_path, seed=seed, kills=20, upset=5)
