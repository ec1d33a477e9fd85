"""The demands on several flows that a union or a join brings together, and the options that they share.

Guarded by tests/flows/test_union.py and tests/panes/join/test_join_flows.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ..errors import InvalidArgument
from ..panes.watermarks.watermark_strategies import EachBatch
from .settings import Settings
from .settle import Before


def check_sources(leaves: Sequence[tuple[Any, Settings]], who: str) -> None:
    """Raise unless flows over these sources can run as one; `leaves` has each source and how it is read."""
    kinds = {type(source) for source, _ in leaves}
    if len(kinds) > 1:
        raise InvalidArgument(f"{who} takes flows of one engine, and these are local and on Spark: build all on one")
    if leaves[0][0].late_column and len({source.streaming for source, _ in leaves}) > 1:
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


def check_kept(before: Before, schema: pa.Schema, flow: str) -> None:
    """Raise if the flow has left out a column that the step after it reads."""
    for column, what in ((before.time, "event time"), (before.diff, "weight")):
        if column is not None and column not in schema.names:
            raise InvalidArgument(f"the {what} column {column!r} of {flow} was left out: keep it in select()")


def shared(settings: Sequence[Settings], before: Before, what: str) -> Settings:
    """The options of flows that run as one, which all of them must say alike; `what` is the union or the join."""
    one = settings[0]
    for name in ("replay", "close_at_end"):
        if len({getattr(given, name) for given in settings}) > 1:
            raise InvalidArgument(f"{name}= differs between the flows of {what}: give it to all of them, or to none")
    if len({given.each_batch for given in settings}) > 1:
        raise InvalidArgument(
            f"watermark='each_batch' is given in one flow of {what} and not in another: give it to all of them, or to "
            "none"
        )
    times = [given.processing_time for given in settings]
    if any(times) and not all(times):
        raise InvalidArgument(
            f"processing_time= is given in one flow of {what} and not in another: give it to all of them, or to none"
        )
    shards = {given.shards for given in settings} - {None}
    if len(shards) > 1:
        raise InvalidArgument(f"shards= is {sorted(filter(None, shards))} in the flows of {what}: give one number")
    return Settings(
        before.time,
        EachBatch() if one.each_batch else None,
        before.diff,
        processing_time=one.processing_time,
        replay=one.replay,
        close_at_end=one.close_at_end,
        wake=next((wake for wake in (False, True) if any(given.wake is wake for given in settings)), None),
        shards=max(filter(None, shards), default=None),
    )


__all__ = ["check_kept", "check_sources", "shared"]
