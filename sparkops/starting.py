"""The start of a streaming query, once more if Spark's Python process on the driver has come too late.

Spark starts this process while it plans the first batch of a query with state, and gives it 10 seconds to connect,
which no setting changes. Nothing has run then, so the query can start again: its first batch is the same.

Guarded by tests/sparkops/test_starting.py.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from .progress_log import LOG
from .spark_private import has_jobs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

    from ..flows.tuning import LiveQuery

LOGGER = logging.getLogger("uncombine")

TOO_LATE = "Python worker failed to connect back"
"""The words of Spark's error."""

_INTERRUPTIONS = (
    "java.lang.InterruptedException",
    "java.io.InterruptedIOException",
    "java.nio.channels.ClosedByInterruptException",
)
_CALLING = "py4j.protocol.Py4JJavaError: An error occurred while calling a batch"
"""The words by which Spark knows that a function of batches was interrupted, before the name of the interruption."""

_LONGEST_HEAD = 300
"""The most signs of an error that Spark's expression has to take."""

LONGEST, EVERY = 60.0, 0.05
"""The seconds for which a start waits at most to see that its process has connected, and between two looks."""


def started(
    start: Callable[[], StreamingQuery],
    begun: Callable[[], bool] = lambda: False,
    words: str = "a query starts",
    table: str | None = None,
) -> StreamingQuery:
    """Start a query, once more if its process on the driver came too late; `begun` may say that a batch has begun.

    `table` is the name by which the log and the metrics call a query that keeps a table.

    The log says so in these words, since a first batch takes long and shows nothing. The function comes back when the
    first batch has tasks, or the query waits for data. A query is not tried again over Spark Connect, where the process
    is the server's, nor if the process of a later start, or of a task, comes too late.
    """
    LOGGER.info("%s: waiting for its first batch, for which Spark starts Python processes", words)
    query = start()
    if ".connect." not in type(query).__module__ and _too_late(query, begun):
        query = start()
    LOG.begin(str(query.id), str(query.runId), query.name, table)
    return query


def batch_writer(packed: DataFrame, function: Callable[..., Any], options: LiveQuery) -> DataStreamWriter:
    """A writer of a query that gives a function its batches, with the options of a user."""
    writer = packed.writeStream.foreachBatch(function).option("checkpointLocation", options.checkpoint)
    if options.query_name is not None:
        writer = writer.queryName(options.query_name)
    return writer.trigger(**options.trigger) if options.trigger else writer


class Interrupted(RuntimeError):
    """A batch ended because its query is being stopped."""


def _is_no_stop(record: logging.LogRecord) -> bool:
    """False for what Py4J logs, as an error, of a batch that was interrupted by a stop."""
    return not (record.exc_info and isinstance(record.exc_info[1], Interrupted))


for _name in ("py4j.clientserver", "py4j.java_gateway"):
    logging.getLogger(_name).addFilter(_is_no_stop)


class BatchFunction:
    """A function of batches that knows if it was called, and is short about it when the query is stopped meanwhile.

    Spark looks for an interruption in the text of its error, with an expression that takes a frame for each sign: over
    the trace of Java its stack overflows, and a thousand lines of it would be printed at each stop.

    >>> function = BatchFunction(print)
    >>> function("rows", 1), function.called
    rows 1
    (None, True)
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.called = function, False

    def __call__(self, *batch: Any) -> Any:
        self.called = True
        try:
            return self.function(*batch)
        except Exception as error:
            head = str(error).partition("\n\tat ")[0][-_LONGEST_HEAD:]  # without the trace of Java and its causes
            if any(f": {name}" in head for name in _INTERRUPTIONS):
                raise Interrupted(f"{_CALLING}: {head}") from None
            raise


def _too_late(query: StreamingQuery, begun: Callable[[], bool]) -> bool:
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        try:
            if query.awaitTermination(EVERY):
                return False
        except StreamingQueryException as error:  # it is raised again for the one who waits for the end
            return TOO_LATE in str(error)
        if begun() or _runs(query):
            return False
    return False


def _runs(query: StreamingQuery) -> bool:
    """True if the process is no longer needed: there are tasks of a batch, a batch is done, or no data are there."""
    if query.lastProgress is not None or str(query.status["message"]).startswith("Waiting for"):
        return True
    spark = SparkSession.getActiveSession()
    return spark is not None and has_jobs(spark, str(query.runId))


__all__ = ["BatchFunction", "batch_writer", "started"]
