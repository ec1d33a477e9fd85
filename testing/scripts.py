"""Hypothesis strategies of scripts: rows that come late, twice and in any order, watermarks and processing time.

A list of moves is drawn first, and then played: so hypothesis leaves out moves to make a script smaller.
Guarded by tests/testing/test_testing.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ..errors import InvalidArgument
from ..flows.flow import Flow
from ..local.script import Clock, Elements, Entry, Watermark
from ..windows import Span, span, time_text, timestamp
from .column_values import START, check_given, column_values
from .edges import BESIDE, Edges
from .script_inputs import Input, ScriptInputs, script_inputs

Script = list[Entry]

SECOND = 1_000_000

ANCHOR, INPUT = "time of the anchor", "input of the anchor"

NEAREST = 8
"""So many of the last rows have rows and reports at the edges near them."""


@dataclass(frozen=True)
class RowMove:
    """A row to come: a new one, one near the row before it or at an edge, one that came before, or a retraction."""

    kind: str
    place: int
    """Chooses among the rows that came before."""
    offset: int | None
    """The length of time after the event time reached; None for a row without a time."""
    weight: int
    edge: int
    """Chooses among the edges near a row that came."""
    beside: int
    """The microseconds between the edge and the row."""
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Move:
    """A part of a script: rows of one input, or a report, or only processing time that passes."""

    input: int
    advance: int
    """The length of event time that passes before."""
    gap: int
    """The length of processing time that passes before."""
    rows: Sequence[RowMove]
    lag: int | None
    """The length of time by which a watermark report is less than the event time reached; None for no report."""
    edge: int | None
    """Chooses a report at an edge instead; None for one that is not."""
    beside: int
    apart: bool
    """True if the report is an entry of its own, and not in the bundle of the rows."""
    backwards: bool


@dataclass
class InputState:
    """The state of one input while moves are played."""

    input: Input
    edges: Edges
    anchors: list[dict[str, Any]]
    """The rows of all inputs that came so far and have a time, each with its time in the column `ANCHOR`."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    """The number of copies of each row that are not yet retracted."""
    reached: int = timestamp(START) - 10**15
    """The watermark, if it is known."""


def scripts(
    source: pa.Schema | Flow,
    *,
    time: str = "ts",
    rows: int = 20,
    bundles: int = 12,
    keys: int = 3,
    columns: Mapping[str, SearchStrategy[Any]] | None = None,
    nulls: bool = True,
    late: bool = True,
    scale: Span | str | None = None,
) -> SearchStrategy[Script]:
    """A hypothesis strategy of scripts, in which no row is retracted.

    Rows come late, twice and in any order, many of them near each other in time and of the same key. Watermarks and
    processing time move alone or with the rows of a bundle; sources are silent for a while. Each script ends with
    `uc.Watermark(None)`. In scripts for a flow whose source has a watermark strategy only the rows report watermarks.

    Parameters
    ----------
    source
        The columns of the rows, or a flow whose sources say them. A flow also says which columns are keys and which
        lengths of time matter.
    time
        The event time column of a schema.
    rows, bundles
        The greatest number of rows, and of bundles and reports.
    keys
        The number of different values of a text, and of a column that is a key of the flow.
    columns
        Strategies for the values of some columns, by name.
    nulls
        True if columns without a strategy of their own hold nulls, and so does the event time.
    late
        False if no row comes after a watermark that has passed it.
    scale
        The length of time around which rows lie; from the windows of the flow if not given, or one minute.

    Examples
    --------
    >>> import pyarrow as pa, uncombine as uc
    >>> from hypothesis import given, settings
    >>> from uncombine.testing import scripts
    >>> hits = uc.flow(pa.schema({"ts": pa.timestamp("us", "UTC"), "user": pa.string()}))
    >>> counts = hits.window(uc.Fixed("1 minute")).combine(by="user", hits=uc.Count())
    >>> @settings(max_examples=5)
    ... @given(scripts(counts))
    ... def test_nothing_is_held_at_the_end(script):
    ...     assert counts.run(script).counts()["held"] == 0
    >>> test_nothing_is_held_at_the_end()
    """
    return _scripts(script_inputs(source, time, None), False, rows, bundles, keys, columns, nulls, late, scale)


def changelogs(
    source: pa.Schema | Flow,
    *,
    time: str = "ts",
    diff: str | None = None,
    rows: int = 20,
    bundles: int = 12,
    keys: int = 3,
    columns: Mapping[str, SearchStrategy[Any]] | None = None,
    nulls: bool = True,
    late: bool = True,
    scale: Span | str | None = None,
) -> SearchStrategy[Script]:
    """A hypothesis strategy of scripts in which rows are retracted.

    A retraction equals a row that came before, or that comes in the same bundle, and has a negative weight in the
    column `diff`. Never more is retracted than came. Sources of a flow without `diff=` have no retractions. The other
    parameters are those of `scripts`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from hypothesis import given, settings
    >>> from hypothesis import strategies as st
    >>> from uncombine.testing import changelogs
    >>> schema = pa.schema({"ts": pa.timestamp("us", "UTC"), "x": pa.int64(), "d": pa.int64()})
    >>> @settings(max_examples=5)
    ... @given(changelogs(schema, diff="d", columns={"x": st.integers(0, 9)}))
    ... def test_no_row_has_weight_0(script):
    ...     for entry in script[:-1]:
    ...         assert all(row["d"] != 0 for row in getattr(entry, "rows", ()))
    >>> test_no_row_has_weight_0()
    """
    parts = script_inputs(source, time, diff)
    if all(one.diff is None for one in parts.inputs):
        raise InvalidArgument("changelogs() needs the column of weights: give diff=, also to the source of a flow")
    return _scripts(parts, True, rows, bundles, keys, columns, nulls, late, scale)


def _scripts(
    parts: ScriptInputs,
    retracts: bool,
    rows: int,
    bundles: int,
    keys: int,
    columns: Mapping[str, SearchStrategy[Any]] | None,
    nulls: bool,
    late: bool,
    scale: Span | str | None,
) -> SearchStrategy[Script]:
    for name, value in (("rows", rows), ("bundles", bundles), ("keys", keys)):
        require_number(name, value)
    strategies_of = columns or {}
    check_given(strategies_of, [name for one in parts.inputs for name in one.user])
    lengths = parts.lengths if scale is None else tuple(sorted({int(span(scale)), *parts.lengths}))
    shortest, longest = (lengths[0] if scale is None else int(span(scale))), lengths[-1]
    tick = max(shortest // 4, 1)
    near = [0, tick, 2 * tick, -tick, 3 * tick, 4 * tick, 1, 5 * tick, -1, 7 * tick]
    before = [-2 * tick, -4 * tick, -shortest - longest, -longest] if late else []
    offsets = st.sampled_from([*near, *before, *([None] if nulls else [])])
    advances = st.sampled_from([0, tick, shortest, 2 * shortest, *lengths[-3:]])
    gaps = st.sampled_from([0, tick, shortest, longest + 1])
    kinds = ["new", "edge", "near", "new", "edge", "near", "again", "edge"] + ["retract"] * 3 * retracts
    numbers, beside = st.integers(0, 255), st.sampled_from(BESIDE)
    moves = []
    for place, one in enumerate(parts.inputs):
        strategies = column_values(one.schema, one.user, strategies_of, parts.keys, keys, nulls)
        a_row = st.builds(
            RowMove,
            st.sampled_from(kinds),
            st.integers(0, 7),
            offsets,
            st.sampled_from([1, 1, 1, 2]) if retracts and one.diff is not None else st.just(1),
            numbers,
            beside,
            st.tuples(*strategies.values()),
        )
        reports = st.sampled_from([None, None, 0, tick, shortest] if one.strategy is None else [None])
        bundle = st.lists(a_row, min_size=1, max_size=5)
        some = st.sampled_from([bundle, bundle, bundle, st.just([])]).flatmap(lambda chosen: chosen)
        at_edge = st.one_of(st.none(), st.none(), numbers)
        moves.append(
            st.builds(
                Move, st.just(place), advances, gaps, some, reports, at_edge, beside, st.booleans(), st.booleans()
            )
        )
    whole = st.lists(st.one_of(moves), min_size=min(bundles, 4), max_size=bundles)
    clocked = st.just(True) if any(one.timed for one in parts.inputs) else st.sampled_from([False, True, True])
    return _script(
        Plan(
            inputs=parts.inputs, edges=parts.edges, moves=whole, clocked=clocked, rows=rows, late=late, ahead=max(near)
        )
    )


@dataclass(frozen=True, repr=False)
class Plan:
    """The parts from which a script is drawn."""

    inputs: Sequence[Input]
    edges: Edges
    moves: SearchStrategy[list[Move]]
    clocked: SearchStrategy[bool]
    rows: int
    late: bool
    ahead: int

    def __repr__(self) -> str:
        return f"<{len(self.inputs)} inputs>"


def require_number(name: str, value: object) -> None:
    """Raise unless a number that a user gave is whole and at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidArgument(f"{name}= must be a whole number of at least 1, but is {value!r}")


@st.composite
def _script(draw: st.DrawFn, plan: Plan) -> Script:
    moves, clocked = draw(plan.moves), draw(plan.clocked)
    if len(plan.inputs) > 1:
        # One input is silent from the start, or from the middle of the script on.
        silent = draw(st.sampled_from([None, None, None, *range(len(plan.inputs))]))
        first = draw(st.sampled_from([0, len(moves) // 2]))
        moves = [move for place, move in enumerate(moves) if move.input != silent or place < first]
    return _play(plan, moves, clocked)


def _play(plan: Plan, moves: Sequence[Move], clocked: bool) -> Script:
    """The script that moves make."""
    anchors: list[dict[str, Any]] = []
    states = [InputState(input=one, edges=plan.edges, anchors=anchors) for one in plan.inputs]
    front = now = timestamp(START)
    script: Script = []
    count = 0
    for move in moves:
        one = states[move.input]
        own = one.input
        front += move.advance
        rows = []
        for row_move in move.rows[: max(plan.rows - count, 0)]:
            row = _row(one, row_move, front, plan.late)
            if row is not None:
                rows.append(row)
        count += len(rows)
        times = [timestamp(row[own.time]) for row in rows if row.get(own.time) is not None]
        # Processing time is not before the rows that may come, so that none is too far in the future.
        now = max([now + move.gap, front + plan.ahead, *times])
        if own.timed:
            now = (now // SECOND + 1) * SECOND  # a time of its own for each bundle, in any unit
        at = time_text(now) if clocked else None
        reports: list[Watermark] = []
        if move.lag is not None:
            reached = _report(one, move, front, move.lag)
            one.reached, front = max(one.reached, reached), max(front, reached)
            reports = [Watermark(time_text(reached))]
        elif own.strategy is not None and times:
            # The rows that follow are not before the watermark, or few would be in time.
            one.reached = max([one.reached, *(time - own.lag for time in times)])
            front = max(front, one.reached)
        rows = [_timed(row, own, now) for row in (rows[::-1] if move.backwards else rows)]
        if rows:
            script.append(Elements(rows=rows, at=at, watermarks=() if move.apart else reports, input=own.name))
        if reports and (move.apart or not rows):
            script.append(Watermark(t=reports[0].t, source=None, at=at, input=own.name))
        elif not rows and clocked:
            assert at is not None
            script.append(Clock(at))
    return [*script, Watermark(None)]


def _report(one: InputState, move: Move, front: int, lag: int) -> int:
    """The watermark of a report."""
    if move.edge is None or not one.anchors:
        return front - lag
    anchor = _near(one.anchors, move.edge)
    return _chosen(one.edges.of_reports(anchor[ANCHOR]), move.edge // NEAREST) + move.beside


def _near(anchors: Sequence[dict[str, Any]], number: int) -> dict[str, Any]:
    return anchors[-1 - number % min(len(anchors), NEAREST)]


def _chosen(edges: Sequence[int], number: int) -> int:
    return edges[number % len(edges)]


def _row(one: InputState, move: RowMove, front: int, late: bool) -> dict[str, Any] | None:
    """The row of a move; None if there is nothing to retract."""
    own = one.input
    if move.kind == "retract" and own.diff is not None:
        return _retraction(one, move, late)
    earlier = one.rows[move.place % len(one.rows)] if one.rows else None
    values = dict(zip(own.user, move.values, strict=True))
    time = None if move.offset is None else front + move.offset
    if move.kind == "near" and one.rows:
        last = one.rows[-1]
        values |= {name: last[name] for name in own.user if isinstance(last[name], str | bytes | bool)}
        if time is not None and last.get(own.time) is not None:
            time = timestamp(last[own.time]) + (time - front) // 2
    elif move.kind == "edge" and one.anchors:
        others = [row for row in one.anchors if row[INPUT] is not own] if one.edges.pairs else []
        anchor = _near(others or one.anchors, move.place)
        values |= _keys_of(one, anchor)
        time = _chosen(one.edges.of_rows(own.name, anchor[ANCHOR], one.reached), move.edge) + move.beside
    elif move.kind == "again" and earlier is not None:
        values = {name: earlier[name] for name in own.user}
        time = None if earlier.get(own.time) is None else timestamp(earlier[own.time])
    if time is not None and not late:
        time = max(time, one.reached)
    row = {own.time: None if time is None else own.text(own.time, time), **values}
    if own.time not in own.schema.names:
        del row[own.time]
    if own.diff is not None:
        row[own.diff] = move.weight
    one.rows.append(dict(row))
    one.left.append(move.weight)
    if row.get(own.time) is not None:
        one.anchors.append({**row, ANCHOR: timestamp(row[own.time]), INPUT: own})
    return row


def _keys_of(one: InputState, anchor: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a row that one at an edge near it has too: texts, and keys of joins under the name of its side."""
    values = {name: value for name, value in anchor.items() if isinstance(value, str | bytes | bool)}
    for left, right in one.edges.pairs:
        for name, other in ((left, right), (right, left)):
            if name not in anchor and other in anchor:
                values[name] = anchor[other]
            elif name in anchor:
                values[name] = anchor[name]
    return {name: value for name, value in values.items() if name in one.input.user}


def _retraction(one: InputState, move: RowMove, late: bool) -> dict[str, Any] | None:
    """The retraction of a row that is there."""
    own = one.input
    assert own.diff is not None

    def may_go(place: int) -> bool:
        time = one.rows[place].get(own.time)
        return one.left[place] > 0 and (late or time is None or timestamp(time) >= one.reached)

    places = [place for place in range(len(one.rows)) if may_go(place)]
    if not places:
        return None
    place = places[-1 - move.place % len(places)]
    weight = min(one.left[place], move.weight)
    one.left[place] -= weight
    return {**one.rows[place], own.diff: -weight}


def _timed(row: dict[str, Any], own: Input, now: int) -> dict[str, Any]:
    return row if own.processing_time is None else {**row, own.processing_time: own.text(own.processing_time, now)}


__all__ = ["Script", "changelogs", "scripts"]
