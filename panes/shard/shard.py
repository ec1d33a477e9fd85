"""One shard of one stage: it takes bundles, gives panes, and fires every timer at its own processing time.

Runs in this process, replays and streams drive shards. None of them has its own loop that waits for timers.
Guarded by tests/panes/shard/test_shards.py and tests/panes/grouping/test_parts.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from ...errors import InvalidArgument
from ...windows.times import MAX_TIME, MIN_TIME
from ..state.operator import StatefulOperator
from ..state.operator_state import OperatorState, StepResult
from ..watermarks.watermarks import InputWatermarks, Watermarks
from .arrivals import Arrival

END = MAX_TIME
"""The time of the arrival that closes a shard: it comes after all others and does not move processing time."""

MOST_AGAIN = 1_000
"""The most steps in a row, without rows, that one deadline has passed already and is set again."""

_EVENT = ("event", "percentile")
"""The clocks of event time by which the entries of a state wait."""


@dataclass(frozen=True)
class Instant:
    """The result of one step of a shard, and the processing time of the step."""

    at: int
    result: StepResult
    output_watermark: int
    closes: bool = False
    """True if the step ended the input."""
    arrived: int | None = None
    """The processing time of the arrivals that the step took, which can be before `at`; None for a timer."""
    rows: tuple[pa.Table, ...] = ()
    """The rows of the bundle for each port of the operator, if some of them were left out."""
    before: int = MIN_TIME
    """The watermark from before the step, by which a row of the bundle is late."""

    @property
    def panes(self) -> pa.Table:
        return self.result.panes

    def left_out(self, why: str) -> list[pa.Table]:
        """The rows of each port that were left out for a reason; nothing if the bundle lost no rows at all."""
        places = self.result.left_out.get(why)
        if places is None or not self.rows:
            return [table.slice(0, 0) for table in self.rows]
        starts = np.cumsum([0, *(table.num_rows for table in self.rows)])
        here = [places[(places >= a) & (places < b)] - a for a, b in pairwise(starts)]
        return [table.take(pa.array(some)) for table, some in zip(self.rows, here, strict=True)]


@dataclass(frozen=True)
class Shard:
    """A shard between two bundles, as a value: the state of its operator, and the watermarks of its sources.

    >>> import pyarrow as pa, uncombine as uc
    >>> from uncombine.panes.shard.arrivals import Arrival
    >>> from uncombine.panes.shard.shard import Shard
    >>> schema = pa.schema({"ts": pa.timestamp("us")})
    >>> from uncombine.panes.grouping.operator import Operator
    >>> from uncombine.panes.grouping.grouping import Grouping
    >>> shard = Shard.start(Operator(Grouping({"n": uc.Count()}, uc.Fixed("1 minute")), schema))
    >>> rows = pa.table({"ts": [0, 1]}).cast(schema)
    >>> shard, instants = shard.take(5, Arrival([rows], reports=[(None, 60_000_000)]))
    >>> [(instant.at, instant.panes["n"].to_pylist()) for instant in instants]
    [(5, [2])]
    """

    operator: StatefulOperator
    state: OperatorState
    watermarks: InputWatermarks
    ports: tuple[int, ...] = (0,)
    """For each input of the shard, the input of the operator to which its rows go."""

    @classmethod
    def start(cls, operator: StatefulOperator, *inputs: Watermarks, ports: tuple[int, ...] = ()) -> Shard:
        """A shard before any row, over one or several inputs."""
        marks = InputWatermarks(inputs or (Watermarks(),))
        return cls(
            operator=operator, state=operator.initial(), watermarks=marks, ports=ports or (0,) * len(marks.inputs)
        )

    def play(self, *inputs: Mapping[int, Arrival], until: int | None = None) -> tuple[Shard, list[Instant]]:
        """Take the arrivals of every input in order of processing time, and fire the timers that are due.

        Timers are due by the last arrival, or by `until`. The arrivals at `END` come last and close the shard.
        """
        shard, out = self, list[Instant]()
        for at in sorted({at for arrivals in inputs for at in arrivals if at < END}):
            shard, instants = shard.take(at, *(arrivals.get(at, Arrival()) for arrivals in inputs))
            out += instants
        if until is not None:
            shard, instants = shard.wait(until)
            out += instants
        if any(END in arrivals for arrivals in inputs):
            shard, instants = shard.close(*(arrivals.get(END, Arrival()) for arrivals in inputs))
            out += instants
        return shard, out

    def take(self, at: int, *inputs: Arrival) -> tuple[Shard, list[Instant]]:
        """Fire all timers that are due by `at`, and then take one bundle, with the arrival of each input."""
        shard, out = self.wait(at)
        shard, moved = shard._with_clock()  # before the rows come
        out += moved
        reports, holds = [arrival.reports for arrival in inputs], [arrival.hold for arrival in inputs]
        marks = shard.watermarks.told(reports, at, holds, [arrival.reads for arrival in inputs])
        if any(arrival.marks is not None for arrival in inputs):
            marks = marks.placed([arrival.marks for arrival in inputs])
        shard = replace(shard, watermarks=marks)
        shard, instant = shard._step(inputs, any(arrival.whole for arrival in inputs))
        return shard, [*out, replace(instant, arrived=at)]

    def wait(self, now: int) -> tuple[Shard, list[Instant]]:
        """Move processing time on to `now`, and fire every timer that is due by then at its own time."""
        shard, out, passed, again = self, list[Instant](), None, 0
        while (due := shard.next_timer) is not None and due <= now:
            before, passed = passed, shard._passed_deadline
            again = again + 1 if passed is not None and passed == before else 0
            if again > MOST_AGAIN:
                raise InvalidArgument(
                    "a trigger of yours sets a timer of event time again and again that has passed already, so it "
                    "would be called at every microsecond: in on_timer set a time after ctx.watermark, or none"
                )
            if due > shard.watermarks.now:
                shard, moved = shard._at(due - 1)._with_clock()  # every shard knows the same watermark at a timer
                out += moved
            shard = shard._at(due)
            shard, instant = shard._step()
            out.append(instant)
        return shard._at(now), out

    def close(self, *inputs: Arrival) -> tuple[Shard, list[Instant]]:
        """End the input: the watermark goes to the end of time, in one step with the rows that come last.

        The rows of the next stage are the panes that the close of the grouping before gives.
        """
        marks = self.watermarks
        ended = replace(marks, inputs=tuple(Watermarks(least=MAX_TIME, now=marks.now) for _ in marks.inputs))
        shard = replace(self, watermarks=ended.at(marks.now))
        shard, instant = shard._step(inputs)
        return shard, [replace(instant, closes=True)]

    @property
    def next_timer(self) -> int | None:
        """The next processing time at which an entry of the state has a deadline or a source becomes idle, or None."""
        timer = self.operator.next_timer(self.state)
        due = min(MAX_TIME if timer is None else timer, self.watermarks.next_idle)
        if self.watermarks.follows_clock:
            # A deadline that was passed already as it came to be is due as soon as the watermark moves.
            due = min(due, self.watermarks.reaches(max(self._next_event_time, self.state.watermark + 1)))
        return due if due < MAX_TIME else None

    @property
    def _passed_deadline(self) -> int | None:
        """The least event time for which an entry waits, if it had passed already as the deadline came to be."""
        if not self.watermarks.follows_clock:
            return None
        due = self._next_event_time
        return due if due <= self.state.watermark else None

    @property
    def _next_event_time(self) -> int:
        """The least event time for which an entry of the state waits; the end of time if there is none."""
        stores = [store for store in self.state.stores.values() if store is not None]
        return min((store.next_due(_EVENT) for store in stores), default=MAX_TIME)

    def _with_clock(self) -> tuple[Shard, list[Instant]]:
        """Move the watermark on to processing time, in a step of its own, if it follows that."""
        if not self.watermarks.follows_clock or self.watermarks.least <= self.state.watermark:
            return self, []
        shard, instant = self._step()
        return shard, [instant]

    def _at(self, now: int) -> Shard:
        return replace(self, watermarks=self.watermarks.at(now))

    def _rows(self, inputs: Sequence[Arrival]) -> tuple[pa.Table, ...]:
        """The rows of the arrivals, for each port of the operator."""
        schemas = self.operator.schemas
        tables = [[schema.empty_table()] for schema in schemas]
        for port, arrival in zip(self.ports, inputs, strict=False):
            tables[port] += [table.select(schemas[port].names) for table in arrival.rows]
        # A column of several arrays is copied into one, even if all but one of them are empty.
        filled = [[table for table in some if table.num_rows] or some[:1] for some in tables]
        return tuple(some[0] if len(some) == 1 else pa.concat_tables(some) for some in filled)

    def _step(self, inputs: Sequence[Arrival] = (), whole: bool = False) -> tuple[Shard, Instant]:
        marks, rows = self.watermarks, self._rows(inputs)
        cells = [parcel for arrival in inputs for parcel in arrival.cells]
        bundle = self.operator.bundle(rows, cells, marks.now)
        percents = marks.percentiles(self.operator.percents)
        result = self.operator.step(self.state, bundle, marks.least, marks.now, percents, whole)
        bundle_rows = rows if any(len(places) for places in result.left_out.values()) else ()
        hold = self.operator.hold(result.state)
        instant = Instant(
            at=marks.now, result=result, output_watermark=hold, rows=bundle_rows, before=self.state.watermark
        )
        return replace(self, state=result.state), instant


def with_first(instants: Sequence[Instant], panes: Sequence[pa.Table]) -> Sequence[Instant]:
    """The instants, the first of which gives these panes before its own."""
    if not panes:
        return instants
    first = instants[0]
    result = replace(first.result, panes=pa.concat_tables([*panes, first.panes]))
    return [replace(first, result=result), *instants[1:]]


def by_bundle(instants: Iterable[Instant]) -> dict[int, list[Instant]]:
    """The steps of a grouping by the time of the bundle that their panes make for the next grouping.

    The steps of one processing time make one bundle. The step that ends the input makes a bundle of its own, at `END`.
    """
    bundles: dict[int, list[Instant]] = {}
    for instant in instants:
        bundles.setdefault(END if instant.closes else instant.at, []).append(instant)
    return bundles


__all__ = ["END", "Instant", "Shard", "by_bundle", "with_first"]
