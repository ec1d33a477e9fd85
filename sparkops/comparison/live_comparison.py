"""The comparison of two streams as they go: one query reads both, and this process keeps their net difference.

Tasks of Spark net the rows of a batch, so that what both sides show in it never leaves them.

Guarded by tests/sparkops/comparison/test_live_comparison.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from ...combiners.rows.columns import int64_column
from ...errors import InvalidArgument
from ...flows.flow import Flow
from ...flows.graph import graph_of
from ...tables.comparison.comparison import Comparison
from ...tables.comparison.net_difference import NetDifference
from ...tables.comparison.options import ComparisonOptions
from ...tables.target import NONE_YET
from ..ending import end_without_input, wait_for
from ..progress_log import listen
from ..starting import BatchFunction, started
from ..time_modes import wakes
from .spark_sides import WEIGHT, SparkSide, spark_sides

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

EachBatch = Callable[[Comparison, int], object]
"""A function of the comparison after a batch, and of the number of the batch."""


class LiveComparison:
    """A query that compares two streams, and their difference so far; it has the methods of the query too.

    `uc.compare` makes it. `.comparison` has the verdict, counts and examples after the last batch that has ended. The
    end of a `with` block stops the query. It has no checkpoint: a comparison that is started again begins from nothing.

    >>> import uncombine as uc
    >>> spark = uc.session()
    >>> rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    >>> whole = uc.flow(rates, time="timestamp", watermark="1 minute").window("global", "each row")
    >>> one, other = (whole.combine(n=of) for of in (uc.Count(), uc.Sum(uc.col("value") - uc.col("value") + 1)))
    >>> with uc.compare(one, other, trigger={"once": True}) as live:
    ...     live.awaitTermination()
    >>> live.comparison
    old and new are the same: 1 row
    """

    def __init__(self, query: StreamingQuery, batches: CompareBatches) -> None:
        self.query = query
        self._batches = batches

    @property
    def comparison(self) -> Comparison:
        """The comparison after the last batch that has ended; that of no rows before the first."""
        return self._batches.comparison

    def stop(self) -> None:
        """Stop the query; `comparison` stays as it is."""
        self.query.stop()

    def __enter__(self) -> LiveComparison:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802
        """Wait for the end of the query, as its own method does."""
        return wait_for(self.query, timeout)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.query, name)

    def __repr__(self) -> str:
        return f"{'so far, ' if self.query.isActive else ''}{self.comparison}"


def compared_live(
    old: Any, new: Any, options: ComparisonOptions, trigger: Mapping[str, Any], on_batch: EachBatch | None
) -> LiveComparison:
    """Start a query that compares two streams; `uc.compare` says how."""
    one, other, schema, options = spark_sides((old, new), options)
    spark = one.df.sparkSession
    if ".connect." in type(spark).__module__:
        raise InvalidArgument(
            "a comparison of streams keeps their difference in the process of the driver, which Spark Connect has on "
            "the server: run the program there, or compare two live tables, such as live.arrow()"
        )
    batches = CompareBatches(schema, options, on_batch)
    rows = _counted(one, schema, "o", "n").union(_counted(other, schema, "n", "o"))
    function = BatchFunction(batches)
    writer = rows.writeStream.foreachBatch(function).trigger(**trigger)
    endless = bool(trigger.get("availableNow")) and any(map(_wakes, (old, new)))
    listen(spark)
    query = started(writer.start, lambda: function.called, "a comparison of two streams starts")
    if endless:
        end_without_input(query, NONE_YET)
    return LiveComparison(query, batches)


def _wakes(side: Any) -> bool:
    return isinstance(side, Flow) and wakes(side.settings, graph_of(side))


def _counted(side: SparkSide, schema: pa.Schema, own: str, others: str) -> DataFrame:
    """The rows of a side with the number of times that they come to it, and to the other one."""
    names = [f"c{place}" for place in range(len(schema))]
    counts = {own: F.col(WEIGHT), others: F.lit(0).cast("bigint")}
    return side.numbered(schema).select(*names, *(counts[name].alias(name) for name in ("o", "n")))


class CompareBatches:
    """Takes the batches of a query, and keeps the difference after all of them."""

    def __init__(self, schema: pa.Schema, options: ComparisonOptions, on_batch: EachBatch | None) -> None:
        self.schema, self.on_batch = schema, on_batch
        self.difference = NetDifference.of(schema, options)
        self.comparison = self.difference.comparison()

    def __call__(self, batch: DataFrame, number: int) -> None:
        names = [name for name in batch.columns if name not in ("o", "n")]
        net = batch.groupBy(*names).agg(F.sum("o").alias("o"), F.sum("n").alias("n")).where("o != 0 or n != 0")
        same = F.when(F.col("o") == F.col("n"), F.col("o")).otherwise(0)
        net = net.persist()
        try:
            (both,) = net.agg(F.coalesce(F.sum(same), F.lit(0)).alias("both")).collect()
            differ = net.where("o != n").toArrow()
        finally:
            net.unpersist()
        rows = _named(differ.select(names), self.schema)
        counts = [int64_column(differ[name]) for name in ("o", "n")]
        self.difference = self.difference.with_both(int(both["both"])).changed(rows, *counts)
        self.comparison = self.difference.comparison()
        if self.on_batch is not None:
            self.on_batch(self.comparison, number)


def _named(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Numbered columns under their names, in the types in which they are compared."""
    columns: Sequence[pa.ChunkedArray] = [
        column.cast(field.type) for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.table(columns, schema=schema)


__all__ = ["CompareBatches", "LiveComparison", "compared_live"]
