"""The inputs for which scripts are drawn: the sources of a flow, or one source with the columns of a schema.

Guarded by tests/testing/test_testing.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..errors import InvalidArgument, TypeMismatch, require_column
from ..flows.flow import Flow
from ..flows.graph import Graph, graph_of
from ..panes.grouping.stage import GroupingStage
from ..panes.join.stage import JoinStage
from ..panes.rows.stage import RowStage
from ..panes.watermarks.watermark_strategies import IngressTime, ProcessingTime, WatermarkStrategy
from ..windows import span, time_text
from ..windows.spans import UNITS
from .edges import Edges, edges_of, spans_of

SHORTEST = span("1 minute")
"""The length of time around which rows lie if a flow names none."""

_STEPS = {"s": UNITS["second"], "ms": UNITS["millisecond"]}
"""The microseconds of the units of time that are longer."""


@dataclass(frozen=True)
class Input:
    """A source, as scripts need it."""

    name: str | None
    schema: pa.Schema
    """The columns of its rows in a script."""
    time: str
    diff: str | None = None
    processing_time: str | None = None
    strategy: WatermarkStrategy | None = None

    @property
    def timed(self) -> bool:
        """True if each row needs a processing time."""
        return self.processing_time is not None or isinstance(self.strategy, IngressTime | ProcessingTime)

    def text(self, name: str, time: int) -> str:
        """The last time that is not after this one and that the column of this name can hold, as text."""
        kind = self.schema.field(name).type if name in self.schema.names else None
        if kind is not None and pa.types.is_date(kind):
            return time_text(time)[:10]
        step = _STEPS.get(getattr(kind, "unit", "us"), 1)
        return time_text(time // step * step)

    @property
    def lag(self) -> int:
        """The length of time by which the watermark of the strategy is less than the latest event time."""
        return int(getattr(self.strategy, "lag", 0))

    @property
    def user(self) -> list[str]:
        """The columns whose values are drawn."""
        own = {self.time, self.diff, self.processing_time}
        return [name for name in self.schema.names if name not in own]


@dataclass(frozen=True)
class ScriptInputs:
    """The inputs of scripts, the columns that are keys, and the lengths of time that matter."""

    inputs: tuple[Input, ...]
    keys: frozenset[str]
    lengths: tuple[int, ...]
    """In microseconds, the shortest first."""
    edges: Edges


def script_inputs(source: pa.Schema | Flow, time: str, diff: str | None) -> ScriptInputs:
    """Read a flow, or a schema with the names of its columns of event time and weights."""
    if isinstance(source, Flow):
        graph = graph_of(source)
        return ScriptInputs(
            inputs=tuple(inputs_of(graph)), keys=frozenset(_keys(graph)), lengths=_lengths(graph), edges=edges_of(graph)
        )
    if not isinstance(source, pa.Schema):
        raise InvalidArgument(f"scripts are drawn for an Arrow schema or a flow, not for {source!r}")
    require_column(time, source.names, "time=")
    if not (pa.types.is_timestamp(source.field(time).type) or pa.types.is_date(source.field(time).type)):
        raise TypeMismatch(f"time= takes a timestamp column, but {time!r} is {source.field(time).type}: cast it")
    if diff is not None:
        require_column(diff, source.names, "diff=")
    shortest = int(SHORTEST)
    return ScriptInputs(
        inputs=(Input(name=None, schema=source, time=time, diff=diff),),
        keys=frozenset(),
        lengths=(shortest,),
        edges=Edges((shortest,)),
    )


def inputs_of(graph: Graph) -> Iterator[Input]:
    """The sources of a flow; one that is read several times is one input."""
    seen: dict[int, Any] = {}
    for leaf in graph.leaves:
        seen.setdefault(id(leaf.source), leaf)
    names = [leaf.settings.name for leaf in seen.values()]
    if len(seen) > 1 and (None in names or len(set(names)) < len(names)):
        raise InvalidArgument(
            "scripts name the source of each row, and two sources of the flow have no name or the same one: give each "
            "its own name, as in uc.union(left=a, right=b)"
        )
    for leaf, name in zip(seen.values(), names, strict=True):
        own = leaf.settings
        if leaf.source.reading is not None:
            raise InvalidArgument(
                "scripts have rows, and a source of the flow reads messages (changelog=): build the flow of the test "
                "over rows with diff="
            )
        if own.event_time is not None:
            raise InvalidArgument(
                "scripts have rows with times, and a source of the flow computes its times (time=): build the flow of "
                "the test over rows with a column of times"
            )
        input_name = name if len(seen) > 1 else None
        yield Input(
            name=input_name,
            schema=leaf.source.schema,
            time=own.time,
            diff=own.diff,
            processing_time=own.processing_time,
            strategy=own.strategy,
        )


def _keys(graph: Graph) -> Iterator[str]:
    """The columns by which steps of a flow tell rows apart."""
    for step in graph.steps:
        match step.stage:
            case GroupingStage(grouping=grouping):
                yield from grouping.by
            case RowStage(options=options):
                yield from getattr(options, "by", ())
            case JoinStage(join=join):
                yield from (name for pair in join.on for name in pair)
    for leaf in graph.leaves:
        strategy = leaf.settings.strategy
        if strategy is not None:
            yield from strategy.columns


def _lengths(graph: Graph) -> tuple[int, ...]:
    """The lengths of time that a flow names, but for the limit of the future."""
    lengths: set[int] = set()
    for step in graph.steps:
        match step.stage:
            case GroupingStage(grouping=options) | RowStage(options=options) | JoinStage(join=options):
                lengths.update(map(abs, spans_of((options, getattr(options, "within", None)))))
        lengths.update(feed.back for feed in step.feeds)
    for leaf in graph.leaves:
        lengths.update(spans_of(leaf.settings.strategy))
    return tuple(sorted(length for length in lengths if length > 0)) or (int(SHORTEST),)


__all__ = ["Input", "ScriptInputs", "inputs_of", "script_inputs"]
