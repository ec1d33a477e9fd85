"""Combining by key, without windows: a grouped aggregate of a bounded DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from ..changelogs.flows import flow_of
from ..combiners import Combiner
from ..combiners.column_names import key_names
from ..errors import InvalidArgument
from ..flows.flow import Flow
from ..flows.settings import Settings
from ..windows import Global
from .inputs import DataFrameInput, column
from .source import SparkSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TIME = "uncombine_time"


def combine_per_key(
    df: DataFrame,
    by: str | Sequence[str] = (),
    *,
    diff: str | None = None,
    shards: int | None = None,
    native: str = "auto",
    files: str = "auto",
    **combiners: Combiner,
) -> DataFrame:
    """Combine the rows of each key of a bounded DataFrame.

    Every task combines the rows that it reads, so only a few large packed rows go through the shuffle, and a key with
    most of the rows is not slower. Spark's own aggregation is used instead if it gives the same, or, for plain sums and
    means of floats, results within the same tolerance.

    Parameters
    ----------
    df
        A bounded DataFrame.
    by
        The key columns, of any type that Spark groups by; null is a key of its own. Without key columns all rows are
        one group, which always has a result: without rows it is 0 for counts and null for most combiners.
    diff
        A column of weights: -1 retracts a row. A key whose weights sum to zero has no result; without key columns the
        result is then that of no rows.
    shards
        The number of parts into which keys are divided; the number of Spark's shuffle partitions if not given.
    native
        "never" leaves nothing to Spark's own aggregation.
    files
        "never" leaves the reading of files to Spark, as in `flow`.
    **combiners
        The name of each result, and its combiner.

    Returns
    -------
    pyspark.sql.DataFrame
        The keys and the results.

    Examples
    --------
    >>> import uncombine as uc
    >>> spark = uc.session()
    >>> rows = [("a", 3), ("b", 5), ("a", 4)]
    >>> scores = spark.createDataFrame(rows, "user string, score bigint")
    >>> found = uc.sparkops.combine_per_key(
    ...     scores, "user", middle=uc.Median("score"), n=uc.Count()
    ... )
    >>> sorted(map(tuple, found.collect()))
    [('a', 3.5, 2), ('b', 5.0, 1)]
    """
    keys = key_names(by)
    flow = per_key(df, keys, diff, shards, combiners, native == "auto", files == "auto")
    return flow.df.select(*map(column, [*keys, *combiners]))


def per_key(
    df: DataFrame,
    by: Sequence[str],
    diff: str | None,
    shards: int | None,
    combiners: dict[str, Combiner],
    native: bool = True,
    files: bool = True,
) -> Flow:
    """The flow of `combine_per_key`: one window of all time, and one event time for all rows."""
    if df.isStreaming:
        raise InvalidArgument("combine_per_key takes a bounded DataFrame: use uc.flow for a streaming one")
    timed = df.withColumn(_TIME, F.timestamp_micros(F.lit(0)))
    source = SparkSource(DataFrameInput(timed, _TIME, native=native, files=files, before=df))
    return flow_of(source, Settings(_TIME, diff=diff, shards=shards)).window(Global()).combine(by, **combiners)
