"""The ways out of a flow over Spark: a DataFrame, a writer of its stream, a table that stays up to date.

Guarded by tests/sparkops/test_stream_writer.py and tests/sparkops/tables/test_live_table.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgument
from ..triggers import Trigger
from .engine import Source, ended_early
from .settings import Settings, check_ingress
from .tuning import LiveQuery, TopicTarget

if TYPE_CHECKING:
    from ..panes.state.seed import Seed


class Outputs:
    """The ways out of a flow over Spark. Those that run it in this process are `Answers`."""

    source: Source[Any]
    settings: Settings

    @property
    def df(self) -> Any:
        """The panes of a flow over Spark, as a DataFrame of Spark. It is streaming if the source is.

        A query of it is Spark's own. `write_stream` also looks at the checkpoint before it starts one.
        """
        check_ingress(self.settings, self.source.streaming)
        return self.source.engine.df(self)

    def to_table(
        self,
        target: str,
        keys: str | Sequence[str] | None = None,
        *,
        checkpoint: str | PathLike[str] | None = None,
        trigger: Mapping[str, Any] | None = None,
        same: Sequence[str] = (),
        start: Seed | str | None = None,
        query_name: str | None = None,
        left_out: str | None = None,
        until: Trigger | str | None = None,
    ) -> Any:
        """Write the result into a table: once for a bounded flow, or again after each batch of a stream.

        A bounded flow writes a new table, all of it or nothing, and returns None. A stream starts a query that keeps
        the current result in the table, and returns it as a live table. Each batch is netted to one change for each
        key. The table takes the changes and the number of the batch in one transaction: a repeated batch changes
        nothing, and a reader never sees half a batch. The table is made when the query first starts. Its columns are
        those of the flow without `diff` and `pane`, and `window_start` and `window_end` in the place of `window`. Rows
        of a grouping that can be shown again are retracted, as before another grouping.

        Parameters
        ----------
        target
            The table, as a URL: "duckdb:path.db#table".
        keys
            The columns that no two rows share; those of the last grouping, and its window, if not given.
        checkpoint
            For a stream: the folder of the query's checkpoint. It belongs to the table: neither goes on without the
            other.
        trigger
            The trigger of the query, as `writeStream.trigger` takes it: {"availableNow": True}, or
            {"processingTime": "10 seconds"}. Without it a batch follows the other. With availableNow the query ends
            when all rows are in the table; a timer of processing time that is due later fires in a later run.
        same
            The names of steps, as `explain()` prints them, that are written otherwise than when the checkpoint was
            written and compute the same: `same=("map 2",)`. Any other change that its state does not survive is refused
            before the query starts.
        start
            A seed, or its folder, with which a query with a new checkpoint begins, as in `write_stream`. The table is
            that of the query or the run that made the seed, as of then, or a copy of it. The new query takes it over:
            from then on the former one is refused.
        query_name
            For a stream: the name of its query in the log, the metrics and Spark's pages; without it the log and the
            metrics take the place of the table.
        left_out
            For a stream: a second table, of the rows that its steps leave out and of those that cannot be read, with
            the columns of `left_out`, of which `row` is JSON, and the number of the `batch` in which each came. It has
            exactly the rows of this query, each once, and may be in the same file or database.
        until
            For a bounded flow over files: the trigger that ends their reading early, as in `run`.

        Returns
        -------
        LiveTable, Seen or None
            For a stream the query, with `.arrow()`, `.df(spark)` and `.watch()`, which read the table, and `.left_out`,
            which has the same methods for the second table. After `with` it is stopped at the end of the block. With
            `until=` the share of the files that the table is of.

        Examples
        --------
        >>> import tempfile, uncombine as uc
        >>> folder = tempfile.mkdtemp()
        >>> rows = [{"ts": 0, "user": "ada", "score": 3}, {"ts": 1, "user": "ada", "score": 4}]
        >>> totals = uc.flow(rows).window("global").combine(by="user", total=uc.Sum("score"))
        >>> totals.to_table(f"duckdb:{folder}/scores.db#totals")

        >>> spark = uc.session()
        >>> rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
        >>> ticks = uc.flow(rates, time="timestamp", watermark="1 minute")
        >>> counts = ticks.window("global", "each row").combine(n=uc.Count())
        >>> live = counts.to_table(
        ...     f"duckdb:{folder}/a.db#n", checkpoint=f"{folder}/c", trigger={"once": True}
        ... )
        >>> live.awaitTermination()
        >>> live.arrow()["n"].to_pylist()
        [10]
        """
        endless = self.source.streaming and self.source.engine.has_streams
        flow, seen = (self, lambda: None) if until is None else ended_early(self, until)
        query = LiveQuery.of(checkpoint, trigger, same, start, endless, query_name=query_name, left_out=left_out)
        live = self.source.engine.to_table(flow, target, keys, query)
        return live if until is None else seen()

    def to_kafka(
        self,
        servers: str | Sequence[str],
        topic: str,
        keys: str | Sequence[str] | None = None,
        *,
        changelog: Any = None,
        checkpoint: str | PathLike[str] | None = None,
        trigger: Mapping[str, Any] | None = None,
        same: Sequence[str] = (),
        start: Seed | str | None = None,
        query_name: str | None = None,
        left_out: str | None = None,
        wait: str = "1 minute",
        options: Mapping[str, str | int | float | bool] | None = None,
    ) -> Any:
        """Write the result into a topic of Kafka: once for a bounded flow, or after each batch of a stream.

        A message has the key columns as JSON as its key, so that a compacted topic keeps the last of each key, and JSON
        as its value. The rows of a batch are netted first. In this process all messages are one transaction. On Spark
        each shard writes its part of a batch in a transaction of its own, with a marker of the batch in the topic
        `<topic>.uncombine`, which is made if it is missing. A shard that has the batch already writes nothing when the
        batch is repeated. So a reader of committed messages gets each shard's batch once, whatever is killed. Not
        promised: that it sees all shards of a batch at once, or the same for readers of uncommitted messages. A bounded
        flow on Spark that fails may have written some shards, and the next call writes all again.

        Parameters
        ----------
        servers
            The servers to begin with, "host:port", several as a list or with commas.
        topic
            The topic, which is there already.
        keys
            The columns that no two rows share; those of the last grouping, and its window, if not given.
        changelog
            The form of values: None for rows that are never retracted; "kafka", the last row of each key, and a null
            for a key that is gone; "debezium", an envelope with the row before and after; "diff", the row with its
            weight; "debezium_flat", "delta", "flink", "flink_upsert", "spark_update" or a format, as `uc.changelog.to`
            has them.
        checkpoint, trigger, same, start, query_name
            For a stream, as in `to_table`. The checkpoint belongs to the topic. A seed's corrections come with the
            first batch.
        left_out
            A topic for the rows that steps leave out, and for what cannot be read, as JSON with the columns of
            `left_out`. They are in the same transactions.
        wait
            How long brokers may be away before a flow fails.
        options
            Options of librdkafka, such as `{"security.protocol": "SASL_SSL", "sasl.password": ...}`. Their values are
            never shown.

        Returns
        -------
        StreamingQuery or None
            For a stream Spark's query.

        Examples
        --------
        >>> import uncombine as uc
        >>> rows = [{"ts": 0, "user": "ada"}]
        >>> totals = uc.flow(rows).window("global").combine(by="user", n=uc.Count())
        >>> totals.to_kafka("host:9092", "totals", left_out="totals")
        Traceback (most recent call last):
            ...
        uncombine.errors.InvalidArgument: left_out= of to_kafka() is 'totals', the ...
        """
        endless = self.source.streaming and self.source.engine.has_streams
        query = LiveQuery.of(checkpoint, trigger, same, start, endless, "to_kafka", query_name)
        target = TopicTarget(
            servers=servers, topic=topic, changelog=changelog, left_out=left_out, wait=wait, options=options
        )
        return self.source.engine.to_kafka(self, target, keys, query)

    @property
    def left_out(self) -> Any:
        """The rows that the steps of a flow over Spark leave out, as a second DataFrame.

        Its columns are `stage` (from 1 on, through all flows of a union or a join), `side` ("left" or "right" in a
        join), `why` ("late", "bad", "unassigned" or "finished"), `row`, which has the columns of the step's input, and
        `watermark`, that of the step from before a late row.
        Messages of a changelog, and rows of files, that cannot be read are there without a step too. A
        DataFrame of its own runs the flow a second time; `foreach_batch` writes both from one query.
        """
        return self.source.engine.left_out(self)

    def foreach_batch(self, function: Callable[[Any, Any, int], None]) -> Any:
        """Write the panes of a stream and the rows that its steps leave out with one query.

        `function(panes, left_out, number)` gets both DataFrames of each micro-batch, and its number. The result is a
        writer of Spark's, as that of `flow.df.writeStream.foreachBatch(...)`: give it the checkpoint, and start it.
        """
        return self.source.engine.foreach_batch(self, function)

    def write_stream(
        self, *, checkpoint: str | PathLike[str], same: Sequence[str] = (), start: Seed | str | None = None
    ) -> Any:
        """A writer of the stream of panes that goes on from a checkpoint only where that is right.

        It is Spark's own writer with the location of the checkpoint: choose a format or `foreachBatch`, and start it.
        If the folder has a checkpoint, its steps are compared with those of the flow now, before anything starts.

        Parameters
        ----------
        checkpoint
            The folder of the checkpoint. It belongs to the flow.
        same
            The names of steps, as `explain()` prints them, that are written otherwise than when the checkpoint was
            written and compute the same: `same=("map 2",)`.
        start
            A seed, or its folder, with which a query with a new checkpoint begins: `uc.checkpoint(...).seed(to=)` or
            `result.seed(to=)`. `uc.Files` with `order=` go on where the seed's query ended; other sources need their
            own option for it, and `seed.positions` are its texts. Give it at each start until each source has had rows;
            from then on the checkpoint has all of it, and the seed is not opened any more.

        >>> import tempfile, uncombine as uc
        >>> spark = uc.session()
        >>> rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
        >>> hours = uc.flow(rates, time="timestamp", watermark="1 minute").window("1 hour")
        >>> stream = hours.combine(n=uc.Count()).write_stream(checkpoint=tempfile.mkdtemp())
        >>> query = stream.format("noop").trigger(once=True).start()
        >>> query.awaitTermination()
        """
        return self.source.engine.write_stream(self, fspath(checkpoint), same, start)

    def seed(
        self,
        history: Any = None,
        *,
        accumulators: Any = None,
        to: str | PathLike[str],
        until: datetime | str | int | None = None,
    ) -> Seed:
        """Compute the state that the flow has after the rows of its past, as a seed from which a stream begins.

        The rows come as one bundle, at the speed of a batch, and the input does not end: windows that the watermark has
        not passed stay open. The seed also has the panes that the past shows. The reader of the seed shows them first:
        a live table in a transaction of its own, any other sink with the first batch.

        Parameters
        ----------
        history
            The rows of the past, as `uc.flow` takes them: files, a table, a DataFrame of Spark. Of a flow with several
            sources a mapping from their names. The rows of the flow itself if not given, which must be bounded. They
            have the columns of the flow's source, or its messages. On Spark, files of the folder that a stream of
            `uc.Files` with `order=` reads are not read again by it.
        accumulators
            The past as stored accumulators, in the place of its rows: a DataFrame of Spark with the keys of the first
            grouping, its windows (`window`, or `window_start` and `window_end`), and for each combiner a column of
            `uc.Accumulator` of the same name.
        to
            A new folder for the seed.
        until
            The event time at which the past ends: later rows of the history are left out. The stream then leaves the
            earlier ones out, with `where()`.

        >>> import tempfile, uncombine as uc
        >>> past = [{"ts": 0, "x": 5}, {"ts": 3_600_000_000, "x": 7}]
        >>> hours = uc.flow(past, watermark="1 minute").window("1 hour").combine(n=uc.Sum("x"))
        >>> seed = hours.seed(to=f"{tempfile.mkdtemp()}/seed")
        >>> then = [uc.Elements([{"ts": 3_600_000_001, "x": 9}]), uc.Watermark(None)]
        >>> hours.run(then, start=seed)["n"].to_pylist()
        [5, 16]
        """
        if accumulators is None:
            return self.source.engine.seed(self, history, until, fspath(to))
        if history is not None or until is not None:
            raise InvalidArgument(
                "seed() takes the past as rows or as accumulators, and until= is for rows: leave "
                f"{'until=' if history is None else 'one of them'} out"
            )
        return self.source.engine.seed_of_accumulators(self, accumulators, fspath(to))


__all__ = ["Outputs"]
