"""The past of a flow: the same steps over the rows of other sources, played to their end and no further.

Where the past ends and the present begins is the user's to say, by files or by a time. A run over the past leaves the
state with which a run over the present begins.

Guarded by tests/flows/test_histories.py.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from ..errors import InvalidArgument, TypeMismatch, UnknownColumn, nearest
from ..panes.state.seed import SeedStep
from ..windows.times import MAX_TIME, MIN_TIME, timestamp
from .engine import Source
from .flow import Flow
from .flow_steps import leaves_of
from .graph import Graph, Step, graph_of
from .settings import Settings

LOGGER = logging.getLogger("uncombine")


def micros_now() -> int:
    """The processing time of now."""
    return time.time_ns() // 1_000


def bad_words(steps: Iterable[SeedStep]) -> str | None:
    """A sentence about the bad rows of a history, by the steps that it left; None if there are none."""
    bad = sum(piece.counts.bad for step in steps for piece in step.pieces)
    if not bad:
        return None
    return (
        f"{bad:,} row{'s' * (bad > 1)} of the history {'are' if bad > 1 else 'is'} bad and left out: without a usable "
        "time, with one that is more than max_future= after now (max_future=None of uc.flow() takes in any time), or "
        "messages that cannot be read"
    )


def tell_bad(steps: Iterable[SeedStep]) -> None:
    """Tell in the log of the bad rows of a history."""
    if (words := bad_words(steps)) is not None:
        LOGGER.warning(words)


def past_of(flow: Flow, history: Any, until: datetime | str | int | None, now: int = MIN_TIME) -> Flow:
    """The flow over the rows of its past: those of `history`, of each source by its name if there are several.

    A row that is later than the clock, or `now` if that is after it, by more than `max_future` is a bad row, as it is
    for the query that goes on: it would move the watermark to its time, and all later rows would be late.
    """
    clock = max(now, micros_now())
    check_ends_with_step(graph_of(flow))
    rows = _rows_by_source(flow, history)
    made: dict[int, Source[Flow]] = {}
    end = None if until is None else timestamp(until)

    def over(one: Flow) -> Flow:
        ahead = one.settings.max_future
        latest = None if ahead is None else min(clock + int(ahead), MAX_TIME)
        settings = replace(one.settings, replay=True, close_at_end=False, until=end, latest=latest)
        if one.source.inputs:
            source: Source[Flow] = replace(one.source, inputs=tuple(map(over, one.source.inputs)))  # type: ignore[type-var]
            return replace(one, source=source, settings=settings)
        if id(one.source) not in made:
            opened = _opened(one, rows[id(one.source)], settings)
            made[id(one.source)] = _checked(opened, one.source).replayed()
        return replace(one, source=made[id(one.source)], settings=settings)

    return over(flow)


def _opened(one: Flow, rows: Any, settings: Settings) -> Source[Flow]:
    """The source of the rows of the past, those of the flow itself if none were given."""
    source = one.source
    if isinstance(rows, list | tuple) and not rows:
        rows = (source.schema if source.reading is None else source.reading.message_schema).empty_table()
    if rows is not None and one.door is not None:
        return one.door(rows, source, settings)
    endless = source.streaming and source.engine.has_streams
    if rows is not None or endless or not source.has_rows:
        lacks = "those of a stream have no end" if endless else "its source has none"
        raise InvalidArgument(
            f"seed() without a history takes the rows of the flow, and {lacks}: write seed(rows, to=), such as files"
        )
    return source


def check_ends_with_step(graph: Graph) -> None:
    """Raise unless all rows of the result come from a step, whose state says what was shown."""
    if not all(isinstance(feed.origin, Step) for feed in graph.ends):
        raise InvalidArgument(
            "a seed is the state of steps, and rows of this flow reach its end without one: add a step such as "
            "window(...).combine(...) to each part of it"
        )


def _rows_by_source(flow: Flow, history: Any) -> Mapping[int, Any]:
    """The rows that a user gave for each source of a flow, by the identity of the source."""
    names = {id(source): settings.name for source, settings in leaves_of(flow)}
    if len(names) == 1:
        return dict.fromkeys(names, history)
    if None in names.values() or len(set(names.values())) < len(names):
        raise InvalidArgument(
            f"the flow has {len(names)} sources, and the history of each is found by its name: give each uc.flow(...) "
            "a name= of its own"
        )
    listed = [str(name) for name in names.values()]
    words = ", ".join(f"{name!r}: ..." for name in listed)
    if history is None:
        return dict.fromkeys(names)
    if not isinstance(history, Mapping):
        raise InvalidArgument(
            f"the flow has {len(names)} sources, so the history names the rows of each: write {{{words}}} in its place"
        )
    for name in history:
        if name not in listed:
            raise InvalidArgument(
                f"the history names {name!r}, and no source of the flow is called so: {nearest(str(name), listed)}"
            )
    if missing := [name for name in names.values() if name not in history]:
        raise InvalidArgument(f"the history has no rows for the source {missing[0]!r}: write {{{words}}}")
    return {source: history[name] for source, name in names.items()}


def _checked(past: Source[Flow], present: Source[Flow]) -> Source[Flow]:
    """The source of the past, which ends and has the columns of the present."""
    if getattr(past, "script", None) is not None:
        raise InvalidArgument("a history is rows that come at once, and was given as a script: give seed() its rows")
    if past.streaming and past.engine.has_streams:
        raise InvalidArgument(
            f"the history has no end, for it is {past.describe()}: give seed() rows that are there, such as files or a "
            "DataFrame of spark.read"
        )
    for field in present.schema:
        if field.name not in past.schema.names:
            other = nearest(field.name, past.schema.names)
            raise UnknownColumn(f"the history has no column {field.name!r}, which the flow reads: {other}", field.name)
        kind = past.schema.field(field.name).type
        if kind != field.type:
            raise TypeMismatch(
                f"column {field.name!r} is {kind} in the history and {field.type} in the flow: cast it in one of them"
            )
    return past


__all__ = ["bad_words", "check_ends_with_step", "micros_now", "past_of", "tell_bad"]
