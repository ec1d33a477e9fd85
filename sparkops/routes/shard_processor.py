"""A shard of a stage on Spark's stateful operator: it loads its state, takes a batch, and saves its state."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from ...errors import StateMismatch
from ...panes import OperatorState, Watermarks
from ...panes.chunks.cache import ChunkCache
from ...panes.chunks.log import load, save
from ...panes.chunks.manifest import bytes_of, extra_of
from ...panes.chunks.store import cuts
from ...panes.left_out import LEFT_OUT, LeftOut
from ...panes.operators.stateful import StatefulOperator
from ...panes.shard.arrivals import arrivals, clock_of
from ...panes.shard.malloc import keep_memory
from ...panes.shard.parcels import Parcel
from ...panes.shard.shard import Played, Shard
from ...windows.times import MAX_TIME
from ..wire import WIRE_DDL
from .checkpoint_fingerprint import Fingerprint, differences
from .stored_watermarks import restored, stored
from .tasks import LiftLive, Passing, Stopwatch, shown

if TYPE_CHECKING:
    from pyspark.sql.streaming import StatefulProcessorHandle

    from ..spark_private import ExpiredTimerInfo, TimerValues

OUT_PANES = 262_144
OUT_BYTES = 256 << 20
"""The bytes of panes that go to Spark at once, since a column of bytes must stay below 2 GiB."""

COUNTS = (
    "rows_in",
    "rows_uncombined",
    "panes_early",
    "panes_on_time",
    "panes_late",
    "retractions",
    "rows_dropped",
    "rows_finished",
    "rows_unassigned",
    "rows_bad",
    "windows_held",
    "chunks",
    "state_bytes",
    "read_us",
    "lift_us",
    "load_us",
    "step_us",
    "save_us",
)
"""The counts of a shard in a batch. Counts of state are those after the batch. Counts in microseconds are the times of
reading rows and combining them in the lift tasks, of loading the state, of the step, and of saving the state."""

CLOCKS = ("watermark", "output_watermark", "processing_time")

OUT_DDL = f"{WIRE_DDL}, numbers array<bigint>"
"""Packed rows, and one row a shard with its counts and clocks in order; one column for all is cheaper to send."""

_BYTES = StructType([StructField("value", BinaryType())])
_ID = StructType([StructField("id", LongType())])

_CACHE = ChunkCache.shared()
"""One cache a process, so that a worker that continues a shard reads nothing. Its files are shared by the host."""


class MapLog:
    """Spark's map state as storage for the chunk log."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def get(self, id: int, /) -> bytes | None:
        found = self.state.getValue((id,))
        return None if found is None else bytes(found[0])

    def put(self, id: int, value: bytes, /) -> None:
        self.state.updateValue((id,), (value,))

    def remove(self, id: int, /) -> None:
        self.state.removeKey((id,))


@dataclass(frozen=True)
class ShardTask:
    """The work of a shard on its parcels; a value that travels to the workers."""

    operator: Callable[[], StatefulOperator]
    """Makes the operator of the shard."""
    inputs: tuple[Watermarks, ...]
    """The watermarks of each input before any report."""
    fingerprint: Fingerprint
    strategies: tuple[str, ...]
    """The watermark strategy of each input, as text. Under another one the sources have other names."""
    ports: tuple[int, ...] = ()
    """For each input, the input of the operator to which its rows go."""
    then: LiftLive | None = None
    late: pa.Schema | None = None
    whole: bool = False
    """True if the watermark runs from the beginning to the end of time in each bundle."""
    left_out: LeftOut | None = None
    """The form of the rows that are left out, if they are shown."""

    def fresh(self, operator: StatefulOperator) -> Shard:
        """A shard without stored state."""
        return Shard.start(operator, *self.inputs, ports=self.ports)

    def out(self, shard: int, played: Sequence[Played]) -> Iterator[tuple[int, int, bytes]]:
        """The packed rows for the next stage, or the packed panes, and packed rows that were left out."""
        if self.left_out is not None:
            yield from packed(shard, LEFT_OUT, self.left_out.table(played))
        if self.then is not None:
            yield from Passing(self.then, f"shard {shard}")(played)
            return
        tables = [shown(instant, self.late) for instant in played]
        tables = [table for table in tables if table.num_rows]
        if not tables:
            return
        yield from packed(shard, "panes", pa.concat_tables(tables))


def packed(shard: int, kind: str, rows: pa.Table) -> Iterator[tuple[int, int, bytes]]:
    """Rows as packed parcels of one kind, none of them too large."""
    for start in range(0, rows.num_rows, OUT_PANES):
        some = rows.slice(start, OUT_PANES)
        for first, stop in cuts(some, OUT_BYTES):
            yield shard, 0, Parcel(kind, some.slice(first, stop - first)).pack()


class ShardProcessor(StatefulProcessor):
    """Spark calls it with the packed rows of each shard, and when a timer of the shard is due."""

    def __init__(self, task: ShardTask) -> None:
        self.task = task
        self._operator: StatefulOperator | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        keep_memory()
        self.handle = handle
        self.manifest = handle.getValueState("manifest", _BYTES)
        self.log = MapLog(handle.getMapState("chunks", _ID, _BYTES))

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        # Parcels come in any order, and a repeated batch has another order, so they are sorted by their bytes.
        packed = sorted(bytes(payload) for frame in rows for payload in frame["payload"])
        parcels = [Parcel.unpack(payload) for payload in packed]
        yield from self._batch(int(key[0]), parcels, timerValues.getCurrentProcessingTimeInMs())

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        yield from self._batch(int(key[0]), [], timerValues.getCurrentProcessingTimeInMs())

    def close(self) -> None:
        pass

    @property
    def operator(self) -> StatefulOperator:
        """The operator, made for the first batch."""
        if self._operator is None:
            self._operator = self.task.operator()
        return self._operator

    def _batch(self, shard: int, parcels: list[Parcel], now: int) -> Iterator[pd.DataFrame]:
        task, clock = self.task, Stopwatch()
        found = self.manifest.get()
        kept = None if found is None else bytes(found[0])
        extra = None if kept is None else self._stored_extra(kept)
        loaded = load(kept, self.log, self.operator, _CACHE)
        running, timer = replace(task.fresh(self.operator), state=loaded.state), None
        if extra is not None:
            marks = restored(extra, task.inputs, task.strategies)
            running, timer = replace(running, watermarks=marks), extra["timer"]
        before, load_us = running.state, clock.lap()
        given = arrivals(parcels, len(task.inputs), task.whole)
        running, played = running.play(*given, until=clock_of(parcels, now * 1000 if now >= 0 else None))
        step_us = clock.lap()
        due = self._timer(timer, running.next_timer) if now >= 0 else None
        manifest = save(running.state, loaded, self.log, self._extra(running, due))
        self.manifest.update((manifest,))
        about = counted(before, running, parcels, played)
        about |= {"state_bytes": bytes_of(manifest), "load_us": load_us, "step_us": step_us}
        passing = ((shard, 0, parcel.pack()) for parcel in parcels if parcel.kind == LEFT_OUT)
        yield from frames(chain(passing, task.out(shard, played)), about | {"save_us": clock.lap()})

    def _timer(self, old: int | None, next_timer: int | None) -> int | None:
        """Set Spark's timer to the first millisecond at which the next timer is due."""
        due = None if next_timer is None else -(-next_timer // 1000)
        if due != old:
            if old is not None:
                self.handle.deleteTimer(old)
            if due is not None:
                self.handle.registerTimer(due)
        return due

    def _extra(self, running: Shard, timer: int | None) -> bytes:
        known = stored(running.watermarks, self.task.strategies)
        return json.dumps({"made_by": self.task.fingerprint, **known, "timer": timer}).encode()

    def _stored_extra(self, manifest: bytes) -> Mapping[str, Any]:
        """The extra that was stored with the state; raise if it is of another pipeline."""
        extra: Mapping[str, Any] = json.loads(extra_of(manifest))
        if changed := differences(extra["made_by"], self.task.fingerprint):
            raise StateMismatch(changed)
        return extra


def counted(
    before: OperatorState, running: Shard, parcels: Sequence[Parcel], played: Iterable[Played]
) -> dict[str, int]:
    """The counts of a shard in a batch."""
    state = running.state
    early = on_time = late = back = 0
    for instant in played:
        panes = instant.panes
        if panes.num_rows == 0 or "pane" not in panes.schema.names:
            continue
        new = pc.greater(panes["diff"], 0)
        timing = pc.struct_field(panes["pane"], "timing").filter(new)
        early += pc.sum(pc.equal(timing, "EARLY")).as_py() or 0
        on_time += pc.sum(pc.equal(timing, "ON_TIME")).as_py() or 0
        late += pc.sum(pc.equal(timing, "LATE")).as_py() or 0
        back += panes.num_rows - len(timing)
    rows = uncombined = 0
    for parcel in parcels:
        if parcel.kind == "cells":
            rows += (pc.sum(parcel.table["count"]).as_py() or 0) + parcel.bad + parcel.unassigned
        elif parcel.kind == "rows":
            rows += parcel.table.num_rows
            uncombined += parcel.table.num_rows
    counts, old = state.counts, before.counts
    return {
        "rows_in": rows,
        "rows_uncombined": uncombined,
        "panes_early": early,
        "panes_on_time": on_time,
        "panes_late": late,
        "retractions": back,
        "rows_dropped": counts.dropped - old.dropped,
        "rows_finished": counts.finished - old.finished,
        "rows_unassigned": counts.unassigned - old.unassigned,
        "rows_bad": counts.bad - old.bad,
        "windows_held": running.operator.held(state),
        "chunks": sum(len(store.chunks) for store in state.stores.values() if store is not None),
        "read_us": sum(parcel.spent[0] for parcel in parcels),
        "lift_us": sum(parcel.spent[1] for parcel in parcels),
        "watermark": state.watermark,
        "output_watermark": state.output_watermark,
        "processing_time": running.watermarks.now,
    }


def frames(rows: Iterable[tuple[int, int, bytes]], about: Mapping[str, int]) -> Iterator[pd.DataFrame]:
    """The result for Spark: the packed rows, and a row without a payload that has the counts."""
    held: list[tuple[int, int, bytes | None]] = []
    size = 0
    for shard, lo, payload in rows:
        if held and size + len(payload) > OUT_BYTES:
            yield _frame(held, [None] * len(held))
            held, size = [], 0
        held.append((shard, lo, payload))
        size += len(payload)
    numbers = [max(min(about[name], MAX_TIME), -MAX_TIME) for name in (*COUNTS, *CLOCKS)]
    yield _frame([*held, (0, 0, None)], [*([None] * len(held)), numbers])


def _frame(rows: Sequence[tuple[int, int, bytes | None]], numbers: list[Any]) -> pd.DataFrame:
    shards, los, payloads = zip(*rows, strict=True)
    return pd.DataFrame(
        {
            "shard": np.array(shards, np.int32),
            "lo": np.array(los, np.int32),
            "payload": pd.Series(payloads, dtype=object),
            "numbers": pd.Series(numbers, dtype=object),
        }
    )
