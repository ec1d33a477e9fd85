"""Topics of Kafka on Spark: read by this library, and by Spark's own connector, into the same windows.

The version of Spark is the newest for which Maven has the connector. A folder is the address of the broker.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from contender import THREADS, Task, serve
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

import uncombine as uc

SPARK_VERSION = "4.2.0"
JARS = Path(__file__).resolve().parents[2] / "out" / "kafka" / "connector"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>uncombine</groupId>
  <artifactId>connector</artifactId>
  <version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
DEPENDENCY = """
    <dependency>
      <groupId>org.apache.spark</groupId>
      <artifactId>{name}_2.13</artifactId>
      <version>{version}</version>
      <exclusions>
        <exclusion><groupId>org.apache.hadoop</groupId><artifactId>*</artifactId></exclusion>
        <exclusion><groupId>org.scala-lang</groupId><artifactId>*</artifactId></exclusion>
      </exclusions>
    </dependency>"""

ROW = pa.schema({"ts": pa.timestamp("ms", "UTC"), "k": pa.int64(), "v": pa.int64()})
FIELDS = [{"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}}]
FIELDS += [{"name": name, "type": "long"} for name in "kv"]
AVRO = {"type": "record", "name": "row", "fields": FIELDS}
LENGTH = "10 minutes"


def jars() -> str:
    """The jars of the connector and of Avro, which Maven copies at the first use."""
    if not JARS.is_dir():
        names = ("spark-sql-kafka-0-10", "spark-avro")
        dependencies = "".join(DEPENDENCY.format(name=name, version=SPARK_VERSION) for name in names)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "pom.xml").write_text(POM.format(dependencies=dependencies))
            command = ["mvn", "-q", "-B", "-f", f"{folder}/pom.xml", "dependency:copy-dependencies"]
            # What Maven prints is no answer of this process.
            options = ["-DincludeScope=runtime", f"-DoutputDirectory={JARS}"]
            subprocess.run([*command, *options], check=True, stdout=sys.stderr)
    return ",".join(map(str, sorted(JARS.glob("*.jar"))))


SETTINGS = {"spark.jars": jars(), "spark.sql.shuffle.partitions": str(THREADS), "spark.sql.session.timeZone": "UTC"}
SPARK = uc.session("topics", cores=THREADS, settings=SETTINGS)


def ours(form: str, servers: str) -> None:
    """The library reads the topic."""
    value: Any = ROW if form == "json" else uc.messages.Avro(AVRO)
    kafka = uc.Kafka(servers, form, value=value)
    run(windows(uc.flow(kafka, spark=SPARK, streaming=True, watermark="1 minute")), "ours")


def combined(form: str, servers: str) -> None:
    """Spark's connector reads the topic, and the library combines the rows."""
    run(windows(uc.flow(connected(form, servers), watermark="1 minute")), "combined")


def native(form: str, servers: str) -> None:
    """Spark's connector reads the topic, and Spark aggregates the rows."""
    rows = connected(form, servers).withWatermark("ts", "1 minute")
    run(rows.groupBy(F.window("ts", LENGTH), "k").agg(F.sum("v").alias("s"), F.count("*").alias("c")), "native")


def connected(form: str, servers: str) -> DataFrame:
    """The rows of the topic by Spark's connector."""
    options = {"kafka.bootstrap.servers": servers, "subscribe": form, "startingOffsets": "earliest"}
    parsed: Column
    if form == "json":
        parsed = F.from_json(F.col("value").cast("string"), "ts bigint, k bigint, v bigint")
    else:
        parsed = from_avro("value", json.dumps(AVRO))
    rows = SPARK.readStream.format("kafka").options(**options).load().select(parsed.alias("row")).select("row.*")
    return rows.withColumn("ts", F.timestamp_millis("ts")) if form == "json" else rows


def windows(flow: uc.Flow) -> DataFrame:
    return flow.window(LENGTH).combine(by="k", s=uc.Sum("v"), c=uc.Count()).df


def run(df: DataFrame, name: str) -> None:
    """The stream until it has taken all that is there."""
    with tempfile.TemporaryDirectory() as folder:
        writer = df.writeStream.format("noop").option("checkpointLocation", folder).queryName(name)
        writer.trigger(availableNow=True).start().awaitTermination()


WAYS = {"ours": ours, "combined": combined, "native": native}

if __name__ == "__main__":
    serve(
        "pyspark",
        {f"{name} {form}": Task(partial(way, form)) for name, way in WAYS.items() for form in ("json", "avro")},
    )
