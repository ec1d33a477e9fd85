"""An application of its own, to be killed: the groups of a topic into another topic, and what is left out into a third.

    python topics_out.py SERVERS SOURCE TARGET DEAD OUT CHANGELOG

It ends when all that is in the source is written.
"""

from __future__ import annotations

import sys

import pyarrow as pa

import uncombine as uc

ROW = pa.schema({"ts": pa.timestamp("ms", "UTC"), "k": pa.string(), "n": pa.int64()})


def groups(servers: str, source: str, spark: object) -> uc.Flow:
    """The number and the sum of each key in each hour, shown again with every row."""
    kafka = uc.Kafka(servers, source, value=ROW, wait="5 minutes")
    flow = uc.flow(kafka, spark=spark, streaming=True, watermark="0 seconds")  # type: ignore[arg-type]
    windows = flow.window("1 hour", "every 1 row", mode="retracting", allowed_lateness="1 day")
    return windows.combine(by="k", n=uc.Count(), total=uc.Sum("n"))


def main() -> None:
    servers, source, target, dead, out, changelog = sys.argv[1:]
    settings = {"spark.driver.memory": "700m", "spark.sql.shuffle.partitions": "4"}
    spark = uc.session("topics out", cores=2, settings=settings)
    query = groups(servers, source, spark).to_kafka(
        servers,
        target,
        changelog=changelog,
        checkpoint=f"{out}/checkpoint",
        left_out=dead,
        wait="5 minutes",
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
