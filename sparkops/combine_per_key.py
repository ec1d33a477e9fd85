"""Combining by key alone: a grouped aggregate of a bounded DataFrame, without windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from ..combiners import Combiner
from ..errors import InvalidArgument
from ..panes.flow import Flow, Settings, flow_of
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
    **combiners: Combiner,
) -> DataFrame:
    """The results of `combiners` for each key of a bounded DataFrame.

    Every task combines the rows that it reads, so that a few large packed rows go through the shuffle, and a key that
    most rows have is no burden. Where Spark's own aggregation gives the same to the last bit, it is used.

    Parameters
    ----------
    df
        A bounded DataFrame.
    by
        The key columns, of any type that Spark groups by; null is a key of its own. With none, all rows are one group,
        which has a row in any case: that of no rows holds 0 for counts, null for most.
    diff
        A column of weights: -1 takes a row back. A key whose weights sum to zero has no row; without keys the row is
        then that of no rows.
    shards
        Into how many parts the keys are divided; as many as Spark has shuffle partitions if not given.
    **combiners
        Name of each result and what to compute.

    Returns
    -------
    pyspark.sql.DataFrame
        The keys and the results.

    Examples
    --------
    >>> import uncombine as uc
    >>> spark = uc.session()
    >>> scores = spark.createDataFrame([("a", 3), ("b", 5), ("a", 4)], "user string, score bigint")
    >>> found = uc.sparkops.combine_per_key(scores, "user", middle=uc.Median("score"), n=uc.Count())
    >>> sorted(map(tuple, found.collect()))
    [('a', 3.5, 2), ('b', 5.0, 1)]
    """
    keys = [by] if isinstance(by, str) else list(by)
    return per_key(df, keys, diff, shards, combiners).df.select(*map(column, [*keys, *combiners]))


def per_key(
    df: DataFrame, by: Sequence[str], diff: str | None, shards: int | None, combiners: dict[str, Combiner]
) -> Flow:
    """The flow behind it: one window for all time, and a time that is the same for all rows."""
    if df.isStreaming:
        raise InvalidArgument("combine_per_key takes a bounded DataFrame: a streaming one becomes a flow with uc.flow")
    timed = df.withColumn(_TIME, F.timestamp_micros(F.lit(0)))
    source = SparkSource(DataFrameInput(timed, _TIME))
    return flow_of(source, Settings(_TIME, diff=diff, shards=shards)).window(Global()).combine(by, **combiners)
