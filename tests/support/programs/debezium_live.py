"""An application of its own, to be killed: messages of Debezium in a topic, and sales by hour and shop as a live table.

    python debezium_live.py SERVERS TOPIC URL OUT

It ends when the table has all that is in the topic.
"""

from __future__ import annotations

import sys

import pyarrow as pa

import uncombine as uc

ORDER = pa.schema(
    {"id": pa.int64(), "ts": pa.timestamp("us", "UTC"), "shop": pa.string(), "cents": pa.int64(), "note": pa.string()}
)


CHANGELOG = uc.changelog.Debezium(keys="id", order="source.lsn", schema=ORDER)


def sales(flow: uc.Flow) -> uc.Flow:
    """Orders, their cents, and the last of their notes by text."""
    hours = flow.window("1 hour", "every 1 row", mode="retracting", allowed_lateness="10 days")
    return hours.combine(by="shop", orders=uc.Count(), cents=uc.Sum("cents"), note=uc.Max("note"))


def main() -> None:
    servers, topic, url, out = sys.argv[1:]
    settings = {"spark.driver.memory": "700m", "spark.sql.shuffle.partitions": "4"}
    spark = uc.session("debezium live", cores=2, settings=settings)
    kafka = uc.Kafka(servers, topic, value="string", wait="5 minutes")
    flow = uc.flow(kafka, spark=spark, streaming=True, watermark="0 seconds", changelog=CHANGELOG)
    live = sales(flow).to_table(url, checkpoint=f"{out}/checkpoint", trigger={"availableNow": True})
    live.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
