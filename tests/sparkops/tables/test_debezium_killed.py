"""Rows of PostgreSQL as messages of Debezium, a topic, a flow on Spark and a live table in PostgreSQL, under kills.

The truth is what PostgreSQL itself says of the rows that it has.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from apps import committed as next_batch
from changing_orders import ChangingOrders, logical_server
from kafka_broker import Broker
from topic_kills import KILLS, run_to_its_end, some_time, started, too_late

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
            with started("debezium_live", out, *arguments) as app:
                batch = next_batch(out)
                alive = some_time(r, app, out)
                assert alive or next_batch(out) > batch or too_late(app), app.said()
                if kill % upset == upset - 1:
                    broker.kill()
                    server.stop("immediate")
                    time.sleep(0.5)
                    server.start()
                    broker.start()
        orders.change(40)
        orders.send(broker, topic)
        run_to_its_end("debezium_live", out, *arguments)
        assert orders.unsent > 0
        assert sorted(orders.changes.run(SALES)) == orders.sales()


@pytest.mark.spark
def test_a_live_table_over_debezium_has_what_the_database_has(broker: Broker, tmp_path: Path) -> None:
    agree(broker, tmp_path, seed=1, kills=1, upset=1)


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(2, 4))
def test_many_kills(broker: Broker, tmp_path: Path, seed: int) -> None:
    agree(broker, tmp_path, seed=seed, kills=KILLS, upset=5)
