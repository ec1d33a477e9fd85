"""An application of its own, to be killed: a topic of rows into a file sink, or one of upserts into a live table.

    python topics_in.py SERVERS TOPIC OUT rows|upserts

It ends when all that is in the topic is taken.
"""

from __future__ import annotations

import sys

import pyarrow as pa

import uncombine as uc

ROW = pa.schema({"ts": pa.timestamp("ms", "UTC"), "k": pa.string(), "n": pa.int64()})
UPSERTS = uc.changelog.KafkaUpsert("id", schema=ROW.append(pa.field("id", pa.string())))


def groups(kafka: uc.Kafka, spark: object, **options: object) -> uc.Flow:
    """The number and the sum of each key in each hour, shown again with every row."""
    flow = uc.flow(kafka, spark=spark, streaming=True, watermark="0 seconds", **options)  # type: ignore[arg-type]
    windows = flow.window("1 hour", "every 1 row", mode="retracting", allowed_lateness="1 day")
    return windows.combine(by="k", n=uc.Count(), total=uc.Sum("n"))


def main() -> None:
    servers, topic, out, what = sys.argv[1:]
    settings = {"spark.driver.memory": "700m", "spark.sql.shuffle.partitions": "4"}
    spark = uc.session("topics in", cores=2, settings=settings)
    once, checkpoint = {"availableNow": True}, f"{out}/checkpoint"
    if what == "rows":
        panes = groups(uc.Kafka(servers, topic, value=ROW, wait="5 minutes"), spark)
        writer = panes.write_stream(checkpoint=checkpoint).format("parquet")
        writer.option("path", f"{out}/panes").trigger(**once).start().awaitTermination()
    else:
        kept = groups(uc.Kafka(servers, topic, value="string", wait="5 minutes"), spark, changelog=UPSERTS)
        kept.to_table(f"duckdb:{out}/a.db#t", checkpoint=checkpoint, trigger=once).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
