"""A stand-in for Spark's streaming engine: it runs the tasks of a flow itself, its state in dictionaries."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from uncombine.flows.flow import Flow
from uncombine.flows.graph import Feed, Leaf, Step
from uncombine.panes.grouping.stage import GroupingStage
from uncombine.panes.parcels import AT
from uncombine.panes.transforms import applied
from uncombine.sparkops.routes import shard_processor as processor
from uncombine.sparkops.routes.shard_processor import ShardProcessor
from uncombine.sparkops.routes.shard_rows import CLOCKS, COUNTS, PanesAsColumns
from uncombine.sparkops.routes.streaming import ShowPanes, StreamRoute
from uncombine.sparkops.routes.tasks import Clocks, LiftLive, alone
from uncombine.sparkops.routes.thin_processor import ThinProcessor, thin
from uncombine.sparkops.spark_private import arrow_of
from uncombine.sparkops.wire import WIRE

Packed = tuple[int, bytes]
"""A shard, and a parcel for it."""


class Value:
    """A value state of one shard."""

    def __init__(self, store: dict[Any, Any]) -> None:
        self.store = store

    def get(self) -> tuple[Any, ...] | None:
        return self.store.get("value")

    def update(self, value: tuple[Any, ...]) -> None:
        self.store["value"] = value


class Map:
    """A map state of one shard."""

    def __init__(self, store: dict[Any, Any]) -> None:
        self.store = store

    def getValue(self, key: tuple[Any, ...]) -> tuple[Any, ...] | None:
        return self.store.get(key)

    def updateValue(self, key: tuple[Any, ...], value: tuple[Any, ...]) -> None:
        self.store[key] = value

    def removeKey(self, key: tuple[Any, ...]) -> None:
        del self.store[key]


@dataclass
class Handle:
    """The state of one shard in the state store."""

    states: dict[str, dict[Any, Any]] = field(default_factory=dict)
    timers: set[int] = field(default_factory=set)

    def getValueState(self, name: str, schema: str) -> Value:
        return Value(self.states.setdefault(name, {}))

    def getMapState(self, name: str, key: str, value: str) -> Map:
        return Map(self.states.setdefault(name, {}))

    def registerTimer(self, at: int) -> None:
        assert at not in self.timers
        self.timers.add(at)

    def deleteTimer(self, at: int) -> None:
        self.timers.remove(at)

    def copy(self) -> Handle:
        return Handle({name: dict(store) for name, store in self.states.items()}, set(self.timers))


@dataclass(frozen=True)
class Now:
    """The time of a batch, as the processor is told it."""

    ms: int

    def getCurrentProcessingTimeInMs(self) -> int:
        return self.ms


class Engine:
    """Runs micro-batches through the tasks of a streaming flow as Spark would, its state in dictionaries.

    With a seed, parcels come in any order, and rows are cut into tasks, unless triggers see them one by one;
    `restart` forgets all that workers remember.
    """

    def __init__(
        self,
        flow: Flow,
        seed: int | None = None,
        restored: dict[tuple[int, int], Handle] | None = None,
        beside: bool = False,
    ) -> None:
        self.flow, self.random = flow, None if seed is None else random.Random(seed)
        self.route = route = StreamRoute(flow, getattr(flow.source, "input", None), beside)  # type: ignore[arg-type]
        self.ids, self.graph = route.ids, route.graph
        self.tasks = {step: route.task(step, route.then(step)) for step in self.graph.steps}
        self.timed = route.wakes
        self.store: dict[tuple[int, int], Handle] = {} if restored is None else restored
        self.restart()

    def restart(self) -> None:
        """New workers, on a host that was never used."""
        self.processors: dict[tuple[int, int], ThinProcessor] = {}
        processor._CACHE = type(processor._CACHE)()

    def snapshot(self) -> dict[tuple[int, int], Handle]:
        """The values in the store now."""
        return {key: handle.copy() for key, handle in self.store.items()}

    def batch(
        self, rows: pa.Table | list[pa.Table] | Mapping[str, pa.Table] | None, now: int | None = None
    ) -> tuple[pa.Table, list[dict[str, int]]]:
        """The panes of one micro-batch, and what each stage counted.

        Rows may be those of several tasks, or of several sources by their names; `now` is the batch's time in
        milliseconds.
        """
        sources = rows if isinstance(rows, Mapping) else {None: rows}
        tasks = {leaf: self._cut(sources.get(leaf.settings.name, sources.get(None))) for leaf in self.graph.leaves}
        sent: dict[Step, list[Packed]] = {}
        panes: dict[Step, pa.Table] = {}
        counted = []
        for step in self.graph.steps:
            whole = self._stage(step, self._packed(step, tasks, sent, now), now)
            counted.append(_counts(whole))
            columns = self.tasks[step].columns
            if columns is None:
                sent[step] = _parcels(whole)
            else:
                panes[step] = from_columns(whole, self.route.schema, columns)
        shown = [self.route.schema.empty_table()]
        for feed in self.graph.ends:
            if isinstance(feed.origin, Step):
                shown.append(panes[feed.origin] if feed.origin in panes else self._shown(feed, sent[feed.origin]))
            else:
                rows_of = (applied(feed.transforms, task.select(feed.schema.names)) for task in tasks[feed.origin])
                shown += [alone(table, self.route.left_out_schema) for table in rows_of]
        return pa.concat_tables(shown), counted

    def _cut(self, rows: pa.Table | list[pa.Table] | None) -> list[pa.Table]:
        """The rows of one source as those of tasks."""
        if not isinstance(rows, pa.Table):
            return rows or []
        first = self.flow.stages[0] if self.flow.stages else None
        one_by_one = isinstance(first, GroupingStage) and first.grouping.granularity == "record"
        if self.random is None or one_by_one or rows.num_rows < 2 or self.random.random() < 0.5:
            return [rows]
        cut = self.random.randrange(1, rows.num_rows)
        return [rows.slice(0, cut), rows.slice(cut)]

    def _packed(
        self,
        step: Step,
        tasks: Mapping[Leaf, list[pa.Table]],
        sent: Mapping[Step, list[Packed]],
        now: int | None,
    ) -> list[Packed]:
        """Everything on its way to the shards of a step."""
        packed: list[Packed] = []
        for place, feed in enumerate(step.feeds):
            if isinstance(feed.origin, Step):
                packed += sent[feed.origin]
                continue
            lift = self.route.lift(step, place)
            for rows in tasks[feed.origin]:
                times = self._times(feed.origin, rows, now)
                packed += _sent(lift, rows.select(lift.schema.names).append_column(AT, times))
        own = self.graph.leaves_of(step)
        for leaf in self.graph.leaves:
            if leaf.settings.processing_time and leaf not in own:
                for rows in tasks[leaf]:
                    packed += _sent(Clocks(self.ids), pa.table({AT: self._times(leaf, rows, now)}))
        return packed

    def _times(self, leaf: Leaf, rows: pa.Table, now: int | None) -> pa.Array | pa.ChunkedArray:
        """The processing times of rows."""
        at = leaf.settings.processing_time
        if at is not None:
            return rows[at].cast(pa.int64())
        assert now is not None
        return pa.repeat(pa.scalar(now * 1000), rows.num_rows)

    def _stage(self, step: Step, packed: list[Packed], now: int | None) -> pd.DataFrame:
        stage = step.number - 1
        clock = Now(-1 if not self.timed or now is None else now)
        if self.random is not None:
            self.random.shuffle(packed)
        by_shard: dict[int, list[bytes]] = {}
        for shard, payload in packed:
            by_shard.setdefault(shard, []).append(payload)
        frames: list[pd.DataFrame] = []
        for shard, payloads in by_shard.items():
            frame = pd.DataFrame({"shard": shard, "lo": 0, "payload": payloads})
            halves = [frame.iloc[: len(frame) // 2], frame.iloc[len(frame) // 2 :]]
            frames += list(self._processor(step, shard).handleInputRows((shard,), iter(halves), clock))
        for (at, shard), handle in list(self.store.items()):
            due = [t for t in handle.timers if at == stage and t <= clock.ms]
            for timer in due:
                frames += list(self._processor(step, shard).handleExpiredTimer((shard,), clock, timer))
                handle.timers.discard(timer)
        return joined(frames)

    def _processor(self, step: Step, shard: int) -> ThinProcessor:
        place = step.number - 1, shard
        if place not in self.processors:
            made = thin(ShardProcessor(self.tasks[step]))
            made.init(self.store.setdefault(place, Handle()))
            self.processors[place] = made
        return self.processors[place]

    def _shown(self, feed: Feed, packed: list[Packed]) -> pa.Table:
        wire = pa.record_batch(
            {
                "shard": pa.array([shard for shard, _ in packed], pa.int32()),
                "lo": pa.array([0] * len(packed), pa.int32()),
                "payload": pa.array([payload for _, payload in packed], pa.binary()),
            }
        )
        show = ShowPanes(feed.transforms, self.flow.schema, self.route.left_out_schema)
        return pa.Table.from_batches(list(show([wire])), self.route.schema)


def _sent(task: LiftLive | Clocks, rows: pa.Table) -> list[Packed]:
    """The rows for the shuffle, which a second attempt of the task must give again."""
    found = crossing(task([rows]))
    assert Counter(crossing(task([rows]))) == Counter(found)
    return [(shard, payload) for shard, _, payload in found]


def crossing(batches: Iterable[pa.RecordBatch]) -> list[tuple[int, int, bytes]]:
    """The rows that cross the shuffle: those with a negative place are counted before it."""
    rows = [row for b in batches for row in zip(*(b[name].to_pylist() for name in WIRE.names), strict=True)]
    return [row for row in rows if row[1] >= 0]


def joined(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """All that the shards of a stage gave."""
    given = list(frames)
    return pd.concat(given) if given else pd.DataFrame()


def _counts(whole: pd.DataFrame) -> dict[str, int]:
    """The counts of the shards of a stage, in the form of the query's progress."""
    if not len(whole):
        return {}
    told = np.array([text.partition("|")[0].split() for text in whole["counted"].dropna()], np.int64)
    numbers = dict(zip(COUNTS, told.sum(axis=0).tolist(), strict=False))
    return numbers | dict(zip(CLOCKS, told[:, len(COUNTS) :].min(axis=0).tolist(), strict=True))


def _parcels(whole: pd.DataFrame) -> list[Packed]:
    if not len(whole):
        return []
    rows = whole[whole["payload"].notna()]
    return list(zip(rows["shard"].tolist(), rows["payload"].tolist(), strict=True))


def from_columns(whole: pd.DataFrame, schema: pa.Schema, form: PanesAsColumns) -> pa.Table:
    """The panes that left a shard as columns without structs, put together as Spark does it.

    PySpark takes the columns as they are, so they must have the names and types that Spark was told.
    """
    told = {field.name: arrow_of(field.dataType) for field in form.schema}
    assert not len(whole) or {name: kind.pyarrow_dtype for name, kind in whole.dtypes.items()} == told
    rows = whole[whole["counted"].isna()] if len(whole) else whole
    if not len(rows):
        return schema.empty_table()
    columns = {name: pa.chunked_array(rows[name].array.__arrow_array__()).combine_chunks() for name in rows.columns}
    small = [(columns[name].to_pylist(), 0) for name in columns if name.startswith("b")]
    values = iter(columns[name] for name in columns if name.startswith("c") and name != "counted")

    def number(width: int) -> list[int]:
        """The next small number of each row; they stand one after another, in numbers of at most 62 bits."""
        while small[0][1] + width > 62:
            small.pop(0)
        (joined, at), rest = small[0], small[1:]
        small[:] = [(joined, at + width), *rest]
        return [every >> at & (1 << width) - 1 for every in joined]

    def column(path: tuple[str, ...], kind: pa.DataType) -> pa.Array:
        if pa.types.is_struct(kind):
            given = pa.array(number(1)).cast(pa.bool_())
            parts = [column((*path, field.name), field.type) for field in kind]
            return pa.StructArray.from_arrays(parts, fields=list(kind), mask=pc.invert(given))
        if pa.types.is_boolean(kind):
            given, true = number(1), number(1)
            return pa.array([bool(t) if g else None for g, t in zip(given, true, strict=True)], pa.bool_())
        if path in form.rows.few:
            few = [None, *form.rows.few[path]]
            chosen = number((len(few) - 1).bit_length()) if len(few) > 1 else [0] * len(rows)
            return pa.array([few[i] for i in chosen], kind)
        return next(values).cast(kind)

    return pa.table([column((field.name,), field.type) for field in schema], schema)
