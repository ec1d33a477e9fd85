"""Topics through a server of Spark Connect: batches and streams read them, and writing is refused in a sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from kafka_broker import Broker
from programs import program

NOON = 1_714_564_800_000


@pytest.mark.spark
def test_topics_through_a_connect_server(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic(2)
    for partition in range(2):
        broker.send(topic, [{"ts": NOON, "k": "ab"[partition], "n": n} for n in range(10)], partition)
    command = [sys.executable, program("topics_apart"), broker.servers, topic, str(tmp_path), "connect"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert ran.returncode == 0, ran.stderr[-4000:]
    once, stream, refusal = map(json.loads, ran.stdout.splitlines()[-3:])
    assert once == stream == {"a": 45, "b": 45}
    assert refusal.startswith("to_kafka() does not run over Spark Connect: use a session of Spark itself")
