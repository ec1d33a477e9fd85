"""The end of a query: the wait for it, and that of one which has all its rows while Spark runs on for timers.

Guarded by tests/sparkops/test_time_modes.py and tests/sparkops/tables/test_live_table.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING, Any

from ..tables.interrupts import waited
from .progress_log import own_error

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


def wait_for(query: StreamingQuery, seconds: float | None) -> bool | None:
    """Wait for the end of a query as its own method does, with the library's error last, and one trace at Ctrl-C."""
    with own_error_last():
        return waited(query.awaitTermination, seconds)


@contextmanager
def own_error_last() -> Iterator[None]:
    """Note the library's own error on one of Spark, whose text ends with a plan, so that a traceback ends with it."""
    try:
        yield
    except Exception as error:
        if own := own_error(str(error)):
            error.add_note(own)
        raise


def without_input(progress: Mapping[str, Any]) -> bool:
    """True if a batch took nothing from its sources: a batch of files without rows took the files.

    >>> one, two = '{"logOffset": 1}', '{"logOffset": 2}'
    >>> [without_input({"sources": [{"startOffset": one, "endOffset": end}]}) for end in (one, two)]
    [True, False]
    """
    return all(source["startOffset"] == source["endOffset"] for source in progress["sources"])


__all__ = ["end_without_input", "own_error_last", "wait_for", "without_input"]
