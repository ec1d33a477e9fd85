"""Reading parts from a client that is only told: what a broker that starts says does not end a reading."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message

from uncombine.errors import MessagesLost
from uncombine.kafka import reading
from uncombine.kafka.client import Cluster
from uncombine.kafka.partitions import Part, Partition

ONE = Partition("t", 0)


class Told:
    """A client that gives these faults first, each once it is assigned, and then the messages."""

    def __init__(self, *faults: int) -> None:
        self.faults, self.assigned, self.collected = list(faults), list[int](), list[bool]()

    def assign(self, places: list[Any]) -> None:
        self.assigned.append(places[0].offset)

    def consume(self, most: int, wait: float) -> list[Message]:
        place = self.assigned[-1]
        self.collected.append(gc.isenabled())
        if self.faults:
            return [Message(topic="t", partition=0, offset=place, error=KafkaError(self.faults.pop(0)))]
        return [Message(topic="t", partition=0, offset=place + n, value=b"x") for n in range(2)]

    def get_watermark_offsets(self, partition: Any, timeout: float) -> tuple[int, int]:
        return 0, 9


def offsets(monkeypatch: pytest.MonkeyPatch, told: Told) -> list[int]:
    @contextmanager
    def consumer(self: Cluster) -> Iterator[Told]:
        yield told

    monkeypatch.setattr(Cluster, "consumer", consumer)
    monkeypatch.setattr(reading, "PAUSE", 0)
    tables = reading.read_parts(Cluster("nowhere:1"), [Part(ONE, 5, 7)], ["offset"])
    return [offset for table in tables for offset in table["offset"].to_pylist()]


FAULTS = [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._AUTO_OFFSET_RESET]


@pytest.mark.parametrize("fault", FAULTS)
def test_rule_74_an_offset_that_a_starting_broker_does_not_know_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, fault: int
) -> None:
    told = Told(fault, fault)
    assert offsets(monkeypatch, told) == [5, 6]
    assert told.assigned == [5, 5, 5]


@pytest.mark.parametrize("fault", FAULTS)
def test_rule_74_an_offset_that_stays_unknown_is_an_error(monkeypatch: pytest.MonkeyPatch, fault: int) -> None:
    monkeypatch.setattr(reading, "BACK_WITHIN", 0)
    with pytest.raises(MessagesLost, match="t/0 has no offset 5, which was read or promised before"):
        offsets(monkeypatch, Told(*[fault] * 9))


@pytest.mark.parametrize("collects", [True, False])
def test_python_looks_for_no_cycles_while_messages_are_made(monkeypatch: pytest.MonkeyPatch, collects: bool) -> None:
    told = Told(KafkaError.UNKNOWN_TOPIC_OR_PART)
    (gc.enable if collects else gc.disable)()
    try:
        assert offsets(monkeypatch, told) == [5, 6]
        assert gc.isenabled() == collects
    finally:
        gc.enable()
    assert told.collected == [False, False]
