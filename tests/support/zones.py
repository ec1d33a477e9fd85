"""The time zone of a session, and results that do not depend on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import SparkSession


@contextmanager
def zone(spark: SparkSession, name: str) -> Iterator[None]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", name)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def in_utc(table: pa.Table) -> pa.Table:
    """The same instants, which not every zone can write."""

    def kind(given: pa.DataType) -> pa.DataType:
        if pa.types.is_struct(given):
            return pa.struct([field.with_type(kind(field.type)) for field in given])
        return pa.timestamp("us", "UTC") if pa.types.is_timestamp(given) else given

    return table.cast(pa.schema([field.with_type(kind(field.type)) for field in table.schema]))
