"""A streaming query that keeps the current result of a flow in a table.

Guarded by tests/sparkops/tables/test_live_table.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO

import pyarrow as pa

from ...errors import InvalidArgument, NoSuchStep
from ...files.data_paths import escaped_name
from ...flows.flow import Flow
from ...flows.graph import graph_of
from ...flows.tuning import LiveQuery
from ...panes.showing import ROWS, shown_rows
from ...tables import Keeper, Target, Writer, table_flow, target_of
from ...tables.watching import watched
from ..batches import keeps_keys, packed_changes
from ..checkpoints.positions import in_shards, seed_at_start, started_at
from ..ending import own_error_last, wait_for
from ..query_log import query_id
from ..restarts import checked_route
from ..routes.base import Route
from ..routes.streaming import StreamRoute
from ..spark_private import lacks_file_system
from ..sql_types import dataframe_of, spark_schema
from ..time_modes import as_stored, wakes
from ..tuning.thin_function import thin_function
from .finished_batch import may_differ
from .left_out_table import LAYOUT, WithLeftOut
from .table_query import Take, all_hurry, apply_packed, start_tables
from .table_start import TableStart

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery


class LiveTable:
    """A streaming query and the table that it keeps up to date; it has the methods of the query too.

    `flow.to_table` makes it. A reader of the table sees the result of all batches so far, and never half a batch. The
    end of a `with` block stops the query, also after an error or an interrupt.

    >>> import tempfile, uncombine as uc
    >>> spark, folder = uc.session(), tempfile.mkdtemp()
    >>> rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    >>> counts = uc.flow(rates, time="timestamp", watermark="1 minute").window("global", "each row")
    >>> once = {"checkpoint": f"{folder}/c", "trigger": {"once": True}}
    >>> with counts.combine(n=uc.Count()).to_table(f"duckdb:///{folder}/a.db#n", **once) as live:
    ...     live.awaitTermination()
    >>> live.isActive
    False
    """

    def __init__(
        self, query: StreamingQuery, keeper: Keeper, checkpoint: str, far: bool = False, others: Sequence[Keeper] = ()
    ) -> None:
        self.query, self.checkpoint = query, checkpoint
        self._keeper, self._far, self._others = keeper, far, others
        if far:
            keeper.writer.close()

    def arrow(self) -> pa.Table:
        """The rows of the table now, as an Arrow table."""
        return self._read()

    def df(self, spark: SparkSession) -> DataFrame:
        """The rows of the table now, as a DataFrame. It does not change with the table."""
        files = self._writer.files()
        if files is None or any(lacks_file_system(spark, file) for file in files[:1]):
            return dataframe_of(spark, self._read())
        return spark.read.schema(spark_schema(self._writer.layout.schema)).parquet(*map(escaped_name, files))

    def watch(self, rows: int = 20, every: float = 1.0, out: TextIO | None = None) -> None:
        """Show the first rows of the table as it changes, until the query ends or the user interrupts.

        It looks alike in a terminal and in a notebook. An interrupt ends the display and not the query.
        """
        watched(lambda limit: self._read(limit), self.awaitTermination, str(self._writer.name), rows, every, out)

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802
        """Wait for the end of the query, as its own method does."""
        try:
            return wait_for(self.query, timeout)
        finally:
            if not self.query.isActive:
                self._close()

    def processAllAvailable(self) -> None:  # noqa: N802
        """Wait until the table has all rows that are there, as the query's own method does."""
        with own_error_last():
            self.query.processAllAvailable()

    def stop(self) -> None:
        """Stop the query; the table stays as it is."""
        all_hurry([self._keeper, *self._others])
        try:
            self.query.stop()
        finally:
            self._close()

    def __enter__(self) -> LiveTable:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _read(self, limit: int | None = None) -> pa.Table:
        if self._far:
            return self._keeper.read(limit)
        try:
            return self._writer.read(limit)
        finally:
            if not self.query.isActive:
                self._close()

    def _close(self) -> None:
        for keeper in (self._keeper, *self._others):
            keeper.close()

    @property
    def _writer(self) -> Writer:
        return self._keeper.writer

    def __getattr__(self, name: str) -> Any:
        if name == "left_out":
            if self._others:
                return LiveTable(self.query, self._others[0], self.checkpoint)
            raise NoSuchStep("this live table keeps no rows that were left out: give left_out= to to_table(), a table")
        return getattr(self.query, name)

    def __repr__(self) -> str:
        return f"live {self._writer.name}"

    def _repr_html_(self) -> str:
        title = f"{self!r}, whose query {'runs' if self.query.isActive else 'has ended'}"
        return shown_rows(self._read(ROWS + 1), title=title, whole=False).html()


def live_table(
    flow: Flow,
    spark: SparkSession,
    route_of: Callable[[Flow, bool], Route],
    target: str,
    keys: str | Sequence[str] | None,
    options: LiveQuery,
) -> LiveTable:
    """Start a streaming query that keeps the current result of a flow in a table; `Flow.to_table` says how."""
    checkpoint, left_out = options.checkpoint, options.left_out
    far = ".connect." in type(spark).__module__
    place = target_of(target)
    settled, layout = table_flow(flow, keys)
    place.check(layout)
    beside = None if left_out is None else _place_of_left_out(left_out, place, far)
    settled = in_shards(as_stored(settled, spark, checkpoint), checkpoint)
    seed = seed_at_start(settled, options.start, spark, checkpoint)
    settled = started_at(settled, seed)
    route = checked_route(route_of(settled, beside is not None), checkpoint, options.same, seed)
    if isinstance(route, StreamRoute):
        route = replace(route, corrected=True)
    tables = [TableStart.of(settled, place, layout, seed)]
    take: Take = _take
    function = thin_function(FarBatches(tables[0], checkpoint)) if far else None
    if beside is None:
        rows = packed_changes(settled, layout, lambda _: route)
    else:
        # Before the live table, with whose start a copy for readers is made, so that it has both.
        tables.insert(0, TableStart(beside, LAYOUT, None, beside=True))
        rows, take = route.df(), WithLeftOut(layout, keeps_keys(settled, layout))
    endless = wakes(settled.settings, graph_of(settled))
    once = may_differ(settled)
    query, (*others, keeper) = start_tables(spark, rows, tables, take, options, endless, function, once)
    return LiveTable(query, keeper, checkpoint, far, others)


def _place_of_left_out(target: str, of_table: Target, far: bool) -> Target:
    """The place of the table of rows that are left out."""
    place = target_of(target)
    if far:
        raise InvalidArgument(
            "left_out= of to_table() does not run over Spark Connect: use a session of Spark itself, or write "
            "flow.left_out, a stream with a checkpoint of its own"
        )
    if place.name == of_table.name:
        raise InvalidArgument(
            f"left_out= of to_table() names {place.name}, the table of the result: name another table"
        )
    place = place.beside(of_table)
    place.check(LAYOUT)
    return place


def _take(keepers: Sequence[Keeper], packed: DataFrame, batch: int) -> None:
    (keeper,) = keepers
    apply_packed(keeper, packed, batch)


class FarBatches:
    """Takes the batches of a query of Spark Connect, in a process beside the server.

    The program that started the query reads the table from its own process, so nothing stays open between batches.
    """

    def __init__(self, table: TableStart, checkpoint: str) -> None:
        self.table, self.checkpoint = table, checkpoint
        self.keeper: Keeper | None = None

    def __call__(self, packed: DataFrame, batch: int) -> None:
        if self.keeper is None:
            spark = packed.sparkSession
            self.keeper, _ = self.table.keeper(spark, query_id(spark, self.checkpoint), patient=True)
        try:
            apply_packed(self.keeper, packed, batch)
        finally:
            self.keeper.writer.close()


__all__ = ["LiveTable", "live_table"]
