"""Flows in this process that are written to a topic in one transaction, beside plain Python."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from kafka_broker import Broker, committed

import uncombine as uc
from uncombine.errors import BrokerUnreachable, InvalidArgument, MessageTooLarge, TypeMismatch

ROWS = [{"ts": i, "user": "abc"[i % 3], "score": i} for i in range(30)]


def totals(rows: Any = ROWS) -> uc.Flow:
    return uc.flow(rows).window("global").combine(by="user", total=uc.Sum("score")).select("user", "total")


def parsed(broker: Broker, topic: str) -> list[tuple[Any, Any]]:
    return [tuple(None if part is None else json.loads(part) for part in one) for one in committed(broker, topic)]  # type: ignore[misc]


def test_final_rows_are_messages_with_their_keys(broker: Broker) -> None:
    topic = broker.topic(2)
    assert totals().to_kafka(broker.servers, topic, "user") is None
    want = {user: sum(row["score"] for row in ROWS if row["user"] == user) for user in "abc"}
    found = parsed(broker, topic)
    assert {key["user"]: value["total"] for key, value in found} == want
    assert len(found) == 3
    assert all(list(value) == ["user", "total"] for _, value in found)


def test_rows_that_are_retracted_are_written_as_a_changelog(broker: Broker) -> None:
    script = [uc.Elements([row]) for row in ROWS] + [uc.Watermark(None)]
    flow = uc.flow(script).window("global", "each row").combine(by="user", total=uc.Sum("score"))
    last = {user: sum(row["score"] for row in ROWS if row["user"] == user) for user in "abc"}
    with pytest.raises(InvalidArgument, match="the rows of this flow can be retracted, by their weights in 'diff'"):
        flow.to_kafka(broker.servers, "any")
    for changelog, form in (
        ("kafka", lambda value: value["total"]),
        ("diff", lambda value: (value["total"], value["diff"])),
        ("debezium", lambda value: (value["op"], value["before"], value["after"]["total"])),
        ("flink", lambda value: (value["row_kind"], value["total"])),
    ):
        topic = broker.topic()
        flow.to_kafka(broker.servers, topic, changelog=changelog)
        found = {key["user"]: form(value) for key, value in parsed(broker, topic)}  # type: ignore[no-untyped-call]
        want = {
            "kafka": last,
            "diff": {user: (total, 1) for user, total in last.items()},
            "debezium": {user: ("c", None, total) for user, total in last.items()},
            "flink": {user: ("+I", total) for user, total in last.items()},
        }
        assert found == want[changelog]


def test_rows_that_are_left_out_go_to_a_topic_of_their_own(broker: Broker) -> None:
    topic, dead = broker.topic(), broker.topic()
    rows = [*ROWS, {"ts": None, "user": "x", "score": 7}]
    totals(rows).to_kafka(broker.servers, topic, "user", left_out=dead)
    [(key, value)] = parsed(broker, dead)
    assert key is None
    assert (value["stage"], value["why"], value["row"]["user"], value["row"]["score"]) == (1, "bad", "x", 7)
    assert len(parsed(broker, topic)) == 3


def test_rows_of_a_step_are_written_as_often_as_they_are_there(broker: Broker) -> None:
    topic = broker.topic()
    uc.flow(ROWS * 2).where(uc.col("score") > 20).to_kafka(broker.servers, topic)
    found = Counter(value["score"] for _, value in parsed(broker, topic))
    assert found == dict.fromkeys(range(21, 30), 2)


def test_what_cannot_be_written_is_one_sentence_and_writes_nothing(broker: Broker) -> None:
    topic, secret = broker.topic(), {"sasl.password": "hunter2"}
    cases: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (InvalidArgument, "topic 'nosuch' is not in the cluster .* makes no topic but", {"topic": "nosuch"}),
        (TypeMismatch, r"to_kafka\(\) takes the name of one topic as topic, not '\^all", {"topic": "^all.*"}),
        (InvalidArgument, "is .*, the topic of the rows: name another", {"left_out": topic}),
        (InvalidArgument, "writes once: leave checkpoint= out, or give", {"checkpoint": "folder"}),
        (InvalidArgument, "has no changelog= 'upsert'", {"changelog": "upsert"}),
        (InvalidArgument, "cannot set 'acks'", {"options": {"acks": "0"}}),
        (BrokerUnreachable, "no broker of 127.0.0.1:1 answers", {"servers": "127.0.0.1:1", "wait": "0.4 s"}),
        (BrokerUnreachable, "no broker", {"options": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
         "sasl.username": "me", **secret}, "wait": "1 s"}),
    ]  # fmt: skip
    for kind, words, given in cases:
        named = {"servers": broker.servers, "topic": topic, **given}
        with pytest.raises(kind, match=words) as raised:
            totals().to_kafka(named.pop("servers"), named.pop("topic"), "user", **named)
        assert "hunter2" not in str(raised.value)
    with pytest.raises(InvalidArgument, match="changelog='kafka' writes the last row of each key: give keys="):
        uc.flow(ROWS).to_kafka(broker.servers, topic, changelog="kafka")
    many = uc.flow([{"ts": 0, "user": "small", "x": ""}, {"ts": 0, "user": "large", "x": "y" * 2_000_000}])
    with pytest.raises(MessageTooLarge, match=r"""of key '{"user":"large"}' .* the client's limit of 1,000,000"""):
        many.to_kafka(broker.servers, topic, "user")
    assert parsed(broker, topic) == []


def test_a_window_is_part_of_the_key_and_the_topic_reads_back(broker: Broker) -> None:
    topic = broker.topic()
    flow = uc.flow(ROWS).window("1 hour").combine(by="user", total=uc.Sum("score"))
    flow.to_kafka(broker.servers, topic, changelog="debezium")
    [key, *_] = [key for key, _ in parsed(broker, topic)]
    assert list(key) == ["user", "window"]
    assert list(key["window"]) == ["start", "end"]
