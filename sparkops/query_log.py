"""The log of a query in its checkpoint, read by Spark, which may be on another machine.

Guarded by tests/sparkops/test_query_log.py and tests/sparkops/tables/test_live_table.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from ..errors import InvalidArgument
from ..files.data_paths import escaped_name
from ..tables.target import NONE_YET
from ..urls import shown_url
from .spark_private import lacks_file_system

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def require_place(spark: SparkSession, checkpoint: str) -> None:
    """Raise if Spark can write no checkpoint there, because it has no file system for it."""
    if lacks_file_system(spark, checkpoint):
        raise InvalidArgument(
            f"Spark itself writes the checkpoint, and has no file system for {shown_url(checkpoint)}: name a folder on "
            "a disk that its driver and workers share, or start the session with a jar of Hadoop for such addresses"
        )


def last_commit(spark: SparkSession, checkpoint: str) -> int:
    """The number of the last batch that is done."""
    return _last(spark, f"{checkpoint}/commits")


def last_plan(spark: SparkSession, checkpoint: str) -> int:
    """The number of the last batch that was begun; it may be done again."""
    return _last(spark, f"{checkpoint}/offsets")


def first_commit(spark: SparkSession, checkpoint: str) -> int | None:
    """The number of the first batch that is done and still in the log."""
    return min(_numbers(spark, f"{checkpoint}/commits"), default=None)


def _last(spark: SparkSession, folder: str) -> int:
    return max(_numbers(spark, folder), default=NONE_YET)


def _numbers(spark: SparkSession, folder: str) -> list[int]:
    try:
        # No file is opened: a query that runs deletes its oldest ones meanwhile.
        files = spark.read.format("binaryFile").load(escaped_name(folder)).inputFiles()
    except AnalysisException:  # there is no such folder yet
        return []
    names = [str(file).rpartition("/")[2] for file in files]
    return [int(name) for name in names if name.isdecimal()]


def is_checkpoint(spark: SparkSession, checkpoint: str) -> bool:
    """True if a query has been started there, so that the folder has its id."""
    try:
        return bool(spark.read.format("binaryFile").load(escaped_name(f"{checkpoint}/metadata")).count())
    except AnalysisException:
        return False


def query_id(spark: SparkSession, checkpoint: str) -> str:
    """The id of the query whose checkpoint it is."""
    return str(json.loads(spark.read.text(escaped_name(f"{checkpoint}/metadata")).collect()[0][0])["id"])


__all__ = ["first_commit", "is_checkpoint", "last_commit", "last_plan", "query_id", "require_place"]
