"""The opening of a flow on Spark, over a DataFrame, files, or rows that go to Spark.

Files are listed and tracked by Spark. The tasks that combine their rows read them, so that they never enter the JVM.

Guarded by tests/test_doors.py, tests/sparkops/test_flow.py and tests/sparkops/test_files.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..changelogs.flows import Opening
from ..errors import InvalidArgument, TypeMismatch
from ..files.files import Files, is_path
from ..flows.settings import Settings
from ..flows.tuning import Tuning
from ..local.opening import opened as opened_here
from ..local.sources import LocalSource
from .changelogs import opened_over
from .files_input import FilesInput
from .inputs import DataFrameInput
from .sql_types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def opened(rows: Any, spark: SparkSession | None, settings: Settings, streaming: bool, tuning: Tuning) -> Opening:
    """Anything that a flow on Spark takes, ready to be read."""
    if is_dataframe(rows):
        if spark is not None:
            raise InvalidArgument("a DataFrame has its own session: leave spark= out")
        return _of_dataframe(rows, settings, streaming, tuning)
    if not hasattr(spark, "readStream"):
        raise TypeMismatch(f"spark= takes a session, such as uc.session(), but was given {spark!r}")
    assert spark is not None
    if is_path(rows):
        rows = Files(rows)
    if isinstance(rows, Files):
        return _of_files(rows, spark, settings, streaming)
    if streaming:
        raise InvalidArgument("streaming=True is for files: leave it out, or give a DataFrame of spark.readStream")
    return _of_rows(rows, spark, settings, tuning)


def is_dataframe(rows: Any) -> bool:
    """True for a DataFrame of Spark, also one of Spark Connect."""
    return hasattr(rows, "isStreaming")


def _of_dataframe(df: DataFrame, settings: Settings, streaming: bool, tuning: Tuning) -> Opening:
    if streaming and not df.isStreaming:
        raise InvalidArgument("streaming=True needs a streaming DataFrame: read it with spark.readStream")
    input = DataFrameInput(df, native=tuning.native == "auto", files=tuning.files == "auto")
    return opened_over(input, settings)


def _of_files(files: Files, spark: SparkSession, settings: Settings, streaming: bool) -> Opening:
    if not streaming:
        files.check_bounded()
    paths, most = files.paths, files.max_files_per_batch
    tracking = {} if most is None else {"maxFilesPerTrigger": str(most)}
    described = files.described(paths, streaming=streaming)
    return opened_over(FilesInput(spark, paths, described, streaming, tracking, files=files), settings)


def _of_rows(rows: Any, spark: SparkSession, settings: Settings, tuning: Tuning) -> Opening:
    """Rows of this process, which become a DataFrame."""
    local = None if isinstance(rows, pa.Schema) else opened_here(rows, settings).source(None, None)
    if not isinstance(local, LocalSource) or local.rows is None:
        raise InvalidArgument(
            "spark= runs files, and rows that are there, on Spark, but a script and a schema have rows in this process "
            "alone: leave spark= out"
        )
    df = spark.createDataFrame(local.rows, spark_schema(local.schema))
    return _of_dataframe(df, settings, False, tuning)


__all__ = ["is_dataframe", "opened"]
