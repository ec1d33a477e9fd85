"""Applications over topics that are killed at random moments, and what happens to their topics in between."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka as ck
from apps import App, committed, running
from kafka_broker import Broker
from programs import program

MOMENTS = ("offsets", "state", "commits", "any")
LATE = ("Timed out while waiting for the Python worker", "Python worker failed to connect back")
"""The words of a run that ends by itself, as Spark has it on a busy machine."""

KILLS = int(os.environ.get("UNCOMBINE_KILLS", "20"))
"""The kills of a long run."""


@contextmanager
def started(name: str, out: Path, *arguments: object) -> Iterator[App]:
    """A program that runs, and what it says, without what earlier runs have said."""
    (out / "said").unlink(missing_ok=True)
    with running(out, *arguments, script=program(name)) as app:
        yield app


def some_time(r: random.Random, app: App, out: Path) -> bool:
    """Wait until a moment that is drawn; true if the application still runs."""
    moment, batch = r.choice(MOMENTS), committed(out)
    alive = app.wait(r.random() * 30) if moment == "any" else app.wait_for(batch, moment)
    return alive and app.wait(r.random() * r.choice([0.1, 1, 4]))


def too_late(app: App) -> bool:
    """True if the application has ended because Spark took too long to start a process."""
    said = (app.out / "said").read_text()
    return any(words in said for words in LATE)


def expire(broker: Broker, topic: str, out: Path) -> int:
    """Have the broker drop the messages that batches have read which are done; the first offset of partition 0 then."""
    if (done := committed(out) - 1) < 0:
        return 0
    noted = json.loads((out / "checkpoint" / "offsets" / str(done)).read_text().splitlines()[-1])
    offsets = {int(name.rpartition("/")[2]): one[0] for name, one in noted["topics"].items()}
    until = time.monotonic() + 60
    while offsets:
        places = [ck.TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        try:
            for future in broker.admin.delete_records(places).values():
                future.result(60)
            break
        except ck.KafkaException as error:  # a broker that has just been started leads no partition yet
            if error.args[0].code() != ck.KafkaError.NOT_LEADER_FOR_PARTITION or time.monotonic() > until:
                raise
            time.sleep(0.2)
    return int(offsets.get(0, 0))


def run_to_its_end(name: str, out: Path, *arguments: object) -> None:
    """Run a program until it has taken all that is there."""
    for _ in range(5):
        with started(name, out, *arguments) as app:
            app.process.wait()
            if app.process.returncode == 0:
                return
            assert too_late(app), app.said()
    raise AssertionError("five runs were too late")
