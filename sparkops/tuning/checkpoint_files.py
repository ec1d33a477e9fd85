"""The way in which a query writes its checkpoint.

By itself Spark writes each file in a way that starts ten processes on a local disk (Hadoop's `chmod` and `readlink`).
Its other way starts two, but a file of a batch that failed stays as it is where a file that is renamed replaces no
other: on HDFS, in object stores, and in the class that Hive has for local files. So it is for local files of Hadoop's
own class alone.

Guarded by tests/sparkops/tuning/test_checkpoint_files.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAY = "spark.sql.streaming.checkpointFileManagerClass"

REPLACING = "org.apache.hadoop.fs.LocalFileSystem"
"""Files on a local disk, of which one that is renamed replaces another."""

_starting = Lock()


@contextmanager
def fit_for(folder: str, spark: SparkSession) -> Iterator[None]:
    """A query that is started meanwhile writes its checkpoint in the way that fits a folder, unless a setting says how.

    A query keeps the settings that it is started with.
    """
    from ..spark_private import file_system, renaming_writer

    with _starting:
        fits = spark.conf.get(WAY, None) is None and file_system(spark, folder) == REPLACING
        by_renames = renaming_writer(spark) if fits else None
        if by_renames is None:
            yield
            return
        spark.conf.set(WAY, by_renames)
        try:
            yield
        finally:
            spark.conf.unset(WAY)


__all__ = ["REPLACING", "fit_for"]
