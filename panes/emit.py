"""Panes: what a firing makes of the contents of windows, and what it takes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..combiners.columns import Column
from ..combiners.groups import Groups, stable_order
from ..combiners.ordering import order_keys
from ..windows import result_times, timestamps
from ..windows.times import MAX_TIME, MIN_TIME, UTC_MICROS
from .compiled import Compiled
from .live import EXTENT, Live, extent, list_sizes, listed, owners
from .pane_columns import PANE, TIMINGS


@dataclass(frozen=True)
class Firing:
    """The windows that fire in one phase, and what is said about them."""

    fired: np.ndarray
    cause: str
    watermark: int
    processing_time: int
    last: np.ndarray
    output_watermark: int
    percent: np.ndarray | None = None


class Emitter:
    """Makes rows of output out of windows that fire."""

    def __init__(self, compiled: Compiled) -> None:
        self.grouping, self.plan = compiled.grouping, compiled.plan
        self.record, self.schema = compiled.record, compiled.output_schema

    def timing(self, live: Live, watermark: int) -> np.ndarray:
        """0 early, 1 on time, 2 late, for a pane of each window at this watermark."""
        passed = watermark >= live.num["end"]
        on_time = passed & ~live.num["born_late"] & ~live.num["on_time_given"]
        return np.where(~passed, 0, np.where(on_time, 1, 2))

    def panes(self, live: Live, firing: Firing, cleared: np.ndarray) -> list[pa.Table]:
        """The output of the windows that fire; updates `live` in place for what was shown and is owed."""
        grouping = self.grouping
        timing = self.timing(live, firing.watermark)
        shows = live.num["fresh"].copy()
        if grouping.on_time == "always":
            shows |= timing == 1
        if firing.cause == "expiry" and grouping.closing == "always":
            shows |= True
        fired = np.flatnonzero(firing.fired & shows)
        if len(fired) == 0:
            return []
        fired = fired[sort_windows(live.keys, live.num, fired)]
        records = self._records(live, fired, timing[fired], firing)
        holds = np.ones(len(fired), np.bool_)
        if grouping.changelog and grouping.mode == "retracting":
            holds = live.num["weight"][fired] != 0
        emitted = holds.copy()
        taken = np.zeros(len(fired), np.bool_)
        if grouping.keeps_last:
            assert live.owed is not None
            if grouping.only_updated:
                emitted &= ~self._unchanged(live, fired, records)
            if grouping.retracting:
                taken = emitted | ~holds
        out = self._output(live, fired, records, emitted, taken)
        self._remember(live, fired, records, emitted, taken, timing[fired])
        live.num["fresh"][fired] = False
        self._clear(live, fired[cleared[fired]])
        return out

    def retractions(self, live: Live, rows: np.ndarray, records: pa.Array) -> pa.Table:
        """Records taken back; `rows[i]` is the window in hand that owes record i."""
        keys = [key.take(pa.array(rows)) for key in live.keys]
        return self.output(keys, records, np.full(len(records), -1))

    def output(self, keys: Sequence[pa.Array], records: pa.Array, diff: np.ndarray) -> pa.Table:
        """Records as rows of output."""
        start, end, *values, event_time, pane = records.flatten()
        window = self._window(start, end)
        columns = [*keys, window, *values, timestamps(_numpy(event_time)), pa.array(diff, pa.int64()), pane]
        columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, self.schema, strict=True)]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _window(self, start: pa.Array, end: pa.Array) -> pa.Array:
        ends = _numpy(end)
        fields = [timestamps(_numpy(start)), timestamps(ends)]
        everywhere = ends == MAX_TIME
        mask = pa.array(everywhere) if everywhere.any() else None
        return pa.StructArray.from_arrays(fields, fields=list(self.schema.field("window").type), mask=mask)

    def _records(self, live: Live, fired: np.ndarray, timing: np.ndarray, firing: Firing) -> pa.Array:
        num = {name: live.num[name][fired] for name in ("start", "end", "index", "nonspeculative")}
        earliest, latest = extent(live.num)
        at = pa.array(fired)
        values = self.plan.extract(tuple(a.take(at) for a in live.acc))
        floor = firing.output_watermark if self.grouping.window.may_be_endless else None
        event_time = result_times(
            self.grouping.policy, num["start"], num["end"], earliest[fired], latest[fired], firing.watermark, floor
        )
        count = len(fired)
        percent = pa.nulls(count, pa.float64())
        if firing.percent is not None:
            chosen = firing.percent[fired]
            percent = pa.array(chosen, mask=np.isnan(chosen))
        pane = pa.StructArray.from_arrays(
            [
                pa.array(num["index"]),
                pa.array(np.where(timing == 0, -1, num["nonspeculative"])),
                pa.array(TIMINGS).take(pa.array(timing)),
                pa.array(num["index"] == 0),
                pa.array(firing.last[fired]),
                _moment(firing.watermark, count),
                percent,
                _moment(firing.processing_time, count),
                pa.repeat(pa.scalar(firing.cause), count),
            ],
            fields=list(PANE),
        )
        columns = [pa.array(num["start"]), pa.array(num["end"]), *values, pa.array(event_time), pane]
        return pa.StructArray.from_arrays(columns, fields=list(self.record))

    def _unchanged(self, live: Live, fired: np.ndarray, records: pa.Array) -> np.ndarray:
        """Where the one record owed has the window and the values of the new one."""
        assert live.owed is not None
        owed = live.owed.take(pa.array(fired))
        sizes = list_sizes(owed)
        single = sizes == 1
        same = single.copy()
        if not single.any():
            return same
        rows = np.flatnonzero(single)
        old = owed.flatten().take(pa.array(np.repeat(single, sizes).nonzero()[0]))
        new = records.take(pa.array(rows))
        alike = np.ones(len(rows), np.bool_)
        for field in list(self.record)[:-2]:
            alike &= same_values(old.field(field.name), new.field(field.name))
        same[rows] = alike
        return same

    def _output(
        self, live: Live, fired: np.ndarray, records: pa.Array, emitted: np.ndarray, taken: np.ndarray
    ) -> list[pa.Table]:
        """Retractions of a window before its new value, windows in order."""
        keys = [key.take(pa.array(fired)) for key in live.keys]
        if not taken.any():
            places = pa.array(np.flatnonzero(emitted))
            return [self.output([k.take(places) for k in keys], records.take(places), np.ones(len(places), np.int64))]
        assert live.owed is not None
        old = live.owed.flatten()
        owner, back = _items_of(live.owed, fired, np.flatnonzero(taken))
        if (owner[1:] == owner[:-1]).any():  # debts of windows that merged stand in the order in which they were kept
            by_time = np.lexsort((_numpy(old.field("end"))[back], _numpy(old.field("start"))[back], owner))
            owner, back = owner[by_time], back[by_time]
        new = np.flatnonzero(emitted)
        window = np.concatenate([owner, new])
        order = stable_order(window, len(fired))
        # Records are wide, so they are moved once, by places worked out beforehand.
        places = np.concatenate([back, len(old) + new])[order]
        both = pa.concat_arrays([old, records]).take(pa.array(places))
        diff = np.concatenate([np.full(len(owner), -1), np.ones(len(new), np.int64)])[order]
        at = pa.array(window[order])
        return [self.output([k.take(at) for k in keys], both, diff)]

    def _remember(
        self,
        live: Live,
        fired: np.ndarray,
        records: pa.Array,
        emitted: np.ndarray,
        taken: np.ndarray,
        timing: np.ndarray,
    ) -> None:
        counted = fired[emitted]
        live.num["index"][counted] += 1
        live.num["nonspeculative"][fired[emitted & (timing > 0)]] += 1
        live.num["on_time_given"][fired[emitted & (timing > 0)]] = True
        if live.owed is None:
            return
        replaced = emitted | taken
        owner = owners(live.owed)
        forget = np.zeros(len(live), np.bool_)
        forget[fired[replaced]] = True
        kept = ~forget[owner]
        by_owner = Groups(np.concatenate([owner[kept], fired[emitted]]), len(live))
        places = np.concatenate([np.flatnonzero(kept), len(owner) + np.flatnonzero(emitted)])[by_owner.order]
        items = pa.concat_arrays([live.owed.flatten(), records]).take(pa.array(places))
        live.owed = listed(items, by_owner.sizes, live.owed.type)

    def _clear(self, live: Live, gone: np.ndarray) -> None:
        if len(gone) == 0:
            return
        zero = self.plan.zero(1)
        places = np.arange(len(live))
        places[gone] = len(live)
        at = pa.array(places)
        live.acc = tuple(pa.concat_arrays([a, z]).take(at) for a, z in zip(live.acc, zero, strict=True))
        for name, (_, nothing) in EXTENT.items():
            if name in live.num:  # where there is no end, what comes next is not before what came
                values = live.num[name].copy()  # they may be those of a parcel
                kept = (live.num["end"][gone] == MAX_TIME) & (name == "latest")
                values[gone] = np.where(kept, values[gone], nothing)
                live.num[name] = values
        if live.owed is not None:
            # What comes next shows other rows, so that even an equal value is news.
            sizes = list_sizes(live.owed)
            kept = np.ones(len(live), np.bool_)
            kept[gone] = False
            items = live.owed.flatten().filter(pa.array(np.repeat(kept, sizes)))
            live.owed = listed(items, np.where(kept, sizes, 0), live.owed.type)


def _items_of(lists: pa.ListArray, rows: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The items of the lists at `rows[chosen]`: which of `chosen` has each, and its place in the flattened lists."""
    sizes = list_sizes(lists)
    first = (np.cumsum(sizes) - sizes)[rows[chosen]]
    many = sizes[rows[chosen]]
    within = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
    return np.repeat(chosen, many), np.repeat(first, many) + within


def cleared(mode: str, requests: Mapping[str, np.ndarray]) -> np.ndarray:
    """Where the contents of windows are cleared when they fire; `requests` is what their triggers ask for."""
    match mode:
        case "discarding":
            return np.ones(len(requests["clear"]), np.bool_)
        case "discarding_by_default":
            return ~requests["accumulate"]
        case "accumulating_by_default":
            return requests["clear"]
        case _:
            return np.zeros(len(requests["clear"]), np.bool_)


def sort_windows(keys: Sequence[pa.Array], num: dict[str, np.ndarray], chosen: np.ndarray) -> np.ndarray:
    """The order of the chosen windows by (key, start, end)."""
    at = pa.array(chosen)
    columns = [Column(key.take(at)) for key in keys]
    columns += [Column(pa.array(num["start"][chosen])), Column(pa.array(num["end"][chosen]))]
    return np.argsort(order_keys(columns).keys, kind="stable")


def same_values(a: pa.Array, b: pa.Array) -> np.ndarray:
    """Where two columns hold the same value, null and NaN counting as values."""
    if pa.types.is_nested(a.type):
        size = len(a)
        codes = pa.concat_arrays([a, b]).to_pylist()  # nested results are few and have no columnar equality
        return np.array([repr(codes[i]) == repr(codes[size + i]) for i in range(size)], np.bool_)
    equal = pc.fill_null(pc.equal(a, b), False)
    equal = pc.or_(equal, pc.and_(pc.is_null(a), pc.is_null(b)))
    if pa.types.is_floating(a.type):
        equal = pc.or_(equal, pc.fill_null(pc.and_(pc.is_nan(a), pc.is_nan(b)), False))
    return np.asarray(equal)


def _moment(time: int, count: int) -> pa.Array:
    """The reading of a clock; null at the beginning and at the end of time."""
    if not MIN_TIME < time < MAX_TIME:
        return pa.nulls(count, UTC_MICROS)
    return timestamps(np.full(count, time))


def _numpy(array: pa.Array) -> np.ndarray:
    return np.asarray(array.to_numpy(zero_copy_only=False))
