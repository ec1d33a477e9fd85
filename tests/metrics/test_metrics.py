"""Metrics on their way out, read back by Prometheus' own parser and by OpenTelemetry's own reader."""

from __future__ import annotations

import builtins
import logging
import random
import re
from collections import Counter
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from opentelemetry.metrics import NoOpMeter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families

import uncombine as uc
from uncombine.errors import InvalidArgument, LibraryMissing, TypeMismatch
from uncombine.metrics import instruments as of
from uncombine.metrics.instruments import INSTRUMENTS, Instrument, Point
from uncombine.metrics.receivers import RECEIVERS, BatchSpan, Exporter

Labels = tuple[tuple[str, str], ...]


def read(exporter: Exporter) -> dict[tuple[str, Labels], float]:
    """All samples that Prometheus would read."""
    page = urlopen(str(exporter).split()[-1], timeout=10).read().decode()
    samples = (sample for family in text_string_to_metric_families(page) for sample in family.samples)
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in samples}


def points(reader: InMemoryMetricReader) -> dict[tuple[str, Labels], Any]:
    """All points that a reader of OpenTelemetry gets, with their units checked."""
    units = {instrument.name: instrument.unit for instrument in INSTRUMENTS} | {"uncombine.rows.late": "{row}"}
    data, found = reader.get_metrics_data(), {}
    for resource in data.resource_metrics if data is not None else ():
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                assert metric.unit == units[metric.name]
                for point in metric.data.data_points:
                    found[metric.name, tuple(sorted((point.attributes or {}).items()))] = point
    return found


def drawn(draw: random.Random) -> Point:
    instrument = draw.choice(INSTRUMENTS)
    values = tuple(draw.choice(["q", 'a "b"\n\\', "1", ""]) for _ in instrument.attributes)
    if instrument is of.ROWS_LATENESS:
        return Point(instrument, values, draw.randrange(100), [draw.randrange(5) for _ in range(9)])
    return Point(instrument, values, draw.choice([draw.randrange(10), draw.random() * 100]))


def labels(names: tuple[str, ...], values: tuple[str, ...], **other: str) -> Labels:
    return tuple(sorted({**dict(zip(names, values, strict=True)), **other}.items()))


@pytest.mark.parametrize("seed", range(20))
def test_both_ways_out_have_the_same_sums_and_values_of_now(seed: int) -> None:
    draw, reader = random.Random(seed), InMemoryMetricReader()
    meter = MeterProvider([reader]).get_meter("test")
    sent: list[Point] = []
    with uc.metrics.prometheus(0) as exporter, uc.metrics.opentelemetry(meter):
        for _ in range(30):
            some = [drawn(draw) for _ in range(draw.randrange(8))]
            query = draw.choice([None, "q"])
            RECEIVERS.take(some, query)
            if query is not None:  # its values of now take the place of those before
                sent = [p for p in sent if p.instrument.kind != "gauge" or p.values[0] != query]
            sent += some
        samples, otel = read(exporter), points(reader)
    want: dict[tuple[Instrument, tuple[str, ...]], float] = {}
    for point in sent:
        at = point.instrument, point.values
        before = want.get(at, 0) if point.instrument.kind != "gauge" else 0
        want[at] = before + point.number
    seen = 0
    for (instrument, values), number in want.items():
        here, there = labels(instrument.labels, values), labels(instrument.attributes, values)
        name = f"{instrument.prometheus}_sum" if instrument.kind == "histogram" else instrument.prometheus
        assert samples[name, here] == pytest.approx(number)
        mine = [p for p in sent if p.instrument is instrument and p.values == values]
        if instrument.kind == "histogram":
            counts = Counter[float]()
            for point in mine:
                for place, bound in enumerate([*instrument.bounds, float("inf")]):
                    single = bound >= point.number > ([float("-inf"), *instrument.bounds][place])
                    counts[bound] += point.classes[place] if point.classes else int(single)
            total = 0
            for bound in [*instrument.bounds, float("inf")]:
                total += counts[bound]
                le = "+Inf" if bound == float("inf") else str(bound)
                key = (f"{instrument.prometheus}_bucket", labels(instrument.labels, values, le=le))
                assert samples[key] == total
                if instrument is of.ROWS_LATENESS and counts[bound]:
                    late = labels(instrument.attributes, values, **{"uncombine.lateness": le})
                    assert otel["uncombine.rows.late", late].value == counts[bound]
            if instrument is not of.ROWS_LATENESS:
                point = otel[instrument.name, there]
                assert isinstance(point, HistogramDataPoint)
                assert (point.count, point.sum) == (total, pytest.approx(number))
                assert list(point.bucket_counts) == [counts[b] for b in [*instrument.bounds, float("inf")]]
        else:
            point = otel[instrument.name, there]
            assert isinstance(point, NumberDataPoint)
            assert point.value == pytest.approx(number)
        seen += 1
    gauges = sum(instrument.kind == "gauge" for instrument, _ in want)
    assert gauges == sum(name in {i.prometheus for i in INSTRUMENTS if i.kind == "gauge"} for name, _ in samples)
    assert seen > 20


def test_names_are_those_of_the_conventions() -> None:
    assert len({instrument.name for instrument in INSTRUMENTS}) == len(INSTRUMENTS)
    names = {instrument.name for instrument in INSTRUMENTS}
    for instrument in INSTRUMENTS:
        assert re.fullmatch(r"uncombine(\.[a-z]+(_[a-z]+)*)+", instrument.name)
        assert not any(other.startswith(f"{instrument.name}.") for other in names)  # no name is also a namespace
        assert re.fullmatch(r"s|By|\{[a-z]+\}", instrument.unit)
        assert all(name.startswith("uncombine.") for name in instrument.attributes)
        assert instrument.prometheus.endswith("_total") == (instrument.kind == "counter")
        assert ("_seconds" in instrument.prometheus) == (instrument.unit == "s")
        assert ("_bytes" in instrument.prometheus) == (instrument.unit == "By")


class Raising(NoOpMeter):
    """A meter whose instruments raise."""

    def create_counter(self, name: str, unit: str = "", description: str = "") -> Any:
        class Broken:
            def add(self, *arguments: object) -> None:
                raise OSError("the collector is away")

        return Broken()


def test_a_meter_that_raises_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    rows = Point(of.ROWS_IN, ("q", "f", "1"), 7)
    with (
        caplog.at_level(logging.WARNING, "uncombine"),
        uc.metrics.opentelemetry(Raising("broken")),
        uc.metrics.prometheus(0) as exporter,
    ):
        for _ in range(3):
            RECEIVERS.take([rows])
            RECEIVERS.span(BatchSpan(0, 1))
        samples = read(exporter)
    assert caplog.messages == [
        "metrics are missing: the meter Raising raised OSError: the collector is away; queries go on, and this is said "
        "once"
    ]
    assert samples["uncombine_rows_in_total", labels(of.ROWS_IN.labels, rows.values)] == 21


def test_a_batch_is_a_span() -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    with uc.metrics.opentelemetry(NoOpMeter("none"), tracer=provider.get_tracer("test")):
        RECEIVERS.span(BatchSpan(1_000, 5_000, {"uncombine.query": "q", "uncombine.batch": 7}))
    [span] = spans.get_finished_spans()
    assert (span.name, span.start_time, span.end_time, span.parent) == ("uncombine.batch", 1_000, 5_000, None)
    assert dict(span.attributes or {}) == {"uncombine.query": "q", "uncombine.batch": 7}


def test_what_is_stopped_is_told_nothing_more() -> None:
    reader = InMemoryMetricReader()
    exporter = uc.metrics.opentelemetry(MeterProvider([reader]).get_meter("test"))
    RECEIVERS.take([Point(of.SIZE, ("q", "f", "1"), 7), Point(of.ROWS_IN, ("q", "f", "1"), 7)])
    exporter.stop()
    exporter.stop()
    RECEIVERS.take([Point(of.SIZE, ("q", "f", "1"), 8), Point(of.ROWS_IN, ("q", "f", "1"), 7)])
    assert {name: point.value for (name, _), point in points(reader).items()} == {"uncombine.rows.in": 7}
    assert str(exporter) == "metrics for OpenTelemetry, stopped"
    page = uc.metrics.prometheus(0)
    url = str(page).split()[-1]
    page.stop()
    with pytest.raises(URLError):
        urlopen(url, timeout=5)
    assert not RECEIVERS.on


def test_wrong_arguments_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with uc.metrics.prometheus(0) as exporter:
        port = int(re.findall(r":(\d+)/", str(exporter))[0])
        with pytest.raises(InvalidArgument, match=f"metrics cannot be served at port {port} of 127.0.0.1 .* choose"):
            uc.metrics.prometheus(port)
    with pytest.raises(InvalidArgument, match="cannot be served at port 99999 of"):
        uc.metrics.prometheus(99_999)
    with pytest.raises(TypeMismatch, match="port= is a number such as 9464, but was given '9464'"):
        uc.metrics.prometheus("9464")  # type: ignore[arg-type]
    with pytest.raises(TypeMismatch, match=r"given a MeterProvider: write opentelemetry\.metrics\.get_meter"):
        uc.metrics.opentelemetry(MeterProvider())  # type: ignore[arg-type]
    with pytest.raises(TypeMismatch, match="tracer= is a tracer of OpenTelemetry, but was given a TracerProvider"):
        uc.metrics.opentelemetry(NoOpMeter("x"), tracer=TracerProvider())  # type: ignore[arg-type]
    assert not RECEIVERS.on


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *arguments: Any, **options: Any) -> Any:
        if name.split(".")[0] in ("opentelemetry", "prometheus_client"):
            raise ModuleNotFoundError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", missing)


@pytest.mark.usefixtures("without")
def test_without_an_extra_the_remedy_is_named() -> None:
    with pytest.raises(LibraryMissing, match=r"install it with pip install 'uncombine\[prometheus\]'"):
        uc.metrics.prometheus(0)
    with pytest.raises(LibraryMissing, match=r"install it with pip install 'uncombine\[opentelemetry\]'"):
        uc.metrics.opentelemetry(NoOpMeter("x"))
