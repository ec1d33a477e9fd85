"""Those who receive the numbers of queries, none of which can stop a query.

Guarded by tests/metrics/test_metrics.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from .instruments import Point

LOGGER = logging.getLogger("uncombine")


@dataclass(frozen=True)
class BatchSpan:
    """A batch of a query as a span of a trace: its times in nanoseconds of Unix time, and what is said of it."""

    start: int
    end: int
    attributes: Mapping[str, str | int | float] = field(default_factory=dict)


class Receiver(Protocol):
    """Receives the numbers of queries."""

    def take(self, points: Sequence[Point], query: str | None = None) -> None:
        """Take some numbers: further ones of sums and histograms, and values of now.

        If they are those of a batch of a query, its values of now take the place of those that it had.
        """

    def span(self, span: BatchSpan) -> None:
        """Take a batch as a span."""


class Receivers:
    """The receivers of a process, in the order in which they came.

    >>> receivers = Receivers()
    >>> receivers.when_on(lambda: print("somebody listens"))
    >>> receivers.on
    False
    """

    def __init__(self) -> None:
        self._receivers: list[Receiver] = []
        self._failed: set[int] = set()
        self._waiting: list[Callable[[], object]] = []
        self._lock = Lock()

    @property
    def on(self) -> bool:
        """True if somebody receives numbers."""
        return bool(self._receivers)

    def add(self, receiver: Receiver) -> None:
        """Send all numbers from now on to this receiver too."""
        with self._lock:
            self._receivers.append(receiver)
            waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()

    def remove(self, receiver: Receiver) -> None:
        """Send nothing more to this receiver."""
        with self._lock:
            self._receivers = [one for one in self._receivers if one is not receiver]
            self._failed.discard(id(receiver))

    def when_on(self, call: Callable[[], object]) -> None:
        """Call this when somebody receives numbers: now, or when the first receiver comes."""
        with self._lock:
            if not self._receivers:
                self._waiting.append(call)
                return
        call()

    def take(self, points: Sequence[Point], query: str | None = None) -> None:
        """Send numbers; with the name of a query its values of now take the place of those that it had."""
        self._send(lambda receiver: receiver.take(points, query))

    def span(self, span: BatchSpan) -> None:
        """Send a batch as a span."""
        self._send(lambda receiver: receiver.span(span))

    def _send(self, send: Callable[[Receiver], None]) -> None:
        """Send to all, of which none hinders the others; a failing one is told of once."""
        for receiver in self._receivers:
            try:
                send(receiver)
            except Exception as error:
                if id(receiver) not in self._failed:
                    self._failed.add(id(receiver))
                    LOGGER.warning(
                        "metrics are missing: %s raised %s: %s; queries go on, and this is said once",
                        receiver,
                        type(error).__name__,
                        error,
                    )


RECEIVERS = Receivers()
"""The receivers of this process."""


class Exporter:
    """Numbers of queries on their way out, until it is stopped; also the end of a `with` block stops it.

    `uc.metrics.prometheus` and `uc.metrics.opentelemetry` make it.

    >>> import uncombine as uc
    >>> with uc.metrics.prometheus(port=0) as exporter:
    ...     print(exporter)  # doctest: +ELLIPSIS
    metrics for Prometheus at http://127.0.0.1:.../metrics
    """

    def __init__(self, receiver: Receiver, words: str, stop: Callable[[], object]) -> None:
        self._receiver, self._words, self._stop = receiver, words, stop
        self._stopped = False
        RECEIVERS.add(receiver)

    def stop(self) -> None:
        """Send nothing more."""
        if not self._stopped:
            self._stopped = True
            RECEIVERS.remove(self._receiver)
            self._stop()

    def __enter__(self) -> Exporter:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"{self._words}, stopped" if self._stopped else self._words


__all__ = ["RECEIVERS", "BatchSpan", "Exporter", "Receiver", "Receivers"]
