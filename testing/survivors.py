"""The rows of a script that count: those that are not late, have a usable time and are not retracted.

A row that a step left out for another reason counts: a result without it is wrong, unless the user allows that reason.

Guarded by tests/testing/test_testing.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from ..combiners.rows.columns import flat
from ..flows.flow import Flow
from ..flows.graph import Feed, Leaf, Step, graph_of
from ..flows.left_out import REASONS
from ..flows.result import Result
from ..local.local_inputs import Part
from ..local.script import Clock, Elements, Entry, instant
from ..local.script_run import LocalRun
from ..panes.grouping.stage import GroupingStage
from ..panes.shard.arrivals import Arrival
from ..panes.shard.shard import END, Instant
from ..panes.stage import Stage
from ..panes.state.operator_state import Counts
from ..panes.transforms import applied
from ..panes.watermarks.watermark_strategies import IngressTime, Punctuated
from ..windows import MIN_TIME, Window, time_column, timestamps
from .row_values import canonical
from .script_inputs import Input, inputs_of

ROW = "row of the script"
"""The column that carries the place of a row through the transforms of a flow."""


_WINDOWS = {"late": "dropped", "finished": "finished"}
"""The count of rows by window, for reasons by which a row can be left out of some of its windows alone."""


class Unclear(Exception):
    """The rows that a step left out cannot be found in the script; the message says why, in words for a user."""


class TracedRun(LocalRun):
    """A run that keeps the rows of the script that a step did not take in."""

    def __init__(self, flow: Flow, allow: frozenset[str] = frozenset()) -> None:
        super().__init__(flow)
        self.allow = allow
        self.rows: dict[tuple[int, Leaf], pa.Table] = {}
        self.lost: dict[tuple[int, Feed], dict[int, str]] = {}
        """The reason for each row of a feed that a step left out, by its place among the rows for the step."""
        self.unclear: str | None = None
        self.counted = dict.fromkeys(self.graph.steps, Counts())
        self.unexplained: Counter[tuple[int, str]] = Counter()
        """The number of rows that each step left out for a reason that is not allowed, and that count all the same."""

    def _entry(self, place: int, entry: Entry, rows: Mapping[Leaf, pa.Table]) -> None:
        self.rows |= {(place, leaf): table for leaf, table in rows.items()}
        super()._entry(place, entry, rows)

    def _count_dropped(
        self,
        place: int,
        step: Step,
        arrivals: Sequence[Mapping[int, Arrival]],
        instants: Sequence[Instant],
        parts: Mapping[Feed, Mapping[int, Part]],
    ) -> None:
        super()._count_dropped(place, step, arrivals, instants, parts)
        for one in instants:
            counts, before = one.result.state.counts, self.counted[step]
            self.counted[step] = counts
            if counts == before:
                continue
            at = END if one.closes or one.arrived is None else one.arrived
            tables = [pa.concat_tables(some[at].rows) if at in some and some[at].rows else None for some in arrivals]
            for why in REASONS:
                left_out = one.result.left_out.get(why, np.zeros(0, np.int64))
                if self._follows(why) and _only_partly(step.stage, tables, left_out, why, counts, before):
                    self.unclear = f"a {why} row was left out of some of its windows, and not of others"
                self._lose(place, step, tables, at, parts, left_out, why)

    def _follows(self, why: str) -> bool:
        """True if rows that are left out for this reason are not expected to count."""
        return why == "late" or why in self.allow

    def _lose(
        self,
        place: int,
        step: Step,
        tables: Sequence[pa.Table | None],
        at: int,
        parts: Mapping[Feed, Mapping[int, Part]],
        places: np.ndarray,
        why: str,
    ) -> None:
        """Keep which rows of the entry these places of a bundle are."""
        ends = np.cumsum([0 if table is None else table.num_rows for table in tables])
        for number in places.tolist():
            which = int(np.searchsorted(ends, number, side="right"))
            feed = step.feeds[which]
            if feed.leaf is not None:
                before = int(ends[which - 1]) if which else 0
                self.lost.setdefault((place, feed), {}).setdefault(int(parts[feed][at].places[number - before]), why)
            elif self._follows(why):
                self.unclear = f"stage {step.number} left out rows that stage {_number(feed)} gave"
                return
            else:
                self.unexplained[step.number, why] += 1


def _number(feed: Feed) -> int:
    assert isinstance(feed.origin, Step)
    return feed.origin.number


def _only_partly(
    stage: Stage, tables: Sequence[pa.Table | None], places: np.ndarray, why: str, counts: Counts, before: Counts
) -> bool:
    """True if a row at one of these places was left out of some of its windows, and not of all."""
    name = _WINDOWS.get(why)
    if name is None or not isinstance(stage, GroupingStage):
        return False
    return _windows_of(stage, tables, places) > getattr(counts, name) - getattr(before, name)


def _windows_of(stage: GroupingStage, tables: Sequence[pa.Table | None], places: np.ndarray) -> int:
    """The number of windows of some rows of a bundle, each row's own."""
    window: Window = stage.grouping.window
    if window.merging or window.needs_key_hash or not len(places):
        return len(places)
    rows = pa.concat_tables([table for table in tables if table is not None]).take(pa.array(places))
    assigned = window.assign(time_column(flat(rows[stage.grouping.time]))[0], None, rows)
    return len(places) if assigned.row is None else len(assigned.row)


@dataclass(frozen=True)
class Run:
    """The result of a script, and the rows that survive, as DataFrames by the name of their input."""

    result: Result
    frames: dict[str | None, pd.DataFrame]
    unexplained: Mapping[tuple[int, str], int]
    """The number of rows in the frames that steps left out, by the number of the step and the reason."""
    allowed: Mapping[str | None, int]
    """The number of rows of each input that steps left out for reasons that are allowed."""


def run_traced(flow: Flow, script: Sequence[Entry], allow: frozenset[str] = frozenset()) -> Run:
    """Run a script; raise `Unclear` if the rows that a step left out cannot be found in the script."""
    run = TracedRun(flow, allow)
    result = run.all(list(script))
    if run.unclear is not None:
        raise Unclear(run.unclear)
    frames, allowed = {}, {}
    for one in inputs_of(run.graph):
        leaves = [leaf for leaf in run.leaves if one.name in (None, leaf.settings.name)]
        frames[one.name] = _frame(run, one, leaves, script)
        allowed[one.name] = sum(
            why in allow for (_, feed), reasons in run.lost.items() if feed.leaf in leaves for why in reasons.values()
        )
    return Run(result=result, frames=frames, unexplained=dict(run.unexplained), allowed=allowed)


def unseen_input(flow: Flow, scripts: Sequence[Sequence[Entry]], allow: frozenset[str]) -> Input | None:
    """An input of which no row counts in any of the scripts, since steps left them out for reasons that are allowed."""
    waiting = {one.name: one for one in inputs_of(graph_of(flow))}
    allowed = Counter[str | None]()
    for script in scripts:
        if not waiting:
            return None
        run = run_traced(flow, script, allow)
        allowed.update(run.allowed)
        waiting = {name: one for name, one in waiting.items() if not len(run.frames[name])}
    return next((one for name, one in waiting.items() if allowed[name]), None)


def _frame(run: TracedRun, one: Input, leaves: Sequence[Leaf], script: Sequence[Entry]) -> pd.DataFrame:
    """The rows of an input that survive, in the order in which they came."""
    schema, tables = leaves[0].schema, list[pa.Table]()
    steps, rows, copies = list[int](), list[int](), list[np.ndarray]()
    now = MIN_TIME
    for place, entry in enumerate(script):
        now = max(now, instant(entry.t if isinstance(entry, Clock) else entry.at, MIN_TIME))
        if not isinstance(entry, Elements) or (one.name and entry.input not in (None, one.name)):
            continue
        table = run.rows[place, leaves[0]]
        row_places = _counting_rows(run, leaves, place, table)
        steps += [place] * len(row_places)
        rows += row_places.tolist()
        table = table.take(pa.array(row_places, pa.int64()))
        if isinstance(one.strategy, IngressTime):
            table = _with_time(table, schema, one.time, now)
        tables.append(table.select(schema.names))
        copies.append(np.ones(len(row_places), np.int64) if one.diff is None else flat(table[one.diff]).to_numpy())
    whole = pa.concat_tables([schema.empty_table(), *tables])
    numbers = np.concatenate([np.empty(0, np.int64), *copies])
    if one.diff is not None:
        hidden = [name for name in (one.diff, one.processing_time) if name is not None]
        numbers = _netted(whole.drop_columns(hidden), numbers)
        whole = whole.drop_columns([one.diff])
    at = np.repeat(np.arange(len(numbers)), numbers)
    frame = _pandas(whole).iloc[at]
    frame.index = pd.MultiIndex.from_arrays([np.array(steps, int)[at], np.array(rows, int)[at]], names=["step", "row"])
    return frame


def _counting_rows(run: TracedRun, leaves: Sequence[Leaf], place: int, table: pa.Table) -> np.ndarray:
    """The places of the rows of an entry that count: a step took them in, was not given them, or had to take them."""
    fed = [(step, feed) for step in run.graph.steps for feed in step.feeds if feed.leaf in leaves]
    lost, counting = set[int](), set[int]()
    if any((place, feed) in run.lost for _, feed in fed):
        time = leaves[0].settings.time
        timed = np.asarray(table[time].is_valid()) if time in table.column_names else np.ones(table.num_rows, np.bool_)
        for step, feed in fed:
            reasons = run.lost.get((place, feed), {})
            for i, row in enumerate(_carried(feed, table).tolist()):
                why = reasons.get(i)
                if why is not None and (run._follows(why) or (why == "bad" and not timed[row])):
                    lost.add(row)
                    continue
                counting.add(row)
                if why is not None:
                    run.unexplained[step.number, why] += 1
    if lost & counting:
        raise Unclear("a part of what was made of a row was left out, and another part was not")
    return np.array([row for row in range(table.num_rows) if row not in lost], np.int64)


def _carried(feed: Feed, table: pa.Table) -> np.ndarray:
    """The place of the row that each of the rows for a step was made from."""
    leaf = feed.leaf
    assert leaf is not None
    places = np.arange(table.num_rows)
    strategy = leaf.settings.strategy
    if isinstance(strategy, Punctuated):
        only_report = np.asarray(table[strategy.column].is_valid()) & np.asarray(table[leaf.settings.time].is_null())
        table, places = table.filter(pa.array(~only_report)), places[~only_report]
    if leaf.settings.time not in table.column_names:
        table = _with_time(table, leaf.schema, leaf.settings.time, 0)
    carried = table.append_column(ROW, pa.array(places))
    for transform in feed.transforms:
        carried = transform.carrying(carried, ROW)
    if not carried.drop_columns([ROW]).equals(applied(feed.transforms, table)):
        raise Unclear("a function of map() or flat_map() does not make its result of each row alone")
    return flat(carried[ROW]).to_numpy()


def _with_time(table: pa.Table, schema: pa.Schema, name: str, now: int) -> pa.Table:
    """Rows with their processing time as event time."""
    times = timestamps(np.full(table.num_rows, now))
    columns = [times if field.name == name else table[field.name] for field in schema]
    return pa.table(columns, names=schema.names)


def _netted(rows: pa.Table, weights: np.ndarray) -> np.ndarray:
    """The number of copies of each row that are left: retractions take away the last of the rows that they equal."""
    kinds = [field.type for field in rows.schema]
    columns = [column.to_pylist() for column in rows.columns]
    keys = [tuple(canonical(v, k) for v, k in zip(row, kinds, strict=True)) for row in zip(*columns, strict=True)]
    keys = keys or [()] * rows.num_rows
    total: Counter[tuple[object, ...]] = Counter()
    for key, weight in zip(keys, weights.tolist(), strict=True):
        total[key] += weight
    if min(total.values(), default=0) < 0:
        raise Unclear("a row was left out, and its retraction was not")
    out = np.zeros(len(weights), np.int64)
    for i, (key, weight) in enumerate(zip(keys, weights.tolist(), strict=True)):
        out[i] = min(max(weight, 0), total[key])
        total[key] -= int(out[i])
    return out


def _pandas(table: pa.Table) -> pd.DataFrame:
    """A table as pandas has it; whole numbers with nulls stay whole numbers."""
    frame = table.to_pandas()
    for field in table.schema:
        if pa.types.is_integer(field.type) and table[field.name].null_count:
            frame[field.name] = pd.array(table[field.name].to_pylist(), dtype=_NULLABLE[str(field.type)])
    return frame


_NULLABLE = {name: name.replace("int", "Int").replace("uI", "UI") for name in (
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"
)}  # fmt: skip


__all__ = ["Run", "Unclear", "run_traced", "unseen_input"]
