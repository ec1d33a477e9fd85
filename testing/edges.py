"""The times at which a flow changes its mind about a row: the edges that its windows, bounds, gaps and lateness name.

Faults by a microsecond show there and nowhere else, so scripts have rows and reports at an edge, and just beside it.
Guarded by tests/testing/test_testing.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from ..flows.graph import Graph, Leaf, Step
from ..panes.grouping.stage import GroupingStage
from ..panes.join.stage import JoinStage
from ..panes.rows.stage import RowStage
from ..windows import MAX_TIME, MIN_TIME, Calendar, Fixed, Span, Window, span
from ..windows.spans import UNITS

_CALENDAR = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}

BESIDE = (0, -1, 1)
"""The microseconds between an edge and the times that are drawn for it."""


@dataclass(frozen=True)
class Edges:
    """The lengths of time, the windows and the lateness that a flow names, with the edges that they give."""

    lengths: tuple[int, ...] = ()
    """In microseconds: gaps, and the like. Each counts in both directions."""
    lateness: tuple[int, ...] = ()
    windows: tuple[Window, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    """The columns that a join compares: a left one and a right one."""
    bounds: tuple[tuple[str | None, int], ...] = ()
    """The bounds of joins: the name of an input, and the time of its row less that of a row of the other side."""

    def of_rows(self, name: str | None, time: int, watermark: int) -> list[int]:
        """The edges for rows of an input, near a row of this time and under this watermark of the input."""
        beside = [time + sign * length for length in self.lengths for sign in (1, -1)]
        beside += [time + bound for input_, bound in self.bounds if name in (None, input_)]
        late = [watermark - lateness for lateness in (0, *self.lateness)] if watermark > time - self._far else []
        return _inside([time, *beside, *self._bounds(time), *late])

    def of_reports(self, time: int) -> list[int]:
        """The edges for watermarks, near a row of this time: it, its windows and what matches it pass or expire."""
        lengths = {*self.lengths, *(abs(bound) for _, bound in self.bounds)}
        passing = [time, *(time + length for length in lengths), *self._bounds(time)]
        return _inside([one + lateness for one in passing for lateness in (0, *self.lateness)])

    @property
    def _far(self) -> int:
        """A time that is this much after the watermark is at no edge of it."""
        return 4 * max([*self.lengths, *self.lateness, *(abs(bound) for _, bound in self.bounds)], default=0) + 1

    def _bounds(self, time: int) -> Iterator[int]:
        """The starts and ends of the windows of this time, as they are before any merge."""
        for window in self.windows:
            assigned = window.assign(np.array([time]))
            yield from (int(bound) for side in (assigned.start, assigned.end) for bound in side)


def edges_of(graph: Graph) -> Edges:
    """The edges that the steps of a flow name."""
    windows: list[Window] = []
    lateness, lengths = set[int](), set[int]()
    pairs: list[tuple[str, str]] = []
    bounds = set[tuple[str | None, int]]()
    for step in graph.steps:
        lengths |= {feed.back for feed in step.feeds}
        match step.stage:
            case GroupingStage(grouping=grouping):
                lateness.add(int(span(grouping.allowed_lateness)))
                if grouping.window.columns or grouping.window.needs_key_hash:
                    lengths |= set(spans_of(grouping.window))
                else:
                    windows.append(grouping.window)
                if grouping.window.merging:
                    lengths |= set(spans_of(grouping.window))
            case RowStage(options=options):
                lateness.add(int(span(getattr(options, "allowed_lateness", "0 seconds"))))
                lengths |= set(spans_of(getattr(options, "within", None)))
                if (every := getattr(options, "every", None)) is not None:
                    windows.append(Fixed(Span(every)))
            case JoinStage(join=join):
                lateness.add(int(span(join.allowed_lateness)))
                pairs += join.on
                bounds |= set(_bounds_of(graph, step, list(spans_of(join.within))))
                lateness |= set(spans_of(getattr(join, "keep", None)))
    return Edges(
        lengths=tuple(sorted(lengths - {0})),
        lateness=tuple(sorted(lateness - {0})),
        windows=tuple(dict.fromkeys(windows)),
        pairs=tuple(pairs),
        bounds=tuple(sorted(bounds, key=repr)),
    )


def _bounds_of(graph: Graph, step: Step, within: Sequence[int]) -> Iterator[tuple[str | None, int]]:
    """The bounds of a join for each source of its sides."""
    for feed, port in zip(step.feeds, step.ports, strict=True):
        leaves = {feed.origin} if isinstance(feed.origin, Leaf) else graph.leaves_of(feed.origin)
        yield from ((leaf.settings.name, bound if port else -bound) for leaf in leaves for bound in within)


def spans_of(value: Any) -> Iterator[int]:
    """The lengths of time in an option, in microseconds; those of windows and triggers too."""
    if isinstance(value, Span):
        yield int(value)
    elif isinstance(value, Calendar):
        yield _CALENDAR[value.unit] * UNITS["day"]
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            if field.name not in ("max_future", "offset", "combiners"):
                yield from spans_of(getattr(value, field.name, None))
    elif isinstance(value, Window):
        for inner in vars(value).values():
            yield from spans_of(inner)
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from spans_of(inner)


def _inside(times: Iterable[int]) -> list[int]:
    """Each time once, in order, without those at the ends of time."""
    low, high = (bound // 2 for bound in (MIN_TIME, MAX_TIME))
    return sorted({time for time in times if low < time < high})


__all__ = ["BESIDE", "Edges", "edges_of", "spans_of"]
