"""A program that writes the batches of three shards into a topic, and goes on after the last batch that it noted."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from uncombine.kafka.client import Cluster
from uncombine.kafka.markers import Markers, records_of, send_batch

SHARDS = 3


def main() -> None:
    servers, topic, progress, count = sys.argv[1:]
    noted = Path(progress)
    done = int(noted.read_text()) if noted.exists() else -1
    planned = Path(f"{progress}.planned")
    begun = int(planned.read_text()) if planned.exists() else -1
    cluster = Cluster(servers, {}, who="to_kafka()", writes=True)
    markers = Markers(cluster, topic, "a query")
    now = None
    with ThreadPoolExecutor(SHARDS) as pool:
        for batch in range(done + 1, int(count)):
            replaced(planned, batch)
            if now is None:
                now = markers.begun(SHARDS, done, max(begun, batch))

            def send(shard: int, batch: int = batch, now: object = now) -> None:
                texts = [f"{batch} {shard} {i}".encode() for i in range(20)]
                send_batch(now, shard, batch, {topic: records_of([(text, text) for text in texts])})  # type: ignore[arg-type]

            list(pool.map(send, range(SHARDS)))
            replaced(noted, batch)


def replaced(file: Path, number: int) -> None:
    """Write a number so that it is there wholly or not."""
    new = file.with_suffix(f"{file.suffix}.new")
    new.write_text(str(number))
    new.replace(file)


if __name__ == "__main__":
    main()
