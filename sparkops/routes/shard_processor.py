"""A shard of a stage on Spark's stateful operator: it loads its state, takes a batch, and saves its state."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import nsmallest
from itertools import chain
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import StateMismatch
from ...flows.fingerprint.differences import differences
from ...flows.fingerprint.flow import Fingerprint
from ...flows.left_out import LEFT_OUT, LeftOut
from ...flows.seeds import under_lateness
from ...panes import OperatorState, Watermarks
from ...panes.grouping.pane_columns import TIMINGS
from ...panes.parcels import Parcel
from ...panes.shard.arrivals import arrivals, clock_of
from ...panes.shard.shard import Instant, Shard, with_first
from ...panes.stage import StageLift
from ...panes.state.cache import ChunkCache
from ...panes.state.chunk_log import load, save
from ...panes.state.lateness import Lateness
from ...panes.state.manifest import bytes_of, extra_of
from ...panes.state.operator import StatefulOperator
from ...panes.state.pane_type import PANE
from ...panes.state.shard_seed import ShardSeed
from ...panes.watermarks.stored_watermarks import OF_A_STEP, read_extra, restored, stored
from ...panes.watermarks.watermarks import InputWatermarks
from ...windows.times import MIN_TIME
from ..tuning.worker import ready
from ..wire import shard_ids, whole
from .shard_rows import LATENESS, Packed, PanesAsColumns, as_text, packed, packed_frames, pieces_of
from .tasks import LiftLive, PaneLift

if TYPE_CHECKING:
    from pyspark.sql.streaming import StatefulProcessorHandle

    from ..spark_private import ExpiredTimerInfo, TimerValues

_CACHE = ChunkCache.shared()
"""One cache a process, so that a worker that continues a shard reads nothing. Its files are shared by the host."""


MOST_SOURCES = 100
"""The sources that the progress of a batch tells; the checkpoint has all."""


MOST_SECONDS = 1 << 52
"""The most seconds of lateness of a shard in a batch, so that those of all shards fit in 64 bits."""


class MapLog:
    """Spark's map state as storage for the chunk log."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def get(self, id: int, /) -> bytes | None:
        row = self.state.getValue((id,))
        return None if row is None else bytes(row[0])

    def put(self, id: int, value: bytes, /) -> None:
        self.state.updateValue((id,), (value,))

    def remove(self, id: int, /) -> None:
        self.state.removeKey((id,))


class Stopwatch:
    """Measures durations, in microseconds."""

    def __init__(self) -> None:
        self.last = perf_counter_ns()

    def lap(self) -> int:
        """The microseconds since the last lap, or since the start."""
        now = perf_counter_ns()
        self.last, spent = now, now - self.last
        return spent // 1000


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
    readers: tuple[LiftLive, ...] = ()
    """The lifts of the steps that read the panes."""
    shows: bool = True
    """True if the panes are rows of a result."""
    place: int | None = None
    """The place of the step among those that share an operator of Spark; None if it has one of its own."""
    whole: bool = False
    """True if the watermark runs from the beginning to the end of time in each bundle."""
    left_out: LeftOut | None = None
    """The form of the rows that are left out, if they are shown."""
    columns: PanesAsColumns | None = None
    """The form in which panes go to Spark as columns; None if they go as packed parcels."""
    same: tuple[str, ...] = ()
    """The steps that compute what they computed before, although they are written otherwise."""
    seed: ShardSeed | None = None
    """The part of a seed with which the shards begin."""
    lift: Callable[[], StageLift] | None = None
    """Makes the lift of the step, which says which shard a row of the seed belongs to."""
    corrected: bool = False
    """True if the corrections of the last step have been shown already, as a table does before the first batch."""
    lags: tuple[int, ...] = ()
    """For each input, the length of time from its reports to the latest event time; none is as 0."""

    @property
    def ids(self) -> tuple[int, ...]:
        """The numbers of the shards of the step."""
        return shard_ids(self.fingerprint["shards"], self.place or 0)

    def fresh(self, operator: StatefulOperator) -> Shard:
        """A shard without stored state."""
        return Shard.start(operator, *self.inputs, ports=self.ports)

    def begun(self, fresh: Shard, shard: int) -> Shard:
        """A shard without stored state, with its part of the seed."""
        assert self.seed is not None
        ids, operator = self.ids, fresh.operator
        place = ids.index(shard)
        assert self.lift is not None
        state = self.seed.state(operator, place, len(ids), partial(self.lift().routes, operator))
        marks = self.seed.watermarks(self.inputs, self.strategies, place, len(ids))
        return replace(fresh, state=state, watermarks=marks)

    def corrections(self, begun: Shard, shard: int) -> Iterator[pa.Table]:
        """The panes that the state of the seed takes for shown, and that the shard shows first."""
        if self.seed is None or (self.corrected and self.shows):
            return iter(())
        tables = self.seed.corrections(begun.operator.output_schema, self.ids.index(shard), len(self.ids))
        return chain.from_iterable(map(pieces_of, tables))

    def frames(
        self,
        shard: int,
        passing: Iterable[Packed],
        first: Iterable[pa.Table],
        instants: Sequence[Instant],
        counted: str,
    ) -> Iterator[pd.DataFrame]:
        """The rows for Spark: what is only passing, panes that come first, what the shard played, and its counts."""
        if self.columns is not None:
            return self.columns.frames(chain(first, self._shown(instants)), counted)
        return packed_frames(chain(passing, self._packed(shard, first, instants)), counted)

    def _packed(self, shard: int, first: Iterable[pa.Table], instants: Sequence[Instant]) -> Iterator[Packed]:
        """The packed rows for the next stage, or the packed panes, and packed rows that were left out."""
        if self.left_out is not None:
            yield from packed(shard, LEFT_OUT, pieces_of(self.left_out.table(instants)))
        panes = list(first) if self.readers else first
        for reader in self.readers:
            yield from PaneLift(reader, f"shard {shard}")(with_first(instants, list(panes)))
        if self.shows:
            yield from packed(shard, "panes", chain(panes, self._shown(instants)))

    def _shown(self, instants: Sequence[Instant]) -> Iterator[pa.Table]:
        """The panes in pieces."""
        if some := [instant.panes for instant in instants if instant.panes.num_rows]:
            yield from pieces_of(pa.concat_tables(some))


class ShardProcessor:
    """It is called with the packed rows of each shard, and when a timer of the shard is due, by a `ThinProcessor`."""

    def __init__(self, task: ShardTask) -> None:
        self.task = task
        self._operator: StatefulOperator | None = None

    def begin(self, handle: StatefulProcessorHandle, manifest: Any, chunks: Any) -> None:
        """Take the state of a task."""
        ready()
        self.handle, self.manifest, self.log = handle, manifest, MapLog(chunks)

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        # Parcels come in any order, and a repeated batch has another order, so they are sorted by their bytes.
        payloads = whole((0, 0, payload) for frame in rows for payload in frame["payload"])
        packed = sorted(payload.to_pybytes() for _, _, payload in payloads)
        parcels = [Parcel.unpack(payload) for payload in packed]
        yield from self._batch(int(key[0]), parcels, timerValues.getCurrentProcessingTimeInMs())

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        yield from self._batch(int(key[0]), [], timerValues.getCurrentProcessingTimeInMs())

    @property
    def operator(self) -> StatefulOperator:
        """The operator, made for the first batch."""
        if self._operator is None:
            self._operator = self.task.operator()
        return self._operator

    def _batch(self, shard: int, parcels: list[Parcel], now: int) -> Iterator[pd.DataFrame]:
        task, clock = self.task, Stopwatch()
        row = self.manifest.get()
        old_manifest = None if row is None else bytes(row[0])
        extra = None if old_manifest is None else self._stored_extra(old_manifest)
        loaded = load(old_manifest, self.log, self.operator, _CACHE)
        running, timer = replace(task.fresh(self.operator), state=loaded.state), None
        first: Iterator[pa.Table] = iter(())
        if extra is None and task.seed is not None:
            running = task.begun(running, shard)
            first = task.corrections(running, shard)
        if extra is not None:
            marks = restored(extra, task.inputs, task.strategies)
            state = under_lateness(running.state, extra["made_by"], task.fingerprint)
            running, timer = replace(running, state=state, watermarks=marks), extra["timer"]
        before, load_us = running.state, clock.lap()
        by_input = arrivals(parcels, len(task.inputs), task.whole)
        running, instants = running.play(*by_input, until=clock_of(parcels, now * 1000 if now >= 0 else None))
        step_us = clock.lap()
        due = self._timer(timer, running.next_timer) if now >= 0 else None
        manifest = save(running.state, loaded, self.log, self._extra(running, due))
        self.manifest.update((manifest,))
        about = counted(before, running, parcels, instants)
        about |= {"state_bytes": bytes_of(manifest), "load_us": load_us, "step_us": step_us}
        about["latest"] = latest(running.watermarks, task.lags)
        passing = ((shard, 0, parcel.pack()) for parcel in parcels if parcel.kind == LEFT_OUT)
        first_shard = shard == task.ids[0]
        sources = sources_text(running.watermarks, task.strategies) if first_shard else ""
        yield from task.frames(
            shard, passing, first, instants, as_text(about | {"save_us": clock.lap()}, sources, task.place)
        )

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
        marks = stored(running.watermarks, self.task.strategies)
        return json.dumps({"made_by": self.task.fingerprint, **marks, "timer": timer}).encode()

    def _stored_extra(self, manifest: bytes) -> Mapping[str, Any]:
        """The extra that was stored with the state; raise if it is of another pipeline."""
        extra = read_extra(extra_of(manifest))
        try:
            changed = differences(extra["made_by"], self.task.fingerprint, self.task.same)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            raise StateMismatch(
                "the stored state of a shard does not name the flow that made it as this library does: it is damaged, "
                "so restore the checkpoint from a copy"
            ) from error
        if changed:
            raise StateMismatch(changed)
        return extra


def sources_text(marks: InputWatermarks, strategies: Sequence[str]) -> str:
    """The sources of a step that hold its watermark or are next, as JSON: input, name, time, last report, and if idle.

    Those of a topic have their offset and their end, too. An input that has not reported is a source without a time.
    They are the same for all shards.

    >>> one = InputWatermarks((Watermarks({"a": (5, 7), "b": (3, 7)}),), 3, 7)
    >>> sources_text(one, ["BoundedLag()"])
    '[[1, "b", 3, 7, false], [1, "a", 5, 7, false]]'
    """
    rows = (
        (place, name, time, last, one.idles(name) if one.sources else one.idle, *one.reads.get(name or "", ())[:2])
        for place, (one, strategy) in enumerate(zip(marks.inputs, strategies, strict=True), 1)
        if strategy != OF_A_STEP
        for name, (time, last) in (one.sources or {None: (MIN_TIME, one.since)}).items()
    )
    return json.dumps(nsmallest(MOST_SOURCES, rows, key=lambda row: (row[4], row[2], str(row[1]))))


def latest(marks: InputWatermarks, lags: Sequence[int]) -> int:
    """The latest event time that a source of a step has seen, as its reports tell: it is the same for all shards.

    >>> one = InputWatermarks((Watermarks({"a": (5, 7), "b": (3, 7)}),), 3, 7)
    >>> latest(one, [10])
    15
    """
    return max(
        (
            time + lag
            for one, lag in zip(marks.inputs, lags or (0,) * len(marks.inputs), strict=True)
            for time, _ in one.sources.values()
            if time > MIN_TIME
        ),
        default=MIN_TIME,
    )


def counted(
    before: OperatorState, running: Shard, parcels: Sequence[Parcel], instants: Iterable[Instant]
) -> dict[str, int]:
    """The counts of a shard in a batch."""
    state = running.state
    of_timing, out, back, lateness = np.zeros(len(TIMINGS), np.int64), 0, 0, Lateness()
    for instant in instants:
        panes, lateness = instant.panes, lateness + instant.result.lateness
        if panes.num_rows == 0:
            continue
        if "pane" not in panes.schema.names or panes.schema.field("pane").type != PANE:
            out += panes.num_rows
            continue
        new = pc.greater(panes["diff"], 0)
        timing = pc.struct_field(panes["pane"], "timing").filter(new)
        numbers = pc.index_in(timing, value_set=pa.array(TIMINGS)).drop_null()
        of_timing += np.bincount(numbers, minlength=len(TIMINGS))
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
        **{f"panes_{name.lower()}": int(count) for name, count in zip(TIMINGS, of_timing, strict=True)},
        "rows_out": out,
        "retractions": back,
        "rows_dropped": counts.dropped - old.dropped,
        "rows_finished": counts.finished - old.finished,
        "rows_unassigned": counts.unassigned - old.unassigned,
        "rows_bad": counts.bad - old.bad,
        "windows_held": running.operator.count_entries(state),
        "chunks": sum(len(store.chunks) for store in state.stores.values() if store is not None),
        "watermark": state.watermark,
        "output_watermark": state.output_watermark,
        "processing_time": running.watermarks.now,
        **dict(zip(LATENESS, lateness.rows, strict=True)),
        "lateness_seconds": min(lateness.seconds, MOST_SECONDS),
    }
