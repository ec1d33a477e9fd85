"""The options with which a flow reads its source, checked against its columns, and those that several flows share.

Guarded by tests/local/test_local_flows.py, tests/sparkops/test_flow.py and tests/flows/test_union.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa

from ..combiners.expressions.expr import Expr
from ..errors import InvalidArgument, TypeMismatch, require_column
from ..panes.grouping.grouping import MAX_FUTURE
from ..panes.parcels import AT
from ..panes.stage import StageInput
from ..panes.watermarks.watermark_strategies import EachBatch, IngressTime, WatermarkStrategy, strategy_of
from ..windows import Span, span
from .event_time import EventTime
from .settle import farthest


@dataclass(frozen=True)
class Settings:
    """The options with which a flow reads its source."""

    time: str
    watermark: WatermarkStrategy | Span | str | None = None
    diff: str | None = None
    processing_time: str | None = None
    replay: bool = False
    close_at_end: bool = False
    wake: bool | None = None
    """False: no batches without data. None: only where a timer can be due. True: wherever `process` is, too."""
    shards: int | None = None
    name: str | None = None
    changelog: str | None = None
    """The format of the messages that the rows come from, with the options that decide their weights."""
    max_future: Span | Any | None = field(default=MAX_FUTURE, kw_only=True)
    """The longest time by which a row may be after the processing time; None means no limit."""
    event_time: EventTime | None = field(default=None, kw_only=True)
    """The computation of the column `time`; None if the source has it."""
    until: int | None = field(default=None, kw_only=True)
    """The event time from which on rows are of another run, in microseconds; None means none."""
    latest: int | None = field(default=None, kw_only=True)
    """The last event time that a row of a history may have, in microseconds; None means no limit."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_future", None if self.max_future is None else span(self.max_future))

    @cached_property
    def strategy(self) -> WatermarkStrategy | None:
        """The strategy that `watermark` names."""
        return None if self.watermark is None else strategy_of(self.watermark)

    @property
    def each_batch(self) -> bool:
        """True if the watermark runs from the beginning to the end of time in each bundle."""
        return isinstance(self.strategy, EachBatch)


def check_settings(settings: Settings, schema: pa.Schema, streaming: bool) -> None:
    """Raise unless the options fit the columns of a source, and each other."""
    strategy, time, processing_time = settings.strategy, settings.time, settings.processing_time
    ingress = isinstance(strategy, IngressTime)
    check_name(settings.name)
    if ingress and settings.event_time is not None:
        raise InvalidArgument("watermark=IngressTime() gives rows their event times: leave the expression in time= out")
    if not ingress:
        require_column(time, schema.names, "time=")
    if isinstance(processing_time, Expr):
        raise InvalidArgument(f"processing_time= takes the name of a column, and not {processing_time!r}: {_REMEDY}")
    for name, what in ((settings.diff, "diff="), (processing_time, "processing_time=")):
        if name is not None:
            require_column(name, schema.names, what)
    if processing_time is not None:
        _check_processing_time(processing_time, schema)
    check_free(schema)
    if strategy is not None:
        strategy.check(schema)
    if streaming and strategy is None:
        raise InvalidArgument("a streaming flow needs watermark=, such as uc.BoundedLag('10 minutes')")


def check_replay(settings: Settings) -> None:
    """Raise unless the options say in what order a replay plays the rows, and by which watermark."""
    if settings.strategy is None or settings.processing_time is None:
        missing = "watermark=" if settings.strategy is None else "processing_time="
        raise InvalidArgument(
            f"replay() needs {missing}, because the panes of a stream depend on it: give it where the flow starts"
        )


def check_ingress(settings: Settings, streaming: bool) -> None:
    """Raise if rows get their event times as they arrive, and do not arrive at any time."""
    if isinstance(settings.strategy, IngressTime) and not (streaming or settings.replay):
        raise InvalidArgument(
            "watermark=IngressTime() needs a stream or a replay: give processing_time= and write .replay() after "
            "uc.flow(...), or use time="
        )


_REMEDY = "let uc.Files read it with schema= and timestamp_parsers=, or cast it in the table or DataFrame"


def check_free(schema: pa.Schema) -> None:
    """Raise if a column has the name of that which carries processing times."""
    if AT in schema.names:
        raise InvalidArgument(f"the library keeps processing times in column {AT!r}: give your column another name")


def check_name(name: object) -> None:
    """Raise unless the value is a valid name of a flow."""
    if name is None:
        return
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or "#" in name:
        raise InvalidArgument(f"name= must be a text without '#' and line breaks, such as 'clicks', but is {name!r}")


def _check_processing_time(name: str, schema: pa.Schema) -> None:
    """Raise unless the column has a type that a processing time can have."""
    kind = schema.field(name).type
    if not pa.types.is_timestamp(kind):
        raise TypeMismatch(f"processing_time= takes a timestamp column, but {name!r} is {kind}: {_REMEDY}")


def check_sources(leaves: Sequence[tuple[Any, Settings]], who: str) -> None:
    """Raise unless flows over these sources can run as one; `leaves` has each source and how it is read."""
    if len({source.engine.has_streams for source, _ in leaves}) > 1:
        raise InvalidArgument(f"{who} takes flows of one engine, and these are local and on Spark: build all on one")
    if leaves[0][0].engine.has_streams and len({source.streaming for source, _ in leaves}) > 1:
        raise InvalidArgument(
            f"{who} takes only streams or only bounded flows: read both with readStream, or both whole"
        )
    strategies: dict[int, Any] = {}
    for source, settings in leaves:
        if strategies.setdefault(id(source), settings.strategy) != settings.strategy:
            raise InvalidArgument(
                f"{who} takes a source with one watermark, and here it has {strategies[id(source)]!r} and "
                f"{settings.strategy!r}: give both flows the same"
            )


def check_kept(rows: StageInput, schema: pa.Schema, flow: str) -> None:
    """Raise if the flow has left out a column that the step after it reads."""
    for column, what in ((rows.time, "event time"), (rows.diff, "weight")):
        if column is not None and column not in schema.names:
            raise InvalidArgument(f"the {what} column {column!r} of {flow} was left out: keep it in select()")


def shared(settings: Sequence[Settings], rows: StageInput, what: str) -> Settings:
    """The options of flows that run as one, which all of them must say alike; `what` is the union or the join."""
    one = settings[0]
    if len({(own.replay, own.close_at_end) for own in settings}) > 1:
        raise InvalidArgument(f"replay() differs between the flows of {what}: write it after all of them, or none")
    if len({own.each_batch for own in settings}) > 1:
        raise InvalidArgument(
            f"watermark='each_batch' is given in one flow of {what} and not in another: give it to all of them, or to "
            "none"
        )
    times = [own.processing_time for own in settings]
    if any(times) and not all(times):
        raise InvalidArgument(
            f"processing_time= is given in one flow of {what} and not in another: give it to all of them, or to none"
        )
    shards = {own.shards for own in settings} - {None}
    if len(shards) > 1:
        raise InvalidArgument(
            f"shards= of uc.Tuning is {sorted(filter(None, shards))} in the flows of {what}: give one number"
        )
    return Settings(
        time=rows.time,
        watermark=EachBatch() if one.each_batch else None,
        diff=rows.diff,
        processing_time=one.processing_time,
        replay=one.replay,
        close_at_end=one.close_at_end,
        wake=next((wake for wake in (False, True) if any(own.wake is wake for own in settings)), None),
        shards=max(filter(None, shards), default=None),
        max_future=farthest([own.max_future for own in settings]),
    )


__all__ = [
    "Settings",
    "check_free",
    "check_ingress",
    "check_kept",
    "check_name",
    "check_replay",
    "check_settings",
    "check_sources",
    "shared",
]
