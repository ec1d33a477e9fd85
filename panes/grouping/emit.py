"""Windows fire: their panes and retractions are emitted, and the windows keep what later panes depend on.

Guarded by tests/panes/grouping/test_rules.py and test_golden.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ...windows.times import MAX_TIME
from .compiled import CompiledGrouping
from .loaded_windows import EXTENT, LoadedWindows
from .outstanding import OutstandingPanes, with_one_more
from .pane_columns import VALUE
from .pane_rows import FiringWindows, as_numpy, output_rows, pane_records, same_values, sort_windows, timings


@dataclass(frozen=True)
class _Emission:
    """The windows that fire and have something to show, in their order in hand, with an entry for each."""

    places: np.ndarray
    """The place of each window in hand."""
    order: np.ndarray
    """The entries in the order of their panes."""
    timing: np.ndarray
    records: pa.StructArray
    """The new pane of each."""
    emitted: np.ndarray
    """True where the new pane is emitted."""
    retracted: np.ndarray
    """True where the outstanding panes of the window are retracted."""


def emit(
    compiled: CompiledGrouping, windows: LoadedWindows, firing: FiringWindows
) -> tuple[LoadedWindows, list[pa.Table]]:
    """The windows after a firing, and the rows of output of those that fire, if there are any."""
    timing = timings(windows, firing.watermark)
    shows = windows.num["fresh"]
    if compiled.grouping.on_time == "always":
        shows = shows | (timing == 1)
    if firing.cause == "expiry" and compiled.grouping.closing == "always":
        shows = np.ones(len(windows), np.bool_)
    fired = np.flatnonzero(firing.fired & shows)
    if len(fired) == 0:
        return windows, []
    emission = _emission(compiled, windows, fired, timing[fired], firing)
    after = _emptied(compiled, _emitted(windows, emission), fired[firing.cleared[fired]])
    return after, [_output(compiled, windows, emission)]


def _emission(
    compiled: CompiledGrouping, windows: LoadedWindows, fired: np.ndarray, timing: np.ndarray, firing: FiringWindows
) -> _Emission:
    grouping = compiled.grouping
    records = pane_records(compiled, windows, fired, timing, firing)
    has_rows = np.ones(len(fired), np.bool_)
    if grouping.changelog and grouping.retracting:
        has_rows = windows.num["weight"][fired] != 0
    emitted, retracted = has_rows, np.zeros(len(fired), np.bool_)
    if grouping.only_updated:
        emitted = emitted & ~_unchanged(compiled, windows, fired, records)
    if grouping.retracting:
        retracted = emitted | ~has_rows
    return _Emission(
        places=fired,
        order=sort_windows(compiled, windows, fired),
        timing=timing,
        records=records,
        emitted=emitted,
        retracted=retracted,
    )


def _unchanged(
    compiled: CompiledGrouping, windows: LoadedWindows, fired: np.ndarray, records: pa.StructArray
) -> np.ndarray:
    """True where the window has exactly one outstanding pane and the new pane equals it."""
    assert windows.outstanding is not None
    same = windows.outstanding.sizes[fired] == 1
    rows = np.flatnonzero(same)
    old = windows.outstanding.records.take(pa.array(windows.outstanding.of_windows(fired[rows])[1]))
    new = records.take(pa.array(rows))
    for name in ("start", "end", *(VALUE + field.name for field in compiled.plan.outputs)):
        same[rows] &= same_values(old.field(name), new.field(name))
    return same


def _output(compiled: CompiledGrouping, windows: LoadedWindows, emission: _Emission) -> pa.Table:
    """Rows of output: windows in order, the retractions of a window before its new pane."""
    order, records = emission.order, emission.records
    fired = emission.places[order]
    keys = [key.take(pa.array(fired)) for key in windows.keys]
    emitted, retracted = emission.emitted[order], emission.retracted[order]
    new = np.flatnonzero(emitted)
    if not retracted.any() or windows.outstanding is None or not len(windows.outstanding):
        at = pa.array(new)
        keys, records = [k.take(at) for k in keys], records.take(pa.array(order[new]))
        return output_rows(compiled, keys, records, np.ones(len(new), np.int64))
    old, chosen = windows.outstanding.records, np.flatnonzero(retracted)
    which, back = windows.outstanding.of_windows(fired[chosen])
    owner = chosen[which]
    if (owner[1:] == owner[:-1]).any():  # those of windows that merged stand in the order in which they were kept
        by_time = np.lexsort((as_numpy(old.field("end"))[back], as_numpy(old.field("start"))[back], owner))
        owner, back = owner[by_time], back[by_time]
    sizes, is_new = with_one_more(np.bincount(owner, minlength=len(fired)), new)
    places = np.empty(len(is_new), np.int64)
    places[~is_new], places[is_new] = back, len(old) + order[new]
    both = pa.concat_arrays([old, records]).take(pa.array(places))
    at = pa.array(np.repeat(np.arange(len(fired)), sizes))
    return output_rows(compiled, [k.take(at) for k in keys], both, np.where(is_new, 1, -1))


def _emitted(windows: LoadedWindows, emission: _Emission) -> LoadedWindows:
    """The windows after their panes: counted, with nothing fresh, and with what is outstanding now."""
    fired, emitted = emission.places, emission.emitted
    num = {**windows.num, **{name: windows.num[name].copy() for name in _CHANGED}}
    later = fired[emitted & (emission.timing > 0)]
    num["index"][fired[emitted]] += 1
    num["nonspeculative"][later] += 1
    num["on_time_given"][later] = True
    num["fresh"][fired] = False
    return replace(windows, num=num, outstanding=_outstanding(windows, emission))


_CHANGED = ("index", "nonspeculative", "on_time_given", "fresh")
"""The numbers of a window that change when it fires."""


def _outstanding(windows: LoadedWindows, emission: _Emission) -> OutstandingPanes | None:
    """The panes of each window that are outstanding after these were emitted and others retracted."""
    if windows.outstanding is None:
        return None
    shown = np.flatnonzero(emission.emitted)
    gone = np.zeros(len(windows), np.bool_)
    gone[emission.places[emission.emitted | emission.retracted]] = True
    records = emission.records if len(shown) == len(emission.records) else emission.records.take(pa.array(shown))
    return windows.outstanding.without(gone).followed(records, emission.places[shown])


def _emptied(compiled: CompiledGrouping, windows: LoadedWindows, gone: np.ndarray) -> LoadedWindows:
    """The windows with the contents of those at the places `gone` removed."""
    if len(gone) == 0:
        return windows
    places = np.arange(len(windows))
    places[gone] = len(windows)
    at = pa.array(places)
    zero = compiled.plan.zero(1)
    acc = tuple(pa.concat_arrays([a, z]).take(at) for a, z in zip(windows.acc, zero, strict=True))
    num, outstanding = dict(windows.num), windows.outstanding
    for name, (_, value) in EXTENT.items():
        if name in num:  # in a window without end, rows that come next are not before those that came
            values = num[name].copy()
            endless = (num["end"][gone] == MAX_TIME) & (name == "latest")
            values[gone] = np.where(endless, values[gone], value)
            num[name] = values
    emptied = np.zeros(len(windows), np.bool_)
    emptied[gone] = True
    if outstanding is not None and not compiled.grouping.retracting:
        # The next pane shows other rows, so that it is emitted even if its values are equal.
        outstanding = outstanding.without(emptied)
    deposits = None if windows.deposits is None else windows.deposits.without(emptied)
    return replace(windows, num=num, acc=acc, outstanding=outstanding, deposits=deposits)


def retract_ended(compiled: CompiledGrouping, windows: LoadedWindows) -> tuple[LoadedWindows, list[pa.Table]]:
    """Retract the outstanding panes of windows that ended in a merge or a split, where that is wanted at once."""
    grouping, outstanding = compiled.grouping, windows.outstanding
    if not (grouping.retracting and grouping.eager_retractions) or outstanding is None:
        return windows, []
    owner, starts, ends = outstanding.owner, outstanding.number("start"), outstanding.number("end")
    ended = (starts != windows.num["start"][owner]) | (ends != windows.num["end"][owner])
    if not grouping.changelog:
        # A finished window emits nothing in their place. Over a changelog the rows of such windows change nothing.
        ended &= ~compiled.trigger.done(windows.trigger)[owner]
    if not ended.any():
        return windows, []
    places = np.flatnonzero(ended)
    chosen = np.unique(owner[places])
    rank = np.empty(len(windows), np.int64)
    rank[chosen[sort_windows(compiled, windows, chosen)]] = np.arange(len(chosen))
    places = places[np.lexsort((ends[places], starts[places], rank[owner[places]]))]
    at = pa.array(owner[places])
    keys = [key.take(at) for key in windows.keys]
    records = outstanding.records.take(pa.array(outstanding.places[places]))
    retractions = output_rows(compiled, keys, records, np.full(len(places), -1))
    return replace(windows, outstanding=outstanding.where(~ended)), [retractions]


def cleared(mode: str, requests: Mapping[str, np.ndarray]) -> np.ndarray:
    """True where a window is emptied when it fires; of what the triggers ask for, "clear" wins."""
    match mode:
        case "discarding":
            return np.ones(len(requests["clear"]), np.bool_)
        case "discarding_by_default":
            return requests["clear"] | ~requests["accumulate"]
        case "accumulating_by_default" | "retracting_by_default":
            return requests["clear"]
        case _:
            return np.zeros(len(requests["clear"]), np.bool_)
