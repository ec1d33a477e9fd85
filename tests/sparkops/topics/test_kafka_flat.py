"""A topic of many small messages, read as it grows: each is counted once, and the memory of all processes stays flat.

`UNCOMBINE_MESSAGES=100000000` says how many. What the processes have is noted in out/kafka/memory.csv.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from apps import members, running
from kafka_broker import JARS, Broker
from memory_of import Memory, largest, memory_of
from programs import program
from programs.small_messages import CYCLE, row_of

MESSAGES = int(os.environ.get("UNCOMBINE_MESSAGES", "100000000"))
PARTITIONS = 4
EVERY = 2.0
"""The seconds between two looks at the memory."""
SLACK = 48 << 20
"""The bytes by which a job of less than this size may grow."""


def recomputed(count: int) -> list[list[int]]:
    """The number and the sum of each key of so many messages."""
    keys, values = np.array([row_of(n) for n in range(CYCLE)]).T
    times = count // CYCLE + (np.arange(CYCLE) < count % CYCLE)
    numbers = np.bincount(keys, times).astype(int)
    sums = np.bincount(keys, times * values).astype(int)
    return [[key, int(n), int(sums[key])] for key, n in enumerate(numbers) if n]


@pytest.mark.soak
@pytest.mark.spark
def test_small_messages_are_counted_once_in_flat_memory(broker: Broker, tmp_path: Path) -> None:
    out, topic, samples = tmp_path / "out", broker.topic(PARTITIONS), list[Memory]()
    out.mkdir()
    note, began = JARS.with_name("memory.csv"), time.monotonic()
    note.write_text("seconds,job,processes,bytes,largest\n")
    sending = [sys.executable, program("small_messages"), broker.servers, topic, str(PARTITIONS), str(MESSAGES)]
    with running(out, broker.servers, topic, out, script=program("topic_totals")) as app:
        sender = subprocess.Popen(sending)
        try:
            while app.wait(EVERY):
                if sender.poll() is not None:
                    assert sender.returncode == 0
                    (out / "sent").touch()
                assert broker.process is not None
                samples.append(memory_of([*members(app.process.pid), broker.process.pid]))
                with note.open("a") as file:
                    for job, sizes in samples[-1].items():
                        line = time.monotonic() - began, job, len(sizes), sum(sizes), max(sizes)
                        file.write("{:.0f},{},{},{},{}\n".format(*line))
        finally:
            sender.kill()
            sender.wait()
        assert app.process.returncode == 0, app.said()
    assert json.loads((out / "sums.json").read_text()) == recomputed(MESSAGES)
    early, late = largest(samples, 0.25, 0.5), largest(samples, 0.75, 1)
    assert all(size <= early.get(job, 0) * 1.1 + SLACK for job, size in late.items()), (early, late)
