"""Queries that read topics, killed at any moment, the broker too, while the topics expire and are compacted.

The truth is what pandas makes of all messages that were ever sent.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apps import committed
from kafka_broker import Broker
from pyspark.sql import SparkSession
from streams import changed
from topic_kills import KILLS, expire, run_to_its_end, some_time, started, too_late

import uncombine as uc

NOON, HOUR = 1_714_564_800_000, 3_600_000
COMPACTED = {
    "cleanup_policy": "compact,delete",
    "segment_ms": "100",
    "min_cleanable_dirty_ratio": "0.01",
    "max_compaction_lag_ms": "100",
}

Groups = dict[tuple[str, int], tuple[int, int]]


def row_of(r: random.Random) -> dict[str, Any]:
    return {"ts": NOON + r.randrange(3) * HOUR, "k": r.choice("abcdefgh"), "n": r.randrange(100)}


def grouped(rows: pd.DataFrame) -> Groups:
    """The number and the sum of each key in each hour, by pandas."""
    groups = rows.groupby(["k", rows["ts"] // HOUR * HOUR])["n"].agg(["count", "sum"])
    return {(k, int(hour)): (int(n), int(total)) for (k, hour), n, total in groups.itertuples()}


def last_of_each(messages: list[tuple[str, dict[str, Any] | None]]) -> pd.DataFrame:
    """The last row of each key, by pandas; keys that were deleted have none."""
    sent = pd.DataFrame([{"id": key, "gone": row is None, **(row or {})} for key, row in messages])
    last = sent.drop_duplicates("id", keep="last")
    return last[~last["gone"]]


def shown(out: Path) -> Groups:
    """The groups that the panes of the file sink add up to; a pane that is there twice, or half, raises."""
    table = pq.read_table(sorted(_files(out)))
    weights = Counter[tuple[str, int, int, int]]()
    for pane in table.to_pylist():
        hour = int(pd.Timestamp(pane["window"]["start"]).timestamp() * 1000)
        weights[pane["k"], hour, pane["n"], pane["total"]] += pane["diff"]
    assert set(weights.values()) <= {0, 1}, weights
    left = [pane for pane, weight in weights.items() if weight]
    assert len({pane[:2] for pane in left}) == len(left)
    return {(k, hour): (n, total) for k, hour, n, total in left}


def _files(out: Path) -> set[str]:
    """The files of batches that the sink has committed; those of killed ones lie beside them."""
    found = set[str]()
    for note in (out / "panes" / "_spark_metadata").iterdir():
        if not note.name.startswith("."):
            found |= {json.loads(line)["path"].removeprefix("file://") for line in note.read_text().splitlines()[1:]}
    return found


def kept(out: Path) -> Groups:
    with duckdb.connect(str(out / "a.db"), read_only=True) as db:
        rows = db.execute("SELECT k, epoch_ms(window_start), n, total FROM t").fetchall()
    assert len({row[:2] for row in rows}) == len(rows)
    return {(k, int(hour)): (int(n), int(total)) for k, hour, n, total in rows}


def agree(broker: Broker, folder: Path, seed: int, kills: int, upset: int) -> None:
    """Check the sink and the table after kills at random moments, and some of the broker."""
    r, out = random.Random(seed), folder / "out"
    topics = {"rows": broker.topic(2), "upserts": broker.topic(2, **COMPACTED)}
    arguments = {name: (broker.servers, topic, out / name, name) for name, topic in topics.items()}
    rows, upserts = list[dict[str, Any]](), list[tuple[str, dict[str, Any] | None]]()

    def send() -> None:
        for partition in range(2):
            new = [row_of(r) for _ in range(30)]
            broker.send(topics["rows"], new, partition, acks="all")
            rows.extend(new)
            ids = [f"id {partition} {r.randrange(40)}" for _ in range(60)]
            changed = [(name, None if r.random() < 0.1 else row_of(r)) for name in ids]
            broker.send(topics["upserts"], [row for _, row in changed], partition, ids, acks="all")
            upserts.extend(changed)

    killed, dropped = 0, dict[str, int]()
    while killed < kills:
        name = "rows" if killed % 2 else "upserts"
        place = out / name
        place.mkdir(parents=True, exist_ok=True)
        send()
        before = committed(place)
        with started("topics_in", place, *arguments[name]) as app:
            alive = some_time(r, app, place)
            assert alive or committed(place) > before or too_late(app), app.said()
            killed += alive
            send()  # so that what the killed batch has read may be compacted before it is read again
            if alive and killed % upset == 0:
                broker.kill()
                time.sleep(0.5)
                broker.start()
        (out / "kills").write_text(f"{killed}\n")  # for those who watch a long run
        time.sleep(r.random() * 1.5)
        dropped[name] = expire(broker, topics[name], place)
    for name in topics:
        run_to_its_end("topics_in", out / name, *arguments[name])
    assert broker.begin_of(topics["rows"]) == dropped.get("rows", 0)
    assert shown(out / "rows") == grouped(pd.DataFrame(rows))
    assert kept(out / "upserts") == grouped(last_of_each(upserts))


def test_a_batch_that_a_table_has_is_not_run_again_as_its_messages_may_be_compacted(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = broker.topic(**COMPACTED)
    schema = pa.schema([("ts", pa.timestamp("ms", "UTC")), ("k", pa.string()), ("n", pa.int64()), ("id", pa.string())])

    def run() -> Groups:
        kafka, upserts = uc.Kafka(broker.servers, topic, value="string"), uc.changelog.KafkaUpsert("id", schema=schema)
        flow = uc.flow(kafka, spark=spark, streaming=True, watermark="0 seconds", changelog=upserts)
        windows = flow.window("1 hour", "every 1 row", mode="retracting", allowed_lateness="1 day")
        totals, once = windows.combine(by="k", n=uc.Count(), total=uc.Sum("n")), {"availableNow": True}
        with changed(spark):
            live = totals.to_table(f"duckdb:{tmp_path}/a.db#t", checkpoint=f"{tmp_path}/checkpoint", trigger=once)
            live.awaitTermination()
        return kept(tmp_path)

    def send(name: str, hour: int, n: int) -> None:
        broker.send(topic, [{"ts": NOON + hour * HOUR, "k": name, "n": n}], keys=[name])

    send("a", 0, 1)
    send("b", 0, 5)
    assert run() == {("a", NOON): (1, 1), ("b", NOON): (1, 5)}
    for note in (tmp_path / "checkpoint" / "commits").iterdir():  # as a query leaves it that is killed after its table
        note.unlink()
    send("a", 1, 2)
    until, messages = time.monotonic() + 60, uc.Kafka(broker.servers, topic, value="string", columns=["offset"])
    while 0 in uc.flow(messages, time="timestamp").run()["offset"].to_pylist():
        assert time.monotonic() < until
        send("c", 2, 3)
    assert run() == {("a", NOON + HOUR): (1, 2), ("b", NOON): (1, 5), ("c", NOON + 2 * HOUR): (1, 3)}


@pytest.mark.spark
def test_queries_that_are_killed_lose_and_double_nothing(broker: Broker, tmp_path: Path) -> None:
    agree(broker, tmp_path, seed=1, kills=3, upset=2)


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(2, 4))
def test_many_kills(broker: Broker, tmp_path: Path, seed: int) -> None:
    agree(broker, tmp_path, seed=seed, kills=KILLS, upset=5)
