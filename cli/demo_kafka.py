"""A tour of Kafka: a partition that is behind, a live table over it, and the correction: `uncombine demo kafka`."""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from textwrap import indent
from typing import Any

import pyarrow as pa

from .. import Count, Kafka, Sum, flow
from ..errors import InvalidArgument
from ..panes.showing import shown_rows
from .failures import Failed
from .kafka_broker import LocalBroker, why_no_broker

JARS = Path("out") / "kafka" / "jars"
ORDER = pa.schema({"ts": pa.timestamp("ms", "UTC"), "country": pa.string(), "amount": pa.int64(), "diff": pa.int64()})
QUICK = (("12:05", "DE", 30, 1), ("12:20", "DE", 50, 1), ("13:10", "FR", 20, 1), ("15:30", "DE", 10, 1))
SLOW = (("12:20", "DE", 50, -1), ("12:40", "FR", 25, 1), ("13:45", "FR", 5, 1))

Order = tuple[str, str, int, int]


@contextmanager
def broker(servers: str | None) -> Iterator[str]:
    """The servers that the user named, or those of a broker that is started and stopped."""
    if servers is not None:
        yield servers
        return
    if (reason := why_no_broker(JARS)) is not None:
        raise InvalidArgument(reason)
    if not JARS.is_dir():
        _say(f"Maven brings the jars of Kafka to {JARS}, once ...")
    with tempfile.TemporaryDirectory(prefix="uncombine-kafka-") as folder:
        _say("A broker of Kafka starts on this machine ...")
        started = LocalBroker(Path(folder), JARS.absolute())
        try:
            started.start()
            yield started.servers
        finally:
            started.stop()


def send(servers: str, topic: str, partition: int, orders: Sequence[Order]) -> None:
    """Write orders into a partition."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "log_level": 2})
    for time, country, amount, diff in orders:
        ts = int(datetime.fromisoformat(f"2024-05-01T{time}Z").timestamp() * 1000)
        value = json.dumps({"ts": ts, "country": country, "amount": amount, "diff": diff})
        producer.produce(topic, value.encode(), partition=partition)
    if producer.flush(60):
        raise Failed(f"the servers {servers} took no message within a minute: look whether they are there")


@contextmanager
def new_topic(servers: str) -> Iterator[str]:
    """A topic of two partitions with a name of its own, which is deleted at the end."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
    topic = f"uncombine-demo-{uuid.uuid4().hex[:8]}"
    settings = {"retention.ms": "-1"}  # its orders have times of long ago, which do not count as age then
    try:
        for made in admin.create_topics([NewTopic(topic, 2, config=settings)], request_timeout=30).values():
            made.result(60)
    except KafkaException as error:
        raise Failed(f"the servers {servers} made no topic: {error.args[0].str()}") from None
    try:
        yield topic
    finally:
        for deleted in admin.delete_topics([topic]).values():
            deleted.result(60)


def update(spark: Any, servers: str, topic: str, folder: str) -> None:
    """Bring the table up to date with all messages that there are, and show it."""
    from ..sparkops.checkpoints.contents import checkpoint

    kafka = Kafka(servers, topic, value=ORDER)
    orders = flow(kafka, spark=spark, streaming=True, watermark="1 minute", diff="diff")
    hours = orders.window("1 hour", "early every 1 row", allowed_lateness="1 day")
    sales = hours.combine(by="country", orders=Count(), amount=Sum("amount"))
    live = sales.to_table(f"parquet:{folder}/sales", checkpoint=f"{folder}/checkpoint", trigger={"availableNow": True})
    live.awaitTermination()
    rows = sorted(live.arrow().to_pylist(), key=lambda row: (row["window_start"], row["country"]))
    shown = [
        {
            "hour": f"{row['window_start'].astimezone(UTC):%H:%M}",
            **{name: row[name] for name in ("country", "orders", "amount")},
        }
        for row in rows
    ]
    print(indent(shown_rows(pa.Table.from_pylist(shown)).text(), "  ") + "\n")
    for source in checkpoint(f"{folder}/checkpoint").sources().to_pylist():
        time = "no time yet" if source["watermark"] is None else f"{source['watermark'].astimezone(UTC):%H:%M}"
        print(f"  partition {source['source']}: {source['offset']} of {source['end']} read, watermark {time}")
    print(flush=True)


def main(servers: str | None = None) -> None:
    """Show a live table over a topic before and after the messages of a partition that is behind."""
    from ..sparkops.session import session

    Kafka(servers or "127.0.0.1", "orders", value=ORDER)  # says now if there is no client of Kafka
    with (
        broker(servers) as place,
        new_topic(place) as topic,
        tempfile.TemporaryDirectory(prefix="uncombine-demo-") as folder,
    ):
        spark = session("uncombine demo kafka")
        try:
            send(place, topic, 0, QUICK)
            _say(
                f"Orders of four hours are in partition 0 of topic {topic}, and none in partition 1 yet.\n"
                "The table has what there is. No hour is over, for partition 1 has not said how far it is:"
            )
            update(spark, place, topic, folder)
            send(place, topic, 1, SLOW)
            _say(
                "Partition 1 was three hours behind. It cancels the order of 12:20 over 50, and brings two others.\n"
                "One watermark for all rows would have dropped them. Here the table is corrected:"
            )
            update(spark, place, topic, folder)
        finally:
            spark.stop()


def _say(text: str) -> None:
    print(text + "\n", flush=True)
