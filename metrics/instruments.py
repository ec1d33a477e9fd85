"""The metrics of a query, by the names that OpenTelemetry has for them, and the names that Prometheus makes of these.

A name has dots, and a unit beside it; an attribute is of the same namespace. Prometheus has underscores, the unit and,
for a sum, `total` at the end, as OpenTelemetry's own translation does it, so that a board of Prometheus reads both.

Guarded by tests/metrics/test_metrics.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]

_UNITS = {"s": "seconds", "By": "bytes"}


@dataclass(frozen=True)
class Instrument:
    """A metric: its name, kind, unit, meaning and the names of its attributes.

    >>> SIZE.name, SIZE.prometheus, ROWS_IN.prometheus, WATERMARK_LAG.prometheus
    ('uncombine.state.size', 'uncombine_state_size_bytes', 'uncombine_rows_in_total', 'uncombine_watermark_lag_seconds')
    >>> ROWS_IN.labels
    ('uncombine_query', 'uncombine_flow', 'uncombine_stage')
    """

    name: str
    kind: Kind
    unit: str
    about: str
    attributes: tuple[str, ...]
    bounds: tuple[float, ...] = ()
    """The upper bounds of the classes of a histogram, each of which is part of its class."""

    @property
    def family(self) -> str:
        """The name in Prometheus, without the ending of a sum."""
        parts = [self.name.replace(".", "_"), _UNITS.get(self.unit, "")]
        return "_".join(filter(None, parts))

    @property
    def prometheus(self) -> str:
        """The name in Prometheus."""
        return f"{self.family}_total" if self.kind == "counter" else self.family

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the attributes in Prometheus."""
        return tuple(name.replace(".", "_") for name in self.attributes)


@dataclass(frozen=True)
class Point:
    """A number for a metric: what is added to a sum, a value of now, or a single value of a histogram.

    >>> Point(ROWS_IN, ("clicks", "flow", "1"), 7).attributes["uncombine.stage"]
    '1'
    """

    instrument: Instrument
    values: tuple[str, ...]
    """The values of the attributes, in their order."""
    number: float
    """The number; of several values of a histogram their sum."""
    classes: Sequence[int] = ()
    """The numbers of values in the classes of a histogram; none for a single value."""

    @property
    def attributes(self) -> dict[str, str]:
        """The values of the attributes by their names."""
        return dict(zip(self.instrument.attributes, self.values, strict=True))


QUERY = ("uncombine.query",)
FLOW = (*QUERY, "uncombine.flow")
STAGE = (*FLOW, "uncombine.stage")
TRIGGER = (*STAGE, "uncombine.trigger")
SOURCE = (*STAGE, "uncombine.input", "uncombine.source")

TABLE = (*QUERY, "uncombine.table")

SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)

LATENESS_BOUNDS = (1.0, 10.0, 60.0, 600.0, 3600.0, 21600.0, 86400.0, 604800.0)

RUNNING = Instrument("uncombine.query.running", "gauge", "{query}", "1 while the query runs, 0 after its end", QUERY)
FAILURES = Instrument("uncombine.query.failures", "counter", "{failure}", "Runs of the query that failed", QUERY)
BATCH_DURATION = Instrument(
    "uncombine.batch.duration", "histogram", "s", "Duration of the batches, which Spark calls triggers", QUERY, SECONDS
)
BATCH_TIME = Instrument(
    "uncombine.batch.time",
    "counter",
    "s",
    "Time of the batches by the part that Spark spent it on",
    (*QUERY, "uncombine.part"),
)
BATCH_END = Instrument("uncombine.batch.end.timestamp", "gauge", "s", "End of the last batch, in Unix time", QUERY)
COMMIT_TIME = Instrument(
    "uncombine.state.commit.time", "counter", "s", "Time in which Spark committed state, summed over tasks", QUERY
)
ROWS_IN = Instrument("uncombine.rows.in", "counter", "{row}", "Rows that reached the stage", STAGE)
ROWS_UNCOMBINED = Instrument(
    "uncombine.rows.uncombined", "counter", "{row}", "Rows that reached the stage one by one", STAGE
)
ROWS_LEFT_OUT = Instrument(
    "uncombine.rows.left_out", "counter", "{row}", "Rows without a result", (*STAGE, "uncombine.reason")
)
ROWS_LATENESS = Instrument(
    "uncombine.rows.lateness",
    "histogram",
    "s",
    "How far the watermark had passed the end of a row's window, of the rows that came after it",
    STAGE,
    LATENESS_BOUNDS,
)
FILES_SKIPPED = Instrument("uncombine.files.skipped", "counter", "{file}", "Files that could not be read", FLOW)
PANES_SHOWN = Instrument(
    "uncombine.panes.shown", "counter", "{pane}", "Panes that were shown", (*TRIGGER, "uncombine.timing")
)
PANES_RETRACTED = Instrument(
    "uncombine.panes.retracted", "counter", "{pane}", "Panes that were withdrawn: corrections", TRIGGER
)
STAGE_TIME = Instrument(
    "uncombine.stage.time",
    "counter",
    "s",
    "Time of the stage by phase: load, step, save; summed over tasks",
    (*TRIGGER, "uncombine.phase"),
)
WINDOWS = Instrument("uncombine.state.windows", "gauge", "{window}", "Windows, or other entries, in the state", STAGE)
SIZE = Instrument("uncombine.state.size", "gauge", "By", "Size of the state", STAGE)
CHUNKS = Instrument("uncombine.state.chunks", "gauge", "{chunk}", "Chunks of the state", STAGE)
WATERMARK = Instrument("uncombine.watermark.timestamp", "gauge", "s", "The watermark, in Unix time", STAGE)
LATEST = Instrument(
    "uncombine.latest.timestamp", "gauge", "s", "The latest event time that a source has seen, in Unix time", STAGE
)
WATERMARK_LAG = Instrument(
    "uncombine.watermark.lag", "gauge", "s", "From the watermark to the latest event time seen", STAGE
)
CLOCK_LAG = Instrument("uncombine.watermark.clock_lag", "gauge", "s", "From the watermark to processing time", STAGE)
SOURCE_TIME = Instrument(
    "uncombine.source.timestamp", "gauge", "s", "The watermark of the source, in Unix time", SOURCE
)
SOURCE_LAG = Instrument(
    "uncombine.source.lag", "gauge", "s", "From the watermark of the source to the latest event time of all", SOURCE
)
SOURCE_IDLE = Instrument(
    "uncombine.source.idle", "gauge", "{source}", "1 if the source is idle and holds no watermark", SOURCE
)
TABLE_ROWS = Instrument("uncombine.table.rows", "counter", "{row}", "Changes of rows that the live table took", TABLE)
TABLE_DURATION = Instrument(
    "uncombine.table.duration",
    "histogram",
    "s",
    "Time in which the live table took a batch, with waiting for its database",
    TABLE,
    SECONDS,
)

INSTRUMENTS = tuple(value for value in globals().values() if isinstance(value, Instrument))
"""All metrics, in their order."""

__all__ = ["INSTRUMENTS", "Instrument", "Kind", "Point"]
