"""A receiver of metrics that keeps all of them, for tests."""

from __future__ import annotations

from collections.abc import Sequence

from uncombine.metrics.instruments import Instrument, Point
from uncombine.metrics.receivers import RECEIVERS, BatchSpan


class KeptMetrics(dict[tuple[Instrument, tuple[str, ...]], float]):
    """The sums and the last values of metrics while a `with` block runs, beside all points and spans."""

    def __init__(self) -> None:
        super().__init__()
        self.points: list[Point] = []
        self.spans: list[BatchSpan] = []

    def take(self, points: Sequence[Point], query: str | None = None) -> None:
        self.points += points
        for point in points:
            at = point.instrument, point.values
            self[at] = point.number + (0 if point.instrument.kind == "gauge" else self.get(at, 0))

    def span(self, span: BatchSpan) -> None:
        self.spans.append(span)

    def count(self, instrument: Instrument) -> int:
        """The number of points of a metric."""
        return sum(point.instrument is instrument for point in self.points)

    def __enter__(self) -> KeptMetrics:
        RECEIVERS.add(self)
        return self

    def __exit__(self, *error: object) -> None:
        RECEIVERS.remove(self)
