"""Messages of Debezium in a topic, of rows that PostgreSQL changes, beside what it computes of its rows itself."""

from __future__ import annotations

from changing_orders import ChangingOrders, logical_server
from kafka_broker import Broker
from programs.debezium_live import CHANGELOG, sales

import uncombine as uc


def test_sales_by_messages_without_old_rows_are_those_of_the_database(broker: Broker) -> None:
    topic = broker.topic(2)
    with logical_server() as server:
        orders = ChangingOrders(server, seed=1)
        for _ in range(4):
            orders.change(60)
            orders.send(broker, topic)
            flow = uc.flow(uc.Kafka(broker.servers, topic, value="string"), changelog=CHANGELOG)
            found = sales(flow).run()
            starts = [int(row["start"].timestamp()) for row in found["window"].to_pylist()]
            others = found.select(["shop", "orders", "cents", "note"]).to_pylist()
            rows = [(start, *other.values()) for start, other in zip(starts, others, strict=True)]
            assert sorted(rows) == orders.sales()
        assert orders.unsent > 10
