"""The calls of a user's function in one step: for timers of processing time, for rows, and for timers of event time.

The loops are in Python because the function sees one row or timer at a time.

Guarded by tests/panes/process/test_process.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import Column, flat
from ...combiners.rows.hashing import hash_rows, hash_rows_128
from ...errors import InvalidArgument, TypeMismatch
from ...windows import time_column, timestamps
from ...windows.times import LAST, UTC_MICROS
from ..rows.equal_rows import netted
from ..rows.options import AdmittedRows, output
from .broadcast import BroadcastRows
from .context import BroadcastContext, EmittedRow, KeyContext, Scene
from .process import Process

MOST_AT_THE_END = 100_000
"""Timers of one key that may fire as the watermark goes to the end of time; more are taken for an endless chain."""


CalledRow: TypeAlias = tuple[dict[str, Any], int, int]
"""A row as a dict, its event time and its weight."""


@dataclass(frozen=True)
class Calls:
    """The calls for the keys of a step."""

    process: Process
    scene: Scene
    contexts: Sequence[KeyContext]

    def processing_timers(self, now: int) -> None:
        """Timers of processing time that are due, each at its own time."""
        for ctx in self.contexts:
            for tag, timer in ctx.advance("processing", now):
                self.scene.processing_time = timer.time
                self._timer(ctx, tag)
        self.scene.processing_time = now

    def rows(self, codes: np.ndarray, bundle: AdmittedRows, broadcast: BroadcastRows | None = None) -> None:
        """The rows in their order, each broadcast row before the rows of its time."""
        rows = zip(codes.tolist(), called_rows(bundle), strict=True)
        if broadcast is not None:
            start, places = 0, np.searchsorted(bundle.times, broadcast.rows.times)
            for place, row in zip(places.tolist(), called_rows(broadcast.rows), strict=True):
                self._rows(islice(rows, place - start))
                self._broadcast(broadcast, *row)
                start = place
        self._rows(rows)

    def _rows(self, rows: Iterable[tuple[int, CalledRow]]) -> None:
        on_row, contexts = self.process.function.on_row, self.contexts
        for code, (row, time, diff) in rows:
            ctx = contexts[code]
            ctx.time, ctx.diff = time, diff
            try:
                on_row(row, ctx.state, ctx)
            except Exception as error:
                error.add_note(f"in {self.process.name}.on_row() for the key {ctx.key!r}")
                raise

    def _broadcast(self, broadcast: BroadcastRows, row: dict[str, Any], time: int, diff: int) -> None:
        """The calls for a broadcast row: that for the shard, and those for the keys that have state."""
        process, scene = self.process, self.scene
        about = BroadcastContext(time=time, diff=diff, watermark=scene.watermark, processing_time=scene.processing_time)
        try:
            process.function.on_broadcast(dict(row), broadcast.shared.values, about)
        except Exception as error:
            error.add_note(f"in {process.name}.on_broadcast()")
            raise
        for ctx in self.contexts if broadcast.calls_keys else ():
            if not ctx.alive:
                continue
            # A broadcast row is never late, so its time may be before that of any result.
            ctx.time, ctx.diff = max(time, scene.floor), diff
            try:
                process.function.on_broadcast_key(dict(row), ctx.key, ctx.state, ctx)
            except Exception as error:
                error.add_note(f"in {process.name}.on_broadcast_key() for the key {ctx.key!r}")
                raise

    def event_timers(self, watermark: int) -> None:
        """The watermark advances, and timers of event time that it passes fire."""
        self.scene.watermark = watermark
        for ctx in self.contexts:
            for fired, (tag, _) in enumerate(ctx.advance("event", watermark)):
                self._timer(ctx, tag)
                if watermark > LAST and fired > MOST_AT_THE_END:
                    raise InvalidArgument(
                        f"the timer {tag!r} of {self.process.name} is set again and again as the input ends: set "
                        "it only where ctx.ended is false"
                    )

    def _timer(self, ctx: KeyContext, tag: str) -> None:
        self.process.check_timers()
        try:
            self.process.function.on_timer(tag, ctx)
        except Exception as error:
            error.add_note(f"in {self.process.name}.on_timer({tag!r}) for the key {ctx.key!r}")
            raise


def called_rows(rows: AdmittedRows) -> Iterator[CalledRow]:
    """Rows as functions get them."""
    user = rows.rows.column_names[:-1]
    columns = [python_values(flat(rows.rows[name])) for name in user]
    weights = [1] * len(rows) if rows.weights is None else rows.weights.tolist()
    values = zip(*columns, strict=True) if columns else ((),) * len(rows)
    for some, time, diff in zip(values, rows.times.tolist(), weights, strict=True):
        yield dict(zip(user, some, strict=True)), time, diff


def python_values(column: pa.Array) -> list[Any]:
    """The values of a column as Python objects; those of timestamps many times faster than by Arrow.

    >>> python_values(pa.array([0, None], pa.timestamp("us", "UTC")))
    [datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.timezone.utc), None]
    """
    kind = column.type
    if kind not in (pa.timestamp("us"), UTC_MICROS) or not time_column(column)[1][np.asarray(column.is_valid())].all():
        return column.to_pylist()
    values = column.to_numpy(zero_copy_only=False).tolist()
    if kind.tz is None:
        return values
    return [None if value is None else value.replace(tzinfo=UTC) for value in values]


def emitted_table(
    emitted: Sequence[EmittedRow], process: Process, keys: Sequence[pa.Array], schema: pa.Schema
) -> pa.Table:
    """The rows of output: retractions first, then by time, by key and in the order in which they were emitted."""
    if not emitted:
        return schema.empty_table()
    number = np.array([row.key for row in emitted], np.int64)
    times = np.array([row.time for row in emitted], np.int64)
    weights = np.array([row.diff for row in emitted], np.int64)
    of_key = [key.take(pa.array(number)) for key in keys]
    columns = [*of_key, *_emitted_columns(emitted, process), timestamps(times)]
    rows = pa.Table.from_arrays(columns, schema=schema.remove(len(schema) - 1))
    places = np.arange(len(emitted))
    if int(weights.min()) < 0:
        places, weights = _netted_rows(rows, weights, [row.output for row in emitted], process)
    hashes = hash_rows([Column(key) for key in of_key])[places] if of_key else np.zeros(len(places), np.uint64)
    order = np.lexsort((places, hashes, times[places], weights > 0))
    return output(rows.take(pa.array(places[order])), weights[order], schema)


def _netted_rows(
    rows: pa.Table, weights: np.ndarray, of_rows: Sequence[str], process: Process
) -> tuple[np.ndarray, np.ndarray]:
    """The places and weights of the rows that are left, where the rows of each output that retracts some are netted."""
    of_output, names = np.array(of_rows), set(process.by_output)
    places, left = list[np.ndarray](), list[np.ndarray]()
    for name in names & set(of_rows):
        own = np.flatnonzero(of_output == name)
        sums = weights[own]
        if int(sums.min()) < 0:
            columns = rows.take(own).drop_columns(list(names - {name}))
            _, first, sums = netted(*hash_rows_128([Column(column) for column in columns.columns]), sums)
            own, sums = own[first[sums != 0]], sums[sums != 0]
        places.append(own)
        left.append(sums)
    return np.concatenate(places), np.concatenate(left)


def _emitted_columns(emitted: Sequence[EmittedRow], process: Process) -> list[pa.Array | pa.ChunkedArray]:
    """The columns of `process.emitted` for some rows."""
    name = f"{process.name}.output"
    try:
        if process.outputs is None:
            return pa.Table.from_pylist([row.values for row in emitted], process.emitted).columns
        columns = []
        for field in process.emitted:
            name = f"the output {field.name!r}" if field.name else name
            columns.append(pa.array([row.values if row.output == field.name else None for row in emitted], field.type))
        return columns
    except (pa.ArrowException, OverflowError) as error:
        raise TypeMismatch(f"a row that {process.name} emits does not fit {name}: {error}") from None


__all__ = ["Calls", "emitted_table"]
