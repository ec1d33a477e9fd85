"""A picture of panes before it is drawn: the panes, rows and watermarks of a key, and the bounds of its axes.

Guarded by tests/plot/test_plot.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..combiners.column_names import key_names
from ..errors import InvalidArgument, require_column
from ..local.script import Entry, check_script
from ..windows import timestamp
from .picture_data import (
    Bounds,
    Mark,
    Pane,
    Point,
    check_panes,
    clock_of,
    is_timed,
    keys_of,
    marks_of,
    marks_of_panes,
    panes_of,
    points_of,
    shown_value,
    table_of,
)
from .style import from_micros, margins, named, panels

_NAMED = 8
"""The most keys that an error names."""


@dataclass(frozen=True)
class Picture:
    """The panes, rows and watermarks of a picture, and the bounds of its axes."""

    panes: list[Pane]
    points: list[Point]
    marks: dict[str | None, list[Mark]]
    bounds: Bounds
    """The event times from left to right."""
    heights: Bounds
    """The processing times from bottom to top."""
    timed: bool
    """True if processing times are those of a clock, and not the places of entries."""
    name: str = ""
    value: str = ""
    """The name of the result that is written into panes."""

    @property
    def standing(self) -> list[Pane]:
        """The last pane of each window, unless it was retracted."""
        last: dict[Any, Pane] = {}
        for pane in self.panes:
            if pane.diff > 0:
                last[pane.key, pane.bounds] = pane
            else:
                last.pop((pane.key, pane.bounds), None)
        return list(last.values())


@dataclass(frozen=True)
class History:
    """The panes of a run, the rows and watermarks of its script, and the key columns, as pictures need them."""

    entries: Sequence[Entry]
    panes: list[Pane]
    points: list[Point]
    marks: dict[str | None, list[Mark]]
    clock: Sequence[datetime]
    keys: list[str]
    value: str

    @classmethod
    def of(
        cls,
        result: Any,
        script: Sequence[Entry] | None,
        *,
        time: str | Mapping[str, str] | None = None,
        value: str | None = None,
        datum: str | None = None,
        where: Mapping[str, Any] | None = None,
        between: Sequence[Any] | None = None,
    ) -> History:
        """The panes of a result and the rows of its script, of the keys and event times that are asked for."""
        entries = [] if script is None else check_script(script)
        if script is not None and not entries:
            raise InvalidArgument("script= has no entries, so there is nothing to draw: give the script of the run")
        table = table_of(result)
        check_panes(table)
        _check_steps(table, entries)
        clock, shown, condition = clock_of(entries), shown_value(table, value, entries), dict(where or {})
        keys = keys_of(table)
        panes = panes_of(table, shown, condition, clock)
        points = points_of(entries, result, time, datum, condition, clock, keys, shown)
        if not panes and not points:
            raise InvalidArgument(_nothing(condition, script, table))
        history = cls(
            entries=entries,
            panes=panes,
            points=points,
            marks=marks_of(entries, clock, result) or marks_of_panes(table),
            clock=clock,
            keys=keys,
            value=shown,
        )
        return history if between is None else history._between(*_two_times(between))

    def _between(self, low: datetime, high: datetime) -> History:
        """The windows that share an instant with `[low, high)`, with all their rows, and the other rows in it."""
        panes = [pane for pane in self.panes if pane.bounds is None or (pane.bounds[0] < high and pane.bounds[1] > low)]
        spans: dict[tuple[Any, ...], set[Bounds]] = {}
        for pane in panes:
            if pane.bounds is not None:
                spans.setdefault(pane.key, {(low, high)}).add(pane.bounds)
        points = [
            point
            for point in self.points
            if any(start <= point.event < end for start, end in spans.get(point.key(self.keys) or (), {(low, high)}))
        ]
        if not any(pane.bounds for pane in panes) and not points:
            times = self.whole().bounds
            raise InvalidArgument(
                f"no window and no row is between {_seconds(low)} and {_seconds(high)}, so there is nothing to draw: "
                f"the run has times from {_seconds(times[0])} to {_seconds(times[1])}"
            )
        if not self.entries:
            return replace(self, panes=panes, points=points)
        steps = [pane.step for pane in panes] + [point.step for point in points]
        first, last = min(steps), max(steps)
        return replace(
            self,
            entries=self.entries[first : last + 1],
            clock=self.clock[first : last + 1],
            panes=[replace(pane, step=pane.step - first) for pane in panes],
            points=[replace(point, step=point.step - first) for point in points],
            marks={name: _marks_between(marks, self.clock[first], first, last) for name, marks in self.marks.items()},
        )

    def values_of(self, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """The values that some key columns have in the panes, each once, in order."""
        places = [self.keys.index(name) for name in names]
        return sorted({tuple(pane.key[place] for place in places) for pane in self.panes}, key=_sortable)

    def whole(self) -> Picture:
        """One picture of all keys."""
        times = [t for pane in self.panes if pane.bounds is not None for t in pane.bounds]
        times += [point.event for point in self.points]
        moments = list(self.clock) or [pane.at for pane in self.panes]
        times = times or moments
        height = max(moments) - min(moments)
        room = height * 0.05 if height else timedelta(minutes=1)
        timed = is_timed(self.entries)
        timed |= not self.entries and len({pane.at for pane in self.panes}) > 1
        return Picture(
            panes=self.panes,
            points=self.points,
            marks=self.marks,
            bounds=margins(min(times), max(times)),
            heights=(min(moments) - room, max(*moments, *(pane.at for pane in self.panes), min(moments)) + room),
            timed=timed,
            value=self.value,
        )

    def of_key(self, names: Sequence[str], values: tuple[Any, ...]) -> Picture:
        """The picture of a key, on the axes of the picture of all keys."""
        places = [self.keys.index(name) for name in names]
        return replace(
            self.whole(),
            panes=[pane for pane in self.panes if tuple(pane.key[place] for place in places) == values],
            points=[point for point in self.points if point.key(names) in (None, values)],
            name=named(values, names),
        )


def pictures_of(history: History, by: str | Sequence[str] | None) -> list[Picture]:
    """A picture of each key that is asked for, or one of all of them; raise if it is not said which."""
    names = history.keys if by is None else key_names(by)
    for name in names:
        require_column(name, history.keys, "by=")
    several = history.values_of(names)
    if by is None and len(several) > 1:
        known = next((values for values in several if None not in values), several[0])
        example = dict(zip(names, known, strict=True))
        raise InvalidArgument(
            f"the result has panes of {len(several)} keys: draw one with where={example!r}, a panel for each with "
            f"by={names[0] if len(names) == 1 else names!r}, or all in one with by=[]"
        )
    if by is None or not names or not several:
        return [history.whole()]
    panels(len(several))
    return [history.of_key(names, values) for values in several]


def _two_times(between: Sequence[Any]) -> tuple[datetime, datetime]:
    """The two times of `between=`."""
    if isinstance(between, str) or len(between) != 2:
        raise InvalidArgument(
            f"between= takes two event times, such as ('2024-05-01T12:00Z', '2024-05-01T13:00Z'), not {between!r}"
        )
    low, high = (from_micros(timestamp(time)) for time in between)
    if high <= low:
        raise InvalidArgument(f"between= takes the earlier time first, but was given {low} and then {high}")
    return low, high


def _seconds(at: datetime) -> str:
    """A time in a sentence."""
    return f"{at:%Y-%m-%d %H:%M:%SZ}"


def _marks_between(marks: Sequence[Mark], start: datetime, first: int, last: int) -> list[Mark]:
    """The marks of some entries, counted from the first of them, where the mark that stood before is the first."""
    of_them = [(at, mark, step - first) for at, mark, step in marks if first <= step <= last]
    stood = [(start, mark, 0) for _, mark, step in marks if step < first][-1:]
    return of_them if of_them and of_them[0][2] == 0 else [*stood, *of_them]


def _check_steps(table: pa.Table, entries: Sequence[Entry]) -> None:
    """Raise if the panes have entries that the script does not have."""
    last = pc.max(table["step"]).as_py() if entries and "step" in table.column_names else None
    if last is not None and last >= len(entries):
        raise InvalidArgument(
            f"the result has panes of entry {last}, and script= has {len(entries)} entries: give the script of its run"
        )


def _nothing(where: Mapping[str, Any], script: Sequence[Entry] | None, panes: pa.Table) -> str:
    """The words of an error about a picture that would be empty."""
    if where:
        asked = " and ".join(f"{name}={value!r}" for name, value in where.items())
        there = "; ".join(f"{name} has {_some(panes[name])}" for name in where if name in panes.column_names)
        return f"no pane and no row has {asked}, so there is nothing to draw" + (f": {there}" if panes.num_rows else "")
    if script is None:
        return "the result has no panes, so there is nothing to draw: give the script too, whose rows are drawn"
    return "the script has no rows and the result has no panes, so there is nothing to draw: draw another run"


def _some(values: pa.ChunkedArray) -> str:
    """The first different values of a column, in their order.

    >>> _some(pa.chunked_array([["b", "a", None, "a"]]))
    "'a', 'b', None"
    """
    found = sorted(pc.unique(values).to_pylist(), key=lambda value: (value is None, str(value)))
    return ", ".join(map(repr, found[:_NAMED])) + ", ..." * (len(found) > _NAMED)


def _sortable(key: tuple[Any, ...]) -> list[tuple[bool, str, Any]]:
    """A key that can be compared with others: null first, then by type, numbers by their size."""
    number = (int, float)
    return [
        (v is not None, "" if isinstance(v, number) else type(v).__name__, v if isinstance(v, number) else str(v))
        for v in key
    ]


__all__ = ["History", "Picture", "pictures_of"]
