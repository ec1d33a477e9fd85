"""The numbers of queries for a meter of OpenTelemetry, and their batches as spans for a tracer.

Guarded by tests/metrics/test_metrics.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from ..errors import LibraryMissing, TypeMismatch
from .instruments import INSTRUMENTS, ROWS_LATENESS, Instrument, Point
from .receivers import BatchSpan, Exporter

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from opentelemetry.trace import Tracer

LATE_ROWS = Instrument(
    "uncombine.rows.late",
    "counter",
    "{row}",
    "Rows after the end of their window, by the upper bound of their lateness in seconds",
    (*ROWS_LATENESS.attributes, "uncombine.lateness"),
)
"""The lateness of rows: a histogram of OpenTelemetry takes values one by one, and these are counted already."""

SPAN = "uncombine.batch"


class MeterNumbers:
    """The instruments of a meter, and the values of now, which the meter asks for."""

    def __init__(self, meter: Meter, tracer: Tracer | None) -> None:
        self.meter, self.tracer = meter, tracer
        self._now: dict[Instrument, dict[tuple[str, ...], Point]] = {}
        self._lock = Lock()
        self._add: dict[Instrument, Callable[..., None]] = {}
        for instrument in (*INSTRUMENTS, LATE_ROWS):
            about: dict[str, Any] = {"unit": instrument.unit, "description": instrument.about}
            if instrument.kind == "gauge":
                meter.create_observable_gauge(instrument.name, [self._observed(instrument)], **about)
            elif instrument.kind == "counter":
                self._add[instrument] = meter.create_counter(instrument.name, **about).add
            elif instrument is not ROWS_LATENESS:
                about["explicit_bucket_boundaries_advisory"] = instrument.bounds
                self._add[instrument] = meter.create_histogram(instrument.name, **about).record

    def take(self, points: Sequence[Point], query: str | None = None) -> None:
        with self._lock:
            if query is not None:
                self._forget(query)
            for point in points:
                if point.instrument.kind == "gauge":
                    self._now.setdefault(point.instrument, {})[point.values] = point
        for point in points:
            instrument = point.instrument
            if instrument.kind == "gauge":
                continue
            if instrument is ROWS_LATENESS:
                for bound, count in zip((*map(str, instrument.bounds), "+Inf"), point.classes, strict=True):
                    if count:
                        self._add[LATE_ROWS](count, {**point.attributes, "uncombine.lateness": bound})
            else:
                self._add[instrument](point.number, point.attributes)

    def _forget(self, query: str) -> None:
        for points in self._now.values():
            for values in [values for values in points if values[0] == query]:
                del points[values]

    def forget_all(self) -> None:
        """Give the meter no values of now any more."""
        with self._lock:
            self._now.clear()

    def span(self, span: BatchSpan) -> None:
        if self.tracer is not None:
            attributes = dict(span.attributes)
            self.tracer.start_span(SPAN, start_time=span.start, attributes=attributes).end(end_time=span.end)

    def _observed(self, instrument: Instrument) -> Callable[[Any], Iterator[Any]]:
        from opentelemetry.metrics import Observation

        def observed(options: Any) -> Iterator[Any]:
            with self._lock:
                points = list(self._now.get(instrument, {}).values())
            for point in points:
                yield Observation(point.number, point.attributes)

        return observed

    def __str__(self) -> str:
        return f"the meter {type(self.meter).__name__}"


def opentelemetry(meter: Meter, *, tracer: Tracer | None = None) -> Exporter:
    """Give a meter of OpenTelemetry the numbers of all queries of this process, until the exporter is stopped.

    They are those of queries over flows, from Spark in this process or by Spark Connect, and of their live tables. A
    number of a query is counted after each of its batches. Runs in this process (`flow.run`) are not counted. A meter
    that raises never stops a query: the log says so once. It needs the extra `opentelemetry`, and the meter decides
    where the numbers go.

    Parameters
    ----------
    meter
        A meter, as `opentelemetry.metrics.get_meter("shop")` gives one.
    tracer
        A tracer, to which each batch of a query is a span `uncombine.batch`; None for no spans. Spark reports a batch
        that is done, so a batch that fails is no span.

    Examples
    --------
    >>> from opentelemetry.sdk.metrics import MeterProvider
    >>> from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    >>> import uncombine as uc
    >>> provider = MeterProvider([InMemoryMetricReader()])
    >>> exporter = uc.metrics.opentelemetry(provider.get_meter("shop"))
    >>> exporter
    metrics for OpenTelemetry
    >>> exporter.stop()
    """
    try:
        from opentelemetry.metrics import Meter as AnyMeter
        from opentelemetry.trace import Tracer as AnyTracer
    except ModuleNotFoundError:
        raise LibraryMissing(
            "uc.metrics.opentelemetry() needs opentelemetry: install it with pip install 'uncombine[opentelemetry]'"
        ) from None
    if not isinstance(meter, AnyMeter):
        raise TypeMismatch(
            f"meter= is a meter of OpenTelemetry, but was given a {type(meter).__name__}: write "
            "opentelemetry.metrics.get_meter('shop'), or get_meter() of your provider"
        )
    if tracer is not None and not isinstance(tracer, AnyTracer):
        raise TypeMismatch(
            f"tracer= is a tracer of OpenTelemetry, but was given a {type(tracer).__name__}: write "
            "opentelemetry.trace.get_tracer('shop'), or get_tracer() of your provider"
        )
    numbers = MeterNumbers(meter, tracer)
    return Exporter(numbers, "metrics for OpenTelemetry", numbers.forget_all)


__all__ = ["MeterNumbers", "opentelemetry"]
