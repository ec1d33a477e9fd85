"""The page about writing to Kafka, as somebody would who copies its blocks one after the other."""

from __future__ import annotations

from pathlib import Path

from kafka_broker import Broker
from pages import failures

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "write_to_kafka.md"


def test_the_blocks_of_the_page_print_what_it_says(broker: Broker) -> None:
    broker.topic(name="totals")
    broker.topic(name="hours")
    page = PAGE.read_text(encoding="utf-8").replace("host:9092", broker.servers)
    assert failures(page, PAGE.name) == []
