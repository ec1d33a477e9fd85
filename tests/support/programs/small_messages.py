"""Sends many small messages to a topic, with a pause where the reader is far behind, and then one that ends windows.

    python small_messages.py SERVERS TOPIC PARTITIONS COUNT

`values_of` says which messages they are.
"""

from __future__ import annotations

import sys
import time

import confluent_kafka as ck

CYCLE, KEYS = 9_973, 97
"""Messages repeat after so many, a prime."""


def row_of(n: int) -> tuple[int, int]:
    """The key and the value of a message, by its number in the cycle."""
    return n * 31 % KEYS, n % 89


def send(servers: str, topic: str, partitions: int, count: int) -> None:
    settings = {"linger.ms": 50, "batch.size": 1_000_000, "queue.buffering.max.messages": 500_000, "log_level": 2}
    producer = ck.Producer({"bootstrap.servers": servers, "compression.type": "lz4", **settings})
    values = [b'{"k":%d,"v":%d}' % row_of(n) for n in range(CYCLE)]
    sent = 0
    while sent < count:
        some = [{"value": value} for value in values[: count - sent]]
        _queue(producer, topic, some, sent // CYCLE % partitions)
        sent += len(some)
    assert producer.flush(600) == 0
    later = int(time.time() * 1000) + 3_600_000
    for partition in range(partitions):
        producer.produce(topic, b'{"k":-1,"v":0}', partition=partition, timestamp=later)
    assert producer.flush(600) == 0


def _queue(producer: ck.Producer, topic: str, messages: list[dict[str, object]], partition: int) -> None:
    """Queue messages; those for which there is no room wait."""
    while len(producer) > 400_000:
        producer.poll(0.05)
    assert producer.produce_batch(topic, messages, partition=partition) == len(messages), "the queue was full"
    producer.poll(0)


if __name__ == "__main__":
    send(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
