"""Listens to the queries of a session of Spark Connect, whose reports come from the server.

Guarded by tests/sparkops/measuring/test_far_metrics.py.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming import StreamingQueryListener

from ..progress import fields_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGGER = logging.getLogger("uncombine")

Take = Callable[[Mapping[str, Any]], None]


class FarListener(StreamingQueryListener):
    """Gives reports on in the form that they have without Spark Connect."""

    def __init__(self, take: Take, end: Take) -> None:
        self._take, self._end = take, end

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self._take(plain(json.loads(event.progress.json)))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        self._end({"id": str(event.id), "runId": str(event.runId), "exception": event.exception})


def plain(report: Mapping[str, Any]) -> Mapping[str, Any]:
    """The report of a batch with rows as objects, where Spark Connect has them as values beside their schema.

    >>> row = {"values": [7], "schema": {"fields": [{"name": "rows_in"}]}}
    >>> plain({"observedMetrics": {"m": {"counts": row}}})
    {'observedMetrics': {'m': {'counts': {'rows_in': 7}}}}
    """
    observed = report.get("observedMetrics") or {}
    rows = {metric: fields_of(row) for metric, row in observed.items()}
    inner = {
        metric: {name: fields_of(value) if isinstance(value, Mapping) else value for name, value in row.items()}
        for metric, row in rows.items()
    }
    return {**report, "observedMetrics": inner}


def listen_far(spark: SparkSession, take: Take, end: Take) -> None:
    """Call `take` with each batch of the queries of a session, and `end` with the end of a run, in another thread.

    Spark's thread for it would keep a program from ending, so the listener is removed when the main thread ends.
    """
    listener = FarListener(take, end)
    try:
        spark.streams.addListener(listener)
    except Exception as error:
        LOGGER.warning("no metrics of queries through Spark Connect: the server takes no listener (%s)", error)
        return

    def remove() -> None:
        threading.main_thread().join()
        spark.streams.removeListener(listener)

    threading.Thread(target=remove, name="end of metrics through Spark Connect", daemon=True).start()


__all__ = ["FarListener", "listen_far", "plain"]
