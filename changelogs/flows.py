"""Flows over rows, or over the messages of a changelog, and the warning about a column that looks like one.

Guarded by tests/changelogs/test_changelogs_in.py and tests/sparkops/test_changelogs.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa

from ..advice import DIFF, NAME_WEIGHTS, uncounted
from ..errors import InvalidArgument
from ..flows.changelog_reading import Reading
from ..flows.engine import Source
from ..flows.event_time import EventTime
from ..flows.flow import Flow
from ..flows.settings import Settings, check_settings
from ..panes.selection import Select, without
from ..panes.upserts.stage import UpsertsStage
from ..panes.upserts.upserts import Upserts
from ..panes.watermarks.watermark_strategies import IngressTime
from .base import Changelog

MessageTypes: TypeAlias = Callable[[pa.Schema], pa.Schema]
"""Gives the types of messages for those that were inferred from files of JSON, where null may be one of them."""

REMEDIES = {
    DIFF: NAME_WEIGHTS,
    "_change_type": "give changelog=uc.changelog.DeltaFeed()",
    "row_kind": "give changelog=uc.changelog.Flink()",
    "op": "give changelog=uc.changelog.Debezium(), or uc.changelog.Ops('op', ...)",
    "__op": "give changelog=uc.changelog.Debezium(keys=..., flat=True)",
}
"""Columns that changelogs have, and what reads them as such."""


@dataclass(frozen=True)
class UnreadSource:
    """A source that is about to be read."""

    schema: pa.Schema
    """The columns of its rows, or of its messages."""
    make: Callable[[Reading | None, EventTime | None], Source[Flow]]
    """Makes the source for a reading of its messages, None for plain rows, and for event times that are computed."""
    strict: bool
    """True if a message that cannot be read raises; otherwise it is a bad row."""


def flow_of(source: Source[Flow], settings: Settings) -> Flow:
    """Build a flow over any source and check its settings against the schema."""
    schema = source.schema
    check_settings(settings, schema, source.streaming)
    if isinstance(settings.strategy, IngressTime) and settings.time not in schema.names:
        schema = schema.append(pa.field(settings.time, pa.timestamp("us", "UTC")))
    return Flow(source=source, settings=settings, source_schema=schema)


def flow_over(source: UnreadSource, settings: Settings, changelog: Changelog | None) -> Flow:
    """A flow over the rows, or over the messages, of a source."""
    if changelog is None:
        warn_of_changes(source.schema.names, settings)
        if settings.event_time is not None:
            settings = replace(settings, event_time=settings.event_time.over(source.schema))
        return _without_arrival(flow_of(source.make(None, settings.event_time), settings))
    reading = reading_of(changelog, source.schema, settings, source.strict)
    return changed_flow(source.make(reading, None), settings, reading)


def _without_arrival(flow: Flow) -> Flow:
    """The flow without its processing times, if its rows have weights: a retraction comes later than its row.

    With them it would not equal the row.
    """
    settings, arrival = flow.settings, flow.settings.processing_time
    if settings.diff is None or arrival in (None, settings.time, settings.diff):
        return flow
    return replace(flow, transforms=(without(flow.schema.names, [arrival]),))


def reading_of(changelog: Any, columns: pa.Schema, settings: Settings, strict: bool) -> Reading:
    """The reading of a source with these columns."""
    if not isinstance(changelog, Changelog):
        raise InvalidArgument(
            f"changelog= takes a format such as uc.changelog.Debezium(), but was given {changelog!r}: name a column of "
            "weights in diff="
        )
    if isinstance(settings.strategy, IngressTime):
        raise InvalidArgument(
            "watermark=IngressTime() gives a retraction another event time than its row has: use the time column of "
            "the rows with changelog="
        )
    reading: Reading = changelog.reading(columns)
    reading = reading.weighted("diff" if settings.diff is None else settings.diff, strict)
    reading = replace(reading, meaning=changelog.meaning)
    if settings.event_time is not None:
        reading = reading.timed(settings.event_time)
    reading(columns.empty_table())  # columns of other types raise now, and not at the first row
    return reading


def changed_flow(source: Source[Flow], settings: Settings, reading: Reading) -> Flow:
    """A flow over the rows of a changelog; each has its weight."""
    keyed, names = reading.upserted, tuple(reading.row.names)
    settings = replace(settings, changelog=reading.meaning)
    if keyed is None:
        flow = flow_of(source, replace(settings, diff=reading.weight))
        columns = (*names, reading.weight)
        return flow if list(columns) == flow.schema.names else replace(flow, transforms=(Select(columns),))
    flow = flow_of(source, replace(settings, diff=None))
    step = Upserts(
        by=keyed.keys,
        row=names,
        order=keyed.order,
        keep_deletes=keyed.keep_deletes,
        mark=keyed.mark,
        time=settings.time,
        diff=reading.weight,
        max_future=settings.max_future,
    )
    stage = UpsertsStage((), step)
    stage.operator(flow.schema)
    return replace(flow, stages=(stage,))


def warn_of_changes(names: list[str], settings: Settings) -> None:
    """Warn of a column that looks like one of a changelog, where the rows are not read as changes."""
    used = {settings.diff, settings.time, settings.processing_time}
    for name, remedy in REMEDIES.items():
        if name in names and settings.diff is None and name not in used:
            warnings.warn(uncounted("the source", name, remedy), stacklevel=4)
            return


__all__ = ["MessageTypes", "UnreadSource", "changed_flow", "flow_of", "flow_over", "reading_of", "warn_of_changes"]
