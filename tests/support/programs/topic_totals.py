"""An application of its own, whose memory is watched: small messages of a topic, counted and summed in a live table.

    python topic_totals.py SERVERS TOPIC OUT

It ends when the file `sent` is there and all messages are taken, and writes the sums of each key as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb
import pyarrow as pa

import uncombine as uc

ROW = pa.schema({"k": pa.int64(), "v": pa.int64()})
MOST = 1_000_000
"""The messages of a batch."""


def main() -> None:
    servers, topic, out = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    settings = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
    spark = uc.session("topic totals", cores=2, settings=settings)
    kafka = uc.Kafka(servers, topic, value=ROW, max_rows_per_batch=MOST, wait="5 minutes")
    flow = uc.flow(kafka, spark=spark, streaming=True, time="timestamp", watermark="5 seconds")
    sums = flow.window("10 seconds").combine(by="k", n=uc.Count(), v=uc.Sum("v"))
    live = sums.to_table(f"duckdb:{out}/a.db#t", checkpoint=f"{out}/checkpoint")
    while not (out / "sent").exists():
        live.awaitTermination(1)
    live.processAllAvailable()
    live.stop()
    with duckdb.connect(f"{out}/a.db", read_only=True) as db:
        sums = "SELECT k, sum(n)::bigint, sum(v)::bigint FROM t WHERE k >= 0 GROUP BY k ORDER BY k"
        rows = db.execute(sums).fetchall()
    (out / "sums.json").write_text(json.dumps(rows))
    spark.stop()


if __name__ == "__main__":
    main()
