"""Applications that read a topic and write another, killed at any moment, the broker too: each change is there once.

What is read by batches that are done expires in between.

The messages are those of a changelog with weights or with both rows, so a batch that is written twice, or half, shows.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from apps import committed as next_batch
from kafka_broker import Broker, committed
from topic_kills import KILLS, expire, run_to_its_end, some_time, started, too_late

NOON, HOUR = 1_714_564_800_000, 3_600_000


def rows_of(r: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {"ts": NOON + r.randrange(3) * HOUR, "k": r.choice("abcdefgh"), "n": r.randrange(100)} for _ in range(count)
    ]


def recomputed(rows: list[dict[str, Any]]) -> dict[tuple[str, int], tuple[int, int]]:
    """The groups by pandas, from all rows at once."""
    df = pd.DataFrame(rows)
    grouped = df.groupby(["k", df["ts"] // HOUR * HOUR])["n"].agg(["count", "sum"])
    return {(k, int(hour)): (int(n), int(total)) for (k, hour), n, total in grouped.itertuples()}


def folded(broker: Broker, topic: str) -> dict[tuple[str, int], tuple[int, int]]:
    """The table that messages with weights add up to; each message is there once, or a weight is not 0 or 1."""
    weights = Counter[tuple[str, int, int, int]]()
    for key, value in committed(broker, topic):
        assert key is not None
        assert value is not None
        row = json.loads(value)
        hour = int(pd.Timestamp(row["window"]["start"]).timestamp() * 1000)
        weights[row["k"], hour, row["n"], row["total"]] += row["diff"]
    assert set(weights.values()) <= {0, 1}, weights
    left = [row for row, weight in weights.items() if weight]
    assert len({row[:2] for row in left}) == len(left)
    return {(k, hour): (n, total) for k, hour, n, total in left}


def agree(broker: Broker, folder: Path, seed: int, kills: int, upset: int) -> None:
    """Check the topic after each run that ends, and at the end."""
    r, out = random.Random(seed), folder / "out"
    out.mkdir()
    source, topic, dead = broker.topic(2), broker.topic(3), broker.topic()
    arguments = [broker.servers, source, topic, dead, out, "diff"]
    rows, bad, batches, dropped = list[dict[str, Any]](), 0, 0, 0
    for kill in range(kills):
        new = rows_of(r, 60)
        broker.send(source, [*new[:30], f"bad {kill}"], 0, acks="all")
        broker.send(source, new[30:], 1, acks="all")
        rows, bad = rows + new, bad + 1
        with started("topics_out", out, *arguments) as app:
            alive = some_time(r, app, out)
            assert alive or next_batch(out) > batches or too_late(app), app.said()
            if kill % upset == upset - 1:
                broker.kill()
                time.sleep(0.5)
                broker.start()
        batches = next_batch(out)
        dropped = expire(broker, source, out)
    assert broker.begin_of(source) == dropped
    run_to_its_end("topics_out", out, *arguments)
    assert folded(broker, topic) == recomputed(rows)
    texts = Counter(json.loads(value or b"")["text"] for _, value in committed(broker, dead))
    assert texts == {f"bad {kill}": 1 for kill in range(bad)}


@pytest.mark.spark
def test_a_query_that_is_killed_writes_each_change_once(broker: Broker, tmp_path: Path) -> None:
    agree(broker, tmp_path, seed=1, kills=2, upset=2)


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(2, 5))
def test_many_kills(broker: Broker, tmp_path: Path, seed: int) -> None:
    agree(broker, tmp_path, seed=seed, kills=KILLS, upset=5)
