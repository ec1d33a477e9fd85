"""The log of the queries over flows, by the logger "uncombine": their batches, their ends, and rows left out as late.

One listener a session hears of its queries, on the driver alone and in a thread of its own, so `warnings.warn` is not
for it. Python shows the warnings and errors of a logger that nobody has set up on stderr, and leaves out its other
lines. Spark Connect has no such log, except while metrics are received.

Guarded by tests/sparkops/test_progress_log.py and tests/sparkops/test_late_share.py.
"""

from __future__ import annotations

import atexit
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from ..metrics.receivers import RECEIVERS
from .checkpoints.used_seeds import drop_used
from .late_rows import LATE
from .measuring.batch_points import METRICS
from .measuring.far_listener import listen_far
from .naming import parsed
from .progress import Progress, is_batch, progress_of, taken
from .spark_private import await_events, on_progress, session_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGGER = logging.getLogger("uncombine")

_KEPT = 1_000
"""The number of runs whose ends are remembered."""

_OWN_ERROR = re.compile(r"^(?:uncombine\.errors\.(\w+: .*)|(ModuleNotFoundError: a worker of Spark .*))$", re.MULTILINE)


class ProgressLog:
    """The lines of the queries of a process: those of live tables, by the names of their tables, and other ones.

    A query of something else than a flow has none.

    >>> log = ProgressLog()
    >>> log.begin("q", "r", table="table 'totals' of shop.db")
    >>> log.name_of({"id": "q", "runId": "r", "batchId": 7})
    "table 'totals' of shop.db"
    >>> log.name_of({"id": "other", "runId": "s", "batchId": 7})
    """

    def __init__(self) -> None:
        self._tables: dict[str, str] = {}
        """The names of tables by the ids of their queries."""
        self._runs: dict[str, tuple[str, str]] = {}
        """The names of queries in lines and in metrics, by the ids of their runs."""
        self._ended: dict[str, Mapping[str, Any] | None] = {}
        """The last runs that have ended; with the report of the end, if nothing was heard of the run before."""
        self._lock = Lock()

    def begin(self, query: str, run: str, name: str | None = None, table: str | None = None) -> None:
        """A run of a query over a flow has begun: `name` is the query's own, and it is called by that of its table."""
        if table is not None:
            self._tables[query] = table
        short = table or name or query
        with self._lock:
            heard, end = run in self._ended, self._ended.pop(run, None)
            if heard and end is None:
                return  # its batches and its end were heard before the one who started it comes to say so
            METRICS.begin(short)
            self._runs[run] = table or f"the query {short!r}", short
        if end is not None:
            self.end(end)

    def name_of(self, event: Mapping[str, Any]) -> str | None:
        """The name of the query of a batch; None if it is none of a flow."""
        if (table := self._tables.get(event["id"])) is not None:
            return table
        if not any(map(parsed, event.get("observedMetrics", ()))):
            return None
        return f"the query {event.get('name') or event['id']!r}"

    def batch(self, event: Mapping[str, Any]) -> None:
        """Log a batch."""
        drop_used(event)
        name = self.name_of(event)
        if (words := LATE.warning(event, name)) is not None:
            LOGGER.warning(words)
        if name is None:
            return
        short = self._tables.get(event["id"]) or event.get("name") or event["id"]
        self._runs[event["runId"]] = name, short
        progress = taken(event) if is_batch(event) else None
        METRICS.batch(short, event)
        if LOGGER.isEnabledFor(logging.INFO):
            progress = progress or progress_of(event)
            LOGGER.info("%s: %s", name, progress, extra={"progress": progress.to_dict()})
            LOGGER.debug("%s: %s", name, _Details(progress, event))

    def end(self, event: Mapping[str, Any]) -> None:
        """Log the end of a run of a query, and forget the run."""
        run = event["runId"]
        LATE.end(run)
        with self._lock:
            names = self._runs.pop(run, None)
            self._ended[run] = None if names else event
            if len(self._ended) > _KEPT:
                del self._ended[next(iter(self._ended))]
            if names is None:
                return
            name, short = names
            METRICS.end(short, event.get("exception") is not None)
        if (words := event.get("exception")) is None:
            LOGGER.info("%s: the query has ended", name)
        else:
            LOGGER.error("%s: the query has failed: %s", name, own_error(words) or words.partition("\n")[0])


def own_error(words: str) -> str | None:
    r"""The error of this library in the text of an error of Spark; None if it has none.

    >>> own_error("Job aborted: Traceback ...\nuncombine.errors.TableMismatch: table 't' is gone\n\tat ...")
    "TableMismatch: table 't' is gone"
    """
    errors = [one or other for one, other in _OWN_ERROR.findall(words)]
    return errors[-1] if errors else None


@dataclass(frozen=True)
class _Details:
    """The parts of the time of a batch, and how far the query has read its sources, as a text that is made if shown."""

    progress: Progress
    event: Mapping[str, Any]

    def __str__(self) -> str:
        parts = [f"{name} {millis} ms" for name, millis in self.event["durationMs"].items()]
        for name, flow in self.progress.flows.items():
            for number, stage in enumerate(flow.stages, 1):
                times = {"load": stage.load_us, "step": stage.step_us, "save": stage.save_us}
                words = ", ".join(f"{part} {micros / 1000:.0f} ms" for part, micros in times.items())
                parts.append(f"stage {number} of {name}: {words}, {stage.chunks} chunks")
        parts += [f"{source['description']} to {source['endOffset']}" for source in self.event.get("sources", ())]
        return f"batch {self.progress.batch}: {'; '.join(parts)}"


LOG = ProgressLog()
_sessions: dict[str, SparkSession] = {}
_far_sessions: set[str] = set()


def listen(spark: SparkSession) -> None:
    """Log the queries of a session from now on; one of Spark Connect is only listened to for metrics."""
    session = session_id(spark)
    if session is None:
        far = str(spark.session_id)
        if far not in _far_sessions:
            _far_sessions.add(far)
            RECEIVERS.when_on(lambda: listen_far(spark, LOG.batch, LOG.end))
    elif session not in _sessions and on_progress(spark, LOG.batch, LOG.end):
        _sessions[session] = spark


@contextmanager
def shown_lines(handler: logging.Handler) -> Iterator[None]:
    """Give the lines of all queries in the block to a handler, those of its last batches too."""
    level = LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(min(LOGGER.getEffectiveLevel(), logging.INFO))
    try:
        yield
    finally:
        _await_last_batches()
        LOGGER.setLevel(level)
        LOGGER.removeHandler(handler)


@atexit.register
def _await_last_batches() -> None:
    """A program that ends with its query has the lines of its last batch too."""
    for spark in _sessions.values():
        await_events(spark)


__all__ = ["LOG", "ProgressLog", "listen", "own_error", "shown_lines"]
