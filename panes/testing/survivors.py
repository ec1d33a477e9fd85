"""The rows of a script that a flow accepts: those that are not late, not bad and not retracted.

Guarded by tests/panes/test_testing.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from ...combiners.rows.columns import flat
from ...windows import MIN_TIME, Window, time_column, timestamps
from ..flow import Flow
from ..graph import Feed, Leaf, Step
from ..join_stage import JoinStage
from ..local.inputs import Part
from ..local.script_run import LocalRun
from ..local_result import Result
from ..script import Clock, Elements, Entry, instant
from ..shard.arrivals import Arrival
from ..shard.shard import END, Played
from ..stage import GroupingStage, RowStage
from ..transforms import applied
from ..watermark_strategies import IngressTime, Punctuated
from .inputs import Input, inputs_of
from .rows import canonical

ROW = "row of the script"
"""The column that carries the place of a row through the transforms of a flow."""


class Unclear(Exception):
    """The rows that a step left out cannot be found in the script; the message says why, in words for a user."""


class TracedRun(LocalRun):
    """A run that keeps the rows of the script that a step did not take in."""

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self.rows: dict[tuple[int, Leaf], pa.Table] = {}
        self.lost: dict[tuple[int, Feed], set[int]] = {}
        self.unclear: str | None = None
        self.counted = dict.fromkeys(self.graph.steps, (0, 0))

    def _entry(self, place: int, entry: Entry, rows: Mapping[Leaf, pa.Table]) -> None:
        self.rows |= {(place, leaf): table for leaf, table in rows.items()}
        super()._entry(place, entry, rows)

    def _count_dropped(
        self,
        place: int,
        step: Step,
        given: Sequence[Mapping[int, Arrival]],
        played: Sequence[Played],
        parts: Mapping[Feed, Mapping[int, Part]],
    ) -> None:
        super()._count_dropped(place, step, given, played, parts)
        for done in played:
            counts = done.stepped.state.counts
            dropped, bad = self.counted[step]
            self.counted[step] = (counts.dropped, counts.bad)
            if counts.finished:
                self.unclear = "a window's trigger had finished when more of its rows came"
            if counts.dropped == dropped and counts.bad == bad:
                continue
            at = END if done.closes or done.arrived is None else done.arrived
            tables = [pa.concat_tables(some[at].rows) if at in some and some[at].rows else None for some in given]
            late = done.stepped.left_out.get("late", np.zeros(0, np.int64))
            wrong = _bad_places(step, tables, done.at)
            if counts.bad - bad != len(wrong):
                self.unclear = "rows without a usable time came from another step"
            if (
                isinstance(step.stage, GroupingStage)
                and _windows_of(step.stage, tables, late) > counts.dropped - dropped
            ):
                self.unclear = "a late row was in some of its windows, and too late for others of them"
            self._lose(place, step, tables, at, parts, [*late.tolist(), *wrong.tolist()])

    def _lose(
        self,
        place: int,
        step: Step,
        tables: Sequence[pa.Table | None],
        at: int,
        parts: Mapping[Feed, Mapping[int, Part]],
        places: Sequence[int],
    ) -> None:
        """Keep which rows of the entry these places of a bundle are."""
        ends = np.cumsum([0 if table is None else table.num_rows for table in tables])
        for number in places:
            which = int(np.searchsorted(ends, number, side="right"))
            feed = step.feeds[which]
            if feed.leaf is None:
                self.unclear = f"stage {step.number} left out rows that stage {_number(feed)} gave"
                return
            before = int(ends[which - 1]) if which else 0
            self.lost.setdefault((place, feed), set()).add(int(parts[feed][at].places[number - before]))


def _number(feed: Feed) -> int:
    assert isinstance(feed.origin, Step)
    return feed.origin.number


def _bad_places(step: Step, tables: Sequence[pa.Table | None], now: int) -> np.ndarray:
    """The places in a bundle of the rows without a usable time."""
    found = [np.empty(0, np.bool_)]
    far = step.stage.max_future
    for which, table in enumerate(tables):
        if table is not None:
            times, valid = time_column(flat(table[_time_name(step, which)]))
            found.append(valid if far is None or now == MIN_TIME else valid & (times <= now + int(far)))
    return np.flatnonzero(~np.concatenate(found))


def _time_name(step: Step, which: int) -> str:
    """The event time column of a feed of a step."""
    match step.stage:
        case GroupingStage(grouping=grouping):
            return grouping.time
        case RowStage(options=options):
            return options.time
        case JoinStage(join=join):
            return (join.left_time, join.right_time)[step.ports[which]]
    raise TypeError(f"{step.stage!r} has no event time that is known here")


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


def run_traced(flow: Flow, script: Sequence[Entry]) -> Run:
    """Run a script; raise `Unclear` if the rows that a step left out cannot be found in the script."""
    run = TracedRun(flow)
    result = run.all(list(script))
    if run.unclear is not None:
        raise Unclear(run.unclear)
    frames = {}
    for one in inputs_of(run.graph):
        leaves = [leaf for leaf in run.leaves if one.name in (None, leaf.settings.name)]
        frames[one.name] = _frame(run, one, leaves, script)
    return Run(result, frames)


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
        kept = _kept(run, leaves, place, table)
        steps += [place] * len(kept)
        rows += kept.tolist()
        table = table.take(pa.array(kept, pa.int64()))
        if isinstance(one.strategy, IngressTime):
            table = _with_time(table, schema, one.time, now)
        tables.append(table.select(schema.names))
        copies.append(np.ones(len(kept), np.int64) if one.diff is None else flat(table[one.diff]).to_numpy())
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


def _kept(run: TracedRun, leaves: Sequence[Leaf], place: int, table: pa.Table) -> np.ndarray:
    """The places of the rows of an entry that a step took in, or that no step was given."""
    feeds = [feed for step in run.graph.steps for feed in step.feeds if feed.leaf in leaves]
    lost, taken = set[int](), set[int]()
    if any((place, feed) in run.lost for feed in feeds):
        for feed in feeds:
            carried = _carried(feed, table)
            gone = run.lost.get((place, feed), set())
            lost |= {int(row) for i, row in enumerate(carried) if i in gone}
            taken |= {int(row) for i, row in enumerate(carried) if i not in gone}
    if lost & taken:
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


__all__ = ["Run", "Unclear", "run_traced"]
