"""Messages written in transactions with markers: once for those who read committed messages."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from kafka_broker import Broker, committed
from programs import program

from uncombine.errors import BrokerUnreachable, InvalidArgument, MessageTooLarge, StateMismatch, WriterReplaced
from uncombine.kafka.client import Cluster
from uncombine.kafka.markers import BegunMarkers, Markers, records_of, send_batch
from uncombine.kafka.sending import Sender


def cluster_of(broker: Broker, **options: object) -> Cluster:
    return Cluster(broker.servers, options, who="to_kafka()", writes=True)


def messages(*texts: str, key: str | None = "k") -> pa.Table:
    return records_of([(None if key is None else key.encode(), text.encode()) for text in texts])


def begun(broker: Broker, topic: str, owner: str = "q", done: int = -1, planned: int = 0) -> BegunMarkers:
    return Markers(cluster_of(broker), topic, owner).begun(4, done, planned)


def values(broker: Broker, topic: str) -> list[str]:
    return [value.decode() for _, value in committed(broker, topic)]


def test_a_batch_of_a_shard_is_written_once(broker: Broker) -> None:
    topic, dead = broker.topic(2), broker.topic()
    now = begun(broker, topic)
    assert (now.shards, now.last) == (4, {})
    for _ in range(2):
        sent = [send_batch(now, 1, 0, {topic: messages("a", "b"), dead: messages("c", key=None)}) for _ in range(2)]
    assert sent == [False, False]
    assert sorted(values(broker, topic)) == ["a", "b"]
    assert values(broker, dead) == ["c"]
    assert send_batch(now, 2, 0, {topic: messages("d")})
    later = Markers(cluster_of(broker), topic, "q").begun(7, 0, 1)
    assert (later.shards, later.last) == (4, {1: 0, 2: 0})
    assert not send_batch(later, 2, 0, {topic: messages("e")})
    assert send_batch(later, 2, 1, {topic: messages("e")})
    assert begun(broker, topic, "another").last == {}
    assert sorted(values(broker, topic)) == ["a", "b", "d", "e"]


def test_a_sender_that_another_took_the_place_of_writes_nothing(broker: Broker) -> None:
    topic = broker.topic()
    now = begun(broker, topic)
    zombie = Sender(cluster_of(broker), now.markers.transaction(0), 1)
    zombie.begin()
    zombie.client.begin_transaction()
    zombie.client.produce(topic, b"half")
    zombie.client.flush(30)
    assert send_batch(now, 0, 0, {topic: messages("whole")})
    with pytest.raises(WriterReplaced, match="uncombine-q-0 is another writer's now"):
        zombie.send({topic: messages("again")})
    assert values(broker, topic) == ["whole"]


def test_markers_that_are_gone_or_of_an_older_checkpoint_are_refused(broker: Broker) -> None:
    topic = broker.topic()
    with pytest.raises(StateMismatch, match=f"{topic}.uncombine' has no markers of this checkpoint"):
        begun(broker, topic, done=3, planned=3)
    now = begun(broker, topic)
    assert send_batch(now, 0, 5, {topic: messages("a")})
    with pytest.raises(StateMismatch, match="has batch 5 of a query whose checkpoint has begun none after 3"):
        begun(broker, topic, done=3, planned=3)
    now.markers.forget(range(4))
    with pytest.raises(StateMismatch, match="has no markers"):
        begun(broker, topic, done=5, planned=5)
    other = broker.topic()
    broker.topic(name=f"{other}.uncombine")
    with pytest.raises(InvalidArgument, match="because it is not compacted"):
        begun(broker, other)


def test_a_message_that_is_too_large_is_named_and_nothing_is_written(broker: Broker) -> None:
    topic = broker.topic(1, max_message_bytes="100000")
    now = begun(broker, topic)
    with pytest.raises(
        MessageTooLarge, match=r"""of key 'k' for topic .* of 2,000,001 bytes is larger than .* 1,000,000"""
    ):
        send_batch(now, 0, 0, {topic: messages("small", "x" * 2_000_000)})
    with pytest.raises(MessageTooLarge, match=r"of key 'k' is larger than topic .*max.message.bytes of 100,000"):
        send_batch(now, 0, 0, {topic: messages("small", "x" * 500_000)})
    assert values(broker, topic) == []
    assert send_batch(now, 0, 0, {topic: messages("small")})


def test_a_compacted_topic_takes_no_message_without_a_key(broker: Broker) -> None:
    topic = broker.topic(1, cleanup_policy="compact")
    with pytest.raises(InvalidArgument, match="a compacted topic takes none without a key, so give keys="):
        send_batch(begun(broker, topic), 0, 0, {topic: messages("a", key=None)})


def test_options_are_checked_and_a_transaction_longer_than_the_cluster_lets_is_refused(broker: Broker) -> None:
    for name, words in (("transactional.id", "the checkpoint"), ("acks", "all replicas"), ("group.id", "as a group")):
        with pytest.raises(InvalidArgument, match=rf"options= of to_kafka\(\) cannot set '{name}': .*{words}"):
            cluster_of(broker, **{name: "x"})
    with pytest.raises(InvalidArgument, match=r"lets no transaction be open so long: give 'transaction.timeout.ms'"):
        Sender(cluster_of(broker, **{"transaction.timeout.ms": 10_000_000, "message.timeout.ms": 1000}), "t", 1).begin()
    away = Cluster("127.0.0.1:1", {}, 0.5, who="to_kafka()", writes=True)
    with pytest.raises(BrokerUnreachable, match=r"no broker of 127.0.0.1:1 answers, to begin a transaction"):
        Sender(away, "t", 1).begin()


def killed_at_random(broker: Broker, folder: Path, seed: int, kills: int) -> None:
    """Programs that write batches of shards, each killed, until one comes to the end; and what is in the topic."""
    r, topic = random.Random(seed), broker.topic(3)
    batches, arguments = 40, [broker.servers, topic, str(folder / "progress")]
    for _ in range(kills):
        process = subprocess.Popen([sys.executable, program("sending"), *arguments, str(batches)])
        time.sleep(0.7 + r.random() * 1.5)
        process.kill()
        process.wait()
    subprocess.run([sys.executable, program("sending"), *arguments, str(batches)], check=True)
    found = Counter(values(broker, topic))
    want = {f"{batch} {shard} {i}" for batch in range(batches) for shard in range(3) for i in range(20)}
    assert set(found) == want
    assert set(found.values()) == {1}


def test_writers_that_are_killed_write_each_batch_once(broker: Broker, tmp_path: Path) -> None:
    killed_at_random(broker, tmp_path, seed=1, kills=10)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(4))
def test_writers_that_are_killed_more_often(broker: Broker, tmp_path: Path, seed: int) -> None:
    killed_at_random(broker, tmp_path, seed=seed, kills=40)
