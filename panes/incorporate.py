"""Cells meet the windows that are there: windows merge, rows beyond the horizon are set aside, the rest goes in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..combiners.groups import Groups, group_rows
from ..combiners.segments import sum_counts, sum_int64
from ..triggers.program import Moment
from .bundle import Rows
from .cells import Cells, Pairs
from .compiled import Compiled
from .emit import Emitter, sort_windows
from .live import BASE, EXTENT, Live, listed, owners, regroup

IDENTITY = ("index", "nonspeculative", "born_late", "on_time_given")
"""What belongs to a window and not to its contents: a session that grows starts anew with these."""


@dataclass
class Incorporated:
    """The windows in hand after rows went in, and which of them got some."""

    live: Live
    got: np.ndarray
    born: np.ndarray
    facts: dict[str, np.ndarray]
    carried: Pairs
    """Pairs (window before, window after) of which the second goes on from the first."""
    dropped: int = 0
    finished: int = 0
    late: Cells | None = None
    ghosts: pa.Table | None = None
    rows_of: Callable[[], Pairs] | None = None

    def beside(self, others: Live, places: np.ndarray, others_places: np.ndarray) -> Incorporated:
        """The same with windows that nothing happened to, by the places at which both were in hand before."""
        before, after = self.carried
        count = len(others)
        nothing = np.zeros(count, np.bool_)
        zeros = np.zeros(count, np.int64)
        return replace(
            self,
            live=self.live.joined(others),
            got=np.concatenate([self.got, nothing]),
            born=np.concatenate([self.born, nothing]),
            facts={name: np.concatenate([values, zeros]) for name, values in self.facts.items()},
            carried=(
                np.concatenate([places[before], others_places]),
                np.concatenate([after, len(self.live) + np.arange(count)]),
            ),
        )

    def arrivals(self, rows: Rows) -> Callable[[], dict[int, list[dict[str, Any]]]]:
        """The raw rows by window, made when a user's trigger asks."""

        def by_window() -> dict[int, list[dict[str, Any]]]:
            out: dict[int, list[dict[str, Any]]] = {}
            pairs = self.rows_of() if self.rows_of is not None else ([], [])
            row_numbers, windows = (np.asarray(side).tolist() for side in pairs)
            for row, window in sorted(zip(row_numbers, windows, strict=True)):  # user triggers see rows one by one
                out.setdefault(window, []).append(rows.table.slice(row, 1).to_pylist()[0])
            return out

        return by_window


@dataclass
class Placement:
    """Where the windows in hand and the cells go: numbers of the windows that come out, and their bounds."""

    of_live: np.ndarray
    of_cells: np.ndarray
    start: np.ndarray
    end: np.ndarray

    def __len__(self) -> int:
        return len(self.start)

    def without(self, gone: np.ndarray) -> Placement:
        """Leave out windows that hold nothing of what is in hand."""
        number = np.cumsum(~gone) - 1
        kept = ~gone[self.of_cells]
        return Placement(number[self.of_live], number[self.of_cells[kept]], self.start[~gone], self.end[~gone])


def incorporate(
    op: Compiled, live: Live, cells: Cells, before: int, moment_of: Callable[[Live], Moment]
) -> Incorporated:
    """Merge cells into the windows in hand; neither is changed."""
    placed = place(op, live, cells)
    late = None
    expired = op.expiry(placed.end) <= before
    expired[placed.of_live] = False  # held under a longer lateness, with which the state was written
    if expired.any():
        gone = expired[placed.of_cells]
        late, cells = cells.take(gone), cells.take(~gone)
        placed = placed.without(expired)
    out = carry_over(op, live, placed, first_keys(live, cells, placed), before, moment_of)
    done = op.trigger.done(out.num)[placed.of_cells]
    finished = 0
    if done.any():
        finished = int(cells.count[done].sum())
        cells = cells.take(~done)
        placed.of_cells = placed.of_cells[~done]
    _add_contents(op, out, live, cells, placed)
    count = len(placed)
    got = np.zeros(count, np.bool_)
    got[placed.of_cells] = True
    out.num["fresh"] |= got
    born = np.ones(count, np.bool_)
    born[placed.of_live] = False
    groups = Groups(placed.of_cells, count)
    return Incorporated(
        out,
        got,
        born,
        facts_by_window(groups, cells),
        (np.arange(len(live)), placed.of_live),
        int(late.count.sum()) if late is not None else 0,
        finished,
        late,
        eager_ghosts(op, out),
        lambda: (cells.of_row()[0], placed.of_cells[cells.of_row()[1]]),
    )


def facts_by_window(groups: Groups, cells: Cells) -> dict[str, np.ndarray]:
    """The facts that triggers want to know, summed by window."""
    facts = {name: sum_int64(groups, values) for name, values in cells.facts.items()}
    facts["rows"] = sum_int64(groups, cells.count)
    return facts


def place(op: Compiled, live: Live, cells: Cells) -> Placement:
    """Which windows the windows in hand and the cells become, all together."""
    if len(live) == 0:
        return Placement(np.empty(0, np.int64), np.arange(len(cells)), cells.start, cells.end)
    keys = [pa.concat_arrays([a, b]) for a, b in zip(live.keys, cells.keys, strict=True)]
    start = np.concatenate([live.num["start"], cells.start])
    end = np.concatenate([live.num["end"], cells.end])
    cut = len(live)
    if op.grouping.window.merging:
        merged = op.grouping.window.merge(group_rows(keys, len(start))[0].codes, start, end)
        return Placement(merged.window_id[:cut], merged.window_id[cut:], merged.start, merged.end)
    groups, first = group_rows([*keys, pa.array(start), pa.array(end)], len(start))
    return Placement(groups.codes[:cut], groups.codes[cut:], start[first], end[first])


def first_keys(live: Live, cells: Cells, placed: Placement) -> list[pa.Array]:
    """The keys of the windows that come out."""
    if len(live) == 0 and len(cells) == len(placed):
        return cells.keys
    members = np.concatenate([placed.of_live, placed.of_cells])
    first = np.full(len(placed), len(members))
    np.minimum.at(first, members, np.arange(len(members)))
    at = pa.array(first)
    return [pa.concat_arrays([a, b]).take(at) for a, b in zip(live.keys, cells.keys, strict=True)]


def carry_over(
    op: Compiled,
    live: Live,
    placed: Placement,
    keys: list[pa.Array],
    before: int,
    moment_of: Callable[[Live], Moment],
) -> Live:
    """The windows that come out, with everything of their sources but the contents: identity, trigger, debts."""
    count, into = len(placed), placed.of_live
    out = op.shape.fresh(count, keys, given={"start": placed.start, "end": placed.end})
    op.trigger.begin(out.num, np.ones(count, np.bool_), moment_of(out))
    if len(live) == 0:
        out.num["born_late"] = before >= placed.end
        return out
    same = (live.num["start"] == placed.start[into]) & (live.num["end"] == placed.end[into])
    known = np.zeros(count, np.bool_)
    known[into[same]] = True
    out.num["born_late"] = ~known & (before >= placed.end)
    for name in IDENTITY:
        out.num[name][into[same]] = live.num[name][same]
    np.logical_or.at(out.num["fresh"], into, live.num["fresh"])
    alone = np.bincount(into, minlength=count)[into] == 1
    plain = same & alone
    for name in out.num:
        if name not in BASE:
            out.num[name][into[plain]] = live.num[name][plain]
    if not plain.all():
        op.trigger.merge(live.num, out.num, into, ~plain, moment_of(out))
    if live.owed is not None:
        out.owed = regroup(live.owed, into, count)
    return out


def _add_contents(op: Compiled, out: Live, live: Live, cells: Cells, placed: Placement) -> None:
    count = len(placed)
    if len(live) == 0 and len(cells) == count:
        out.num.update((name, getattr(cells, name)) for name in ("weight", *EXTENT) if name in out.num)
        out.acc = cells.acc
        return
    for name, further in (("earliest", np.minimum), ("latest", np.maximum)):
        if name in out.num:
            further.at(out.num[name], placed.of_live, live.num[name])
            further.at(out.num[name], placed.of_cells, getattr(cells, name))
    groups = Groups(np.concatenate([placed.of_live, placed.of_cells]), count)
    out.num["weight"] = sum_counts(groups, np.concatenate([live.num["weight"], cells.weight]))
    both = tuple(pa.concat_arrays([a, b]) for a, b in zip(live.acc, cells.acc, strict=True))
    out.acc = op.plan.merge(groups, both)


def eager_ghosts(op: Compiled, out: Live) -> pa.Table | None:
    """What windows that stopped to exist had emitted, taken back at once; forgets it in `out`."""
    grouping = op.grouping
    if not (grouping.retracting and grouping.eager_retractions) or out.owed is None:
        return None
    owner = owners(out.owed)
    items = out.owed.flatten()
    starts = np.asarray(items.field("start")) if len(items) else np.empty(0, np.int64)
    ends = np.asarray(items.field("end")) if len(items) else np.empty(0, np.int64)
    gone = (starts != out.num["start"][owner]) | (ends != out.num["end"][owner])
    gone &= ~op.trigger.done(out.num)[owner]  # nothing would come in the place of what a finished window showed
    if not gone.any():
        return None
    places = np.flatnonzero(gone)
    windows = np.unique(owner[places])
    rank = np.empty(len(out), np.int64)
    rank[windows[sort_windows(out.keys, out.num, windows)]] = np.arange(len(windows))
    places = places[np.lexsort((ends[places], starts[places], rank[owner[places]]))]
    ghosts = Emitter(op).retractions(out, owner[places], items.take(pa.array(places)))
    left = items.filter(pa.array(~gone))
    out.owed = listed(left, np.bincount(owner[~gone], minlength=len(out)), out.owed.type)
    return ghosts
