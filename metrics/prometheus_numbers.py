"""The numbers of queries for Prometheus, which reads them over HTTP.

Guarded by tests/metrics/test_metrics.py.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from threading import Lock
from typing import TYPE_CHECKING

from ..errors import InvalidArgument, LibraryMissing, TypeMismatch
from .instruments import INSTRUMENTS, Instrument, Point
from .receivers import BatchSpan, Exporter

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric


@dataclass
class Classes:
    """The values of a histogram: the number in each class, and their sum."""

    counts: list[int]
    total: float = 0.0

    def add(self, point: Point) -> None:
        """Count further values."""
        counts = point.classes or self._single(point)
        self.counts = [a + b for a, b in zip(self.counts, counts, strict=True)]
        self.total += point.number

    @staticmethod
    def _single(point: Point) -> list[int]:
        bounds = point.instrument.bounds
        place = bisect_left(bounds, point.number)
        return [int(i == place) for i in range(len(bounds) + 1)]


@dataclass(eq=False)
class PrometheusNumbers:
    """The sums, histograms and values of now, as a collector of prometheus_client reads them."""

    numbers: dict[Instrument, dict[tuple[str, ...], float]] = field(default_factory=dict)
    histograms: dict[Instrument, dict[tuple[str, ...], Classes]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def take(self, points: Sequence[Point], query: str | None = None) -> None:
        with self.lock:
            if query is not None:
                self._forget(query)
            for point in points:
                instrument = point.instrument
                if instrument.kind == "histogram":
                    none = Classes([0] * (len(instrument.bounds) + 1))
                    self.histograms.setdefault(instrument, {}).setdefault(point.values, none).add(point)
                    continue
                numbers = self.numbers.setdefault(instrument, {})
                before = numbers.get(point.values, 0.0) if instrument.kind == "counter" else 0.0
                numbers[point.values] = before + point.number

    def _forget(self, query: str) -> None:
        for instrument, numbers in self.numbers.items():
            if instrument.kind == "gauge":
                for values in [values for values in numbers if values[0] == query]:
                    del numbers[values]

    def span(self, span: BatchSpan) -> None:
        """Prometheus has no spans."""

    def collect(self) -> Iterator[Metric]:
        """The metrics of now."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        with self.lock:
            numbers = {instrument: dict(values) for instrument, values in self.numbers.items()}
            histograms = {
                instrument: {values: (list(one.counts), one.total) for values, one in classes.items()}
                for instrument, classes in self.histograms.items()
            }
        for instrument in INSTRUMENTS:
            if instrument.kind == "histogram":
                histogram = HistogramMetricFamily(instrument.family, instrument.about, labels=instrument.labels)
                names = [*map(str, instrument.bounds), "+Inf"]
                for labels, (counts, total) in histograms.get(instrument, {}).items():
                    histogram.add_metric(labels, list(zip(names, accumulate(counts), strict=True)), total)
                yield histogram
                continue
            kind = CounterMetricFamily if instrument.kind == "counter" else GaugeMetricFamily
            family = kind(instrument.family, instrument.about, labels=instrument.labels)
            for labels, number in numbers.get(instrument, {}).items():
                family.add_metric(labels, number)
            yield family

    def __str__(self) -> str:
        return "the metrics for Prometheus"


def prometheus(port: int, *, host: str = "127.0.0.1") -> Exporter:
    """Serve the numbers of all queries of this process to Prometheus, from now until the exporter is stopped.

    They are those of queries over flows, from Spark in this process or by Spark Connect, and of their live tables. A
    number of a query is counted after each of its batches. Runs in this process (`flow.run`) are not counted. It needs
    the extra `prometheus`.

    Parameters
    ----------
    port
        The port at which Prometheus reads `/metrics`; 0 for one that is free, which the exporter's text has.
    host
        The address of this machine to listen at: only programs on this machine can read there, and `"0.0.0.0"` lets
        others read too. The numbers tell the names of queries, tables and sources.

    Examples
    --------
    >>> from urllib.request import urlopen
    >>> import uncombine as uc
    >>> with uc.metrics.prometheus(port=0) as exporter:
    ...     page = urlopen(str(exporter).split()[-1]).read().decode()
    >>> "# TYPE uncombine_rows_in_total counter" in page
    True
    """
    try:
        from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
    except ModuleNotFoundError:
        raise LibraryMissing(
            "uc.metrics.prometheus() needs prometheus_client: install it with pip install 'uncombine[prometheus]'"
        ) from None
    if not isinstance(port, int) or isinstance(port, bool):
        raise TypeMismatch(f"port= is a number such as 9464, but was given {port!r}")
    numbers, registry = PrometheusNumbers(), CollectorRegistry()
    registry.register(numbers)
    ProcessCollector(registry=registry)  # the start of the program, by which restarts are counted
    try:
        server, thread = start_http_server(port, host, registry)
    except (OSError, OverflowError) as error:
        raise InvalidArgument(
            f"metrics cannot be served at port {port} of {host} ({error}): choose another port, or 0 for a free one"
        ) from error

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return Exporter(numbers, f"metrics for Prometheus at http://{host}:{server.server_port}/metrics", stop)


__all__ = ["PrometheusNumbers", "prometheus"]
