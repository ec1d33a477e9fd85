"""The end of a query that has taken all its rows, and that Spark runs on for timers of processing time.

Guarded by tests/sparkops/test_time_modes.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

EVERY = 0.1
"""The seconds between two looks at a query."""


def end_without_input(query: StreamingQuery, begun: int, hurry: Callable[[], object] = lambda: None) -> Thread:
    """Stop a query, from a thread, after its first batch without input.

    `begun` is the last batch that an earlier run began. Done again it may be without input although there is some.
    """

    def look() -> None:
        with suppress(Exception):  # the error of the query is for the one who waits for its end
            while not query.awaitTermination(EVERY):
                last: Any = query.lastProgress
                if last is not None and int(last["batchId"]) > begun and without_input(last):
                    hurry()
                    query.stop()

    thread = Thread(target=look, name=f"the end of query {query.id}", daemon=True)
    thread.start()
    return thread


def without_input(progress: Mapping[str, Any]) -> bool:
    """True if a batch took nothing from its sources: a batch of files without rows took the files.

    >>> one, two = '{"logOffset": 1}', '{"logOffset": 2}'
    >>> [without_input({"sources": [{"startOffset": one, "endOffset": end}]}) for end in (one, two)]
    [True, False]
    """
    return all(source["startOffset"] == source["endOffset"] for source in progress["sources"])


__all__ = ["end_without_input", "without_input"]
