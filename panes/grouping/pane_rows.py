"""Panes as rows: the records of windows that fire, and records as rows of the output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...combiners.rows.columns import Column
from ...combiners.rows.groups import stable_order
from ...combiners.rows.ordering import order_keys
from ...windows import result_times, timestamps
from ...windows.times import FIRST, LAST, MAX_TIME, UTC_MICROS
from ..state.pane_type import PANE
from .compiled import CompiledGrouping
from .contents import contents
from .loaded_windows import LoadedWindows, extent
from .pane_columns import CAUSES, TIMINGS, VALUE, WINDOW


@dataclass(frozen=True)
class FiringWindows:
    """The windows that fire in one phase, as masks, and what their panes have in common."""

    cause: str
    """The phase, one of `CAUSES`."""
    watermark: int
    processing_time: int
    output_watermark: int
    fired: np.ndarray
    last: np.ndarray
    """True where no further pane follows."""
    cleared: np.ndarray
    """True where the window is emptied when it fires."""
    percentiles: Mapping[float, int]
    """The percentiles of the watermark that the trigger waits for."""
    tags: np.ndarray | None = None
    """The tags of the user triggers that fired in each window, as one text; None if there are none."""


def timings(windows: LoadedWindows, watermark: int) -> np.ndarray:
    """The place in `TIMINGS` of a pane of each window at this watermark: early, on time or late."""
    passed = watermark >= windows.num["end"]
    on_time = passed & ~windows.num["born_late"] & ~windows.num["on_time_given"]
    return np.where(~passed, 0, np.where(on_time, 1, 2))


def pane_records(
    compiled: CompiledGrouping, windows: LoadedWindows, fired: np.ndarray, timing: np.ndarray, firing: FiringWindows
) -> pa.StructArray:
    """The panes of the windows at the places `fired`, without keys, as they are kept while they are outstanding."""
    num = {name: windows.num[name][fired] for name in ("start", "end", "index", "nonspeculative")}
    earliest, latest = extent(windows.num)
    count = len(fired)
    values = compiled.results(num["start"], contents(compiled, windows, fired))
    floor = firing.output_watermark if compiled.grouping.window.may_be_endless else None
    event_time = result_times(
        compiled.grouping.policy, num["start"], num["end"], earliest[fired], latest[fired], firing.watermark, floor
    )
    arrays = {
        **num,
        "event_time": event_time,
        "nonspeculative": np.where(timing == 0, -1, num["nonspeculative"]),
        "timing": timing.astype(np.int8),
        "is_last": firing.last[fired],
        "cause": np.full(count, CAUSES.index(firing.cause), np.int8),
    }
    columns = {name: pa.array(column) for name, column in arrays.items()}
    columns["watermark"] = _reading(firing.watermark, count)
    columns["processing_time"] = _reading(firing.processing_time, count)
    if compiled.record.get_field_index("percentile") >= 0:
        percent = np.full(count, np.nan)
        for percentile in sorted(firing.percentiles):
            percent[firing.percentiles[percentile] >= num["end"]] = percentile
        columns["percentile"] = pa.array(percent, mask=np.isnan(percent))
    if compiled.record.get_field_index("tags") >= 0:
        tags = np.full(count, "", np.object_) if firing.tags is None else firing.tags[fired]
        columns["tags"] = pa.array(tags, pa.string(), mask=tags == "")
    columns |= {VALUE + field.name: column for field, column in zip(compiled.plan.outputs, values, strict=True)}
    fields = list(compiled.record)
    return pa.StructArray.from_arrays([columns[field.name] for field in fields], fields=fields)


def output_rows(
    compiled: CompiledGrouping, keys: Sequence[pa.Array], records: pa.StructArray, diff: np.ndarray
) -> pa.Table:
    """Records with their keys and diffs as rows of the output."""
    parts = dict(zip((field.name for field in compiled.record), records.flatten(), strict=True))
    schema = compiled.output_schema
    columns = [
        *keys,
        window_column(parts["start"], parts["end"]),
        *(parts[VALUE + field.name] for field in compiled.plan.outputs),
        timestamps(as_numpy(parts["event_time"])),
        pa.array(diff, pa.int64()),
        pane_column(parts, compiled.since),
    ]
    columns = [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def pane_column(parts: Mapping[str, pa.Array], since: Mapping[str, int] | None = None) -> pa.StructArray:
    """The column `pane`; `since` has the times since which combiners are there that were added later."""
    index, cause = parts["index"], pa.array(CAUSES).take(parts["cause"])
    return pa.StructArray.from_arrays(
        [
            index,
            parts["nonspeculative"],
            pa.array(TIMINGS).take(parts["timing"]),
            pa.array(as_numpy(index) == 0),
            parts["is_last"],
            parts["watermark"],
            parts["percentile"] if "percentile" in parts else pa.nulls(len(index), pa.float64()),
            parts["processing_time"],
            pc.coalesce(parts["tags"], cause) if "tags" in parts else cause,
            _since(as_numpy(parts["start"]), since) if since else pa.nulls(len(index), UTC_MICROS),
        ],
        fields=list(PANE),
    )


def _since(start: np.ndarray, since: Mapping[str, int]) -> pa.Array:
    """The last of the times that are after the start of each window; null where none is."""
    last = max(since.values())
    return pc.if_else(pa.array(start < last), pa.scalar(last).cast(UTC_MICROS), None)


def window_column(start: pa.Array, end: pa.Array) -> pa.StructArray:
    """The column `window`; null for the window of all time."""
    ends = as_numpy(end)
    endless = ends == MAX_TIME
    mask = pa.array(endless) if endless.any() else None
    return pa.StructArray.from_arrays([timestamps(as_numpy(start)), timestamps(ends)], fields=list(WINDOW), mask=mask)


def sort_windows(compiled: CompiledGrouping, windows: LoadedWindows, chosen: np.ndarray) -> np.ndarray:
    """The order of the windows at the places `chosen` by (key, start, end)."""
    at, window = pa.array(chosen), compiled.grouping.window
    columns = [Column(key.take(at)) for key in windows.keys]
    # Two windows of a key that differ in their ends only are possible in some windows only.
    apart = window.end_follows_start or window.merges_by_overlap
    columns += [Column(pa.array(windows.num[name][chosen])) for name in (("start",) if apart else ("start", "end"))]
    keys = order_keys(columns)
    if keys.span >= 2**48:
        return np.argsort(keys.keys, kind="stable")
    return stable_order(keys.keys - keys.low, keys.span)


def same_values(a: pa.Array, b: pa.Array) -> np.ndarray:
    """True where two columns hold the same value; null equals null, and NaN equals NaN."""
    if pa.types.is_nested(a.type):
        size = len(a)
        both = pa.concat_arrays([a, b]).to_pylist()  # nested results are few and have no columnar equality
        return np.array([repr(both[i]) == repr(both[size + i]) for i in range(size)], np.bool_)
    equal = pc.fill_null(pc.equal(a, b), False)
    equal = pc.or_(equal, pc.and_(pc.is_null(a), pc.is_null(b)))
    if pa.types.is_floating(a.type):
        equal = pc.or_(equal, pc.fill_null(pc.and_(pc.is_nan(a), pc.is_nan(b)), False))
    return np.asarray(equal)


def as_numpy(array: pa.Array) -> np.ndarray:
    """The values of an Arrow array as a numpy array."""
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _reading(time: int, count: int) -> pa.Array:
    """The reading of a clock; null before it has started, at the end of time, and outside the years 1 to 9999."""
    if not FIRST <= time <= LAST:
        return pa.nulls(count, UTC_MICROS)
    return timestamps(np.full(count, time))
