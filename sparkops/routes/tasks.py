"""The tasks of Spark's Python workers: they lift rows into parcels, and merge parcels into panes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ...combiners.rows.columns import int64_column
from ...flows.left_out import LEFT_OUT, LeftOut, beside
from ...panes import Grouping
from ...panes.grouping.final_panes import Final
from ...panes.grouping.lift import Lift, keys_alone
from ...panes.parcels import AT, MARKS, READS, Parcel
from ...panes.shard.arrivals import Arrival, all_at_once, arrivals, clock_of
from ...panes.shard.shard import END, Instant, Shard, by_bundle
from ...panes.stage import Stage, StageLift
from ...panes.state.operator import StatefulOperator
from ...panes.transforms import Transform, applied
from ...panes.watermarks.intake import Intake, TimedRows, transformed
from ...panes.watermarks.watermark_strategies import WatermarkStrategy
from ...panes.watermarks.watermarks import Read, Watermarks
from ...windows import Span
from ...windows.times import MIN_TIME
from ..pieces import pieces
from ..sql_types import passed
from ..wire import payloads, wire_batch

MERGE_CELLS = 2_000_000
"""The number of cells that a merging task holds before it sends complete ones on."""

OUT_ROWS = 65_536


def batches_of(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """A table as record batches for Spark."""
    yield from passed(table).combine_chunks().to_batches(max_chunksize=OUT_ROWS)


def alone(rows: pa.Table, left_out: pa.Schema | None) -> pa.Table:
    """Rows of the result; with an empty column for rows that were left out, if that is asked for."""
    return rows if left_out is None else beside(rows, left_out.empty_table())


@dataclass(frozen=True)
class LiftFinal:
    """Combines the rows of one task, for a grouping with final panes only."""

    grouping: Grouping
    schema: pa.Schema
    """The schema of the input rows, before the transforms."""
    transforms: Sequence[Transform]
    ids: tuple[int, ...]

    def __call__(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        lift = self.final.lift(len(self.ids))
        for piece in pieces(tables):
            parcels = lift(applied(self.transforms, piece))
            del piece
            if parcels:
                yield wire_batch((self.ids[shard], parcel.lo, parcel.pack()) for shard, parcel in parcels)

    @property
    def coded(self) -> frozenset[str]:
        """The columns whose texts can stay dictionaries."""
        final = self.final
        return frozenset() if self.transforms or final.as_rows else keys_alone(final.operator.compiled)

    @property
    def final(self) -> Final:
        """The compiled grouping."""
        return Final(self.grouping, applied(self.transforms, self.schema.empty_table()).schema)


@dataclass(frozen=True)
class MergeFinal:
    """Merges the parcels of some shards into panes, or into parcels of the next stage."""

    grouping: Grouping
    schema: pa.Schema
    """The schema of the lifted rows, after their transforms."""
    then: LiftFinal | None = None
    after: Sequence[Transform] = ()
    """The transforms after the last grouping."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        final = Final(self.grouping, self.schema)
        lean = self._panes(final, batches)
        if self.then is not None:
            yield from self.then(final.whole(table) for table in lean)
            return
        for table in lean:
            yield from batches_of(applied(self.after, final.whole(table)) if self.after else table)

    def _panes(self, final: Final, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        if final.as_rows:
            parcels = [Parcel.unpack(payload) for _, _, payload in payloads(batches)]
            if parcels:
                yield final.panes_of_rows(parcels)
            return
        open_parcels: list[Parcel] = []
        cells, reached, has_nothing = 0, (0, 0), False
        for shard, lo, payload in payloads(batches):
            parcel = Parcel.unpack(payload)
            if parcel.kind == "nothing":
                has_nothing = True
                continue
            if cells > MERGE_CELLS and (shard, lo) > reached:
                # Parcels come in the order of their places, so all cells before this place are complete.
                done, open_parcels = final.cut(open_parcels, lo) if shard == reached[0] else (open_parcels, [])
                yield from self._merged(final, done)
                cells = sum(parcel.table.num_rows for parcel in open_parcels)
            open_parcels.append(parcel)
            cells += parcel.table.num_rows
            reached = (shard, lo)
        last = list(self._merged(final, open_parcels))
        # Without keys all cells have the same place, so none was given before.
        yield from [final.nothing()] if has_nothing and not any(table.num_rows for table in last) else last

    def _merged(self, final: Final, parcels: list[Parcel]) -> Iterator[pa.Table]:
        if parcels:
            yield final.lean(final.merged(parcels))


@dataclass(frozen=True)
class LiftLive:
    """Prepares rows for a stage that keeps state, and sends them to its shards with their watermark reports."""

    stage: Stage
    schema: pa.Schema
    """The schema of the input rows, before the transforms."""
    transforms: Sequence[Transform]
    ids: tuple[int, ...]
    time: str = ""
    strategy: WatermarkStrategy | None = None
    """The watermark strategy, over the time column of the source; None after another stage."""
    timed: bool = False
    """True if each row has its own processing time."""
    max_future: Span | None = None
    guards: bool = False
    """True if rows beyond `max_future` lose their times here, because the stage takes rows of any time."""
    input: int = 0
    """The input of the shards to which the parcels go."""
    port: int = 0
    """The port of the operator to which the rows go."""
    rows: bool = False
    """True if all rows must travel as rows, because those that are left out are shown."""
    needed: frozenset[str] | None = None
    """The columns that decide the result, of those of a source; None means all."""
    left_out: LeftOut | None = None
    """The form of rows that are left out, if they are shown."""
    until: int | None = None
    """The event time from which on rows of the source are of another run; None means none."""
    latest: int | None = None
    """The last event time that a row of a history may have; None means no limit."""

    @property
    def unreadable(self) -> Callable[[pa.Table], Iterator[pa.RecordBatch]] | None:
        """Sends rows of files that could not be read past all steps."""
        return None if self.left_out is None else self._past

    def _past(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        assert self.left_out is not None
        parcel = Parcel(LEFT_OUT, self.left_out.unreadable(rows, self.port))
        yield wire_batch([(self.ids[0], 0, parcel.pack())])

    def __call__(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Lift rows of a source, each with its processing time in the column `AT`."""
        lift = self.lift
        for piece in pieces(tables):
            sent = self.lifted_rows(lift, piece)
            del piece
            yield wire_batch(sent)

    def lifted_rows(self, lift: StageLift, piece: pa.Table) -> list[tuple[int, int, bytes]]:
        """The parcels of a piece, and the watermark reports of its rows."""
        if AT not in piece.column_names:  # the rows have no processing times
            piece = piece.append_column(AT, pa.array(np.full(piece.num_rows, MIN_TIME)))
        at = int64_column(piece[AT])
        intake = Intake(
            max_future=self.max_future,
            time=self.time,
            strategy=self.strategy,
            transforms=self.transforms,
            guards=self.guards,
            until=self.until,
            latest=self.latest,
            step_time=self.stage.time,
        )
        return list(self.sent(lift, intake(piece.drop_columns([AT]), at)))

    @property
    def coded(self) -> frozenset[str]:
        """The columns whose texts can stay dictionaries."""
        lift, reporting = self.lift, () if self.strategy is None else self.strategy.columns
        sees_rows = self.transforms or self.timed or self.stage.columns(self.schema) is None
        if sees_rows or not isinstance(lift, Lift) or lift.as_rows:
            return frozenset()
        return keys_alone(lift.compiled) - {self.time, *reporting}

    @property
    def lift(self) -> StageLift:
        """The lift that makes the parcels."""
        return self.stage.lift(self.lifted, len(self.ids), self.timed, self.port, self.rows)

    @property
    def lifted(self) -> pa.Schema:
        """The columns of the rows after the transforms."""
        return applied(self.transforms, self.schema.empty_table()).schema

    def sent(self, lift: StageLift, timed_rows: TimedRows) -> Iterator[tuple[int, int, bytes]]:
        """The parcels of rows, and their watermark reports for every shard."""
        reports = Parcel("marks", timed_rows.reports, input=self.input).pack()
        for number in self.ids:
            yield number, 0, reports
        for shard, parcel in lift(timed_rows.rows, timed_rows.at):
            yield self.ids[shard], parcel.lo, replace(parcel, input=self.input).pack()

    def hold(self, time: int, at: int) -> Iterator[tuple[int, int, bytes]]:
        """The least time of the rows that are not read after the batch of a processing time, for every shard."""
        marks = pa.Table.from_pylist([{"source": None, "time": time, "at": at}], schema=MARKS)
        packed = Parcel("hold", marks, input=self.input).pack()
        for number in self.ids:
            yield number, 0, packed

    def read_to(self, reads: Mapping[str, Read], at: int) -> Iterator[tuple[int, int, bytes]]:
        """The place to which each source is read after the batch of a processing time, for every shard."""
        told = ([read[place] for read in reads.values()] for place in range(3))
        columns = [list(reads), *told, [at] * len(reads)]
        packed = Parcel("reads", pa.table(columns, schema=READS), input=self.input).pack()
        for number in self.ids:
            yield number, 0, packed


@dataclass(frozen=True)
class Clocks:
    """Sends the last processing time of the rows of a task to every shard, and nothing else."""

    ids: tuple[int, ...]
    counts: ClassVar[bool] = False
    """Rows that cannot be read are counted where the rows themselves go."""

    def __call__(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        last = max((int(int64_column(table[AT]).max()) for table in tables if table.num_rows), default=None)
        if last is not None:
            packed = Parcel("clock", MARKS.empty_table(), at=last).pack()
            yield wire_batch((number, 0, packed) for number in self.ids)


@dataclass(frozen=True)
class PaneLift:
    """Turns the panes of a stage into rows for the next grouping, and its watermark into reports."""

    lift: LiftLive
    source: str

    def __call__(self, instants: Iterable[Instant]) -> Iterator[tuple[int, int, bytes]]:
        lift = self.lift.lift
        for at, steps in by_bundle(instants).items():
            mark = {"source": self.source, "time": steps[-1].output_watermark, "at": at}
            marks = pa.Table.from_pylist([mark], schema=MARKS)
            panes = pa.concat_tables(instant.panes for instant in steps)
            yield from self.lift.sent(lift, transformed(self.lift.transforms, panes, at, marks))


def source_names(ids: Iterable[int]) -> list[str]:
    """The names of the shards of a stage, as sources of the watermark of the next stage."""
    return [f"shard {number}" for number in ids]


@dataclass(frozen=True)
class Play:
    """Plays all rows of some shards in order of processing time; gives panes, or parcels of the next stage."""

    operator: Callable[[], StatefulOperator]
    """Makes the operator of the shards."""
    inputs: tuple[Watermarks, ...]
    """The watermarks of each input before any report."""
    ends: bool
    """True if the watermark goes to the end of time after the last row."""
    ports: tuple[int, ...] = ()
    """For each input, the input of the operator to which its rows go."""
    then: LiftLive | None = None
    after: Sequence[Transform] = ()
    whole: bool = False
    """True if the watermark runs from the beginning to the end of time in each bundle."""
    left_out: LeftOut | None = None
    """The form of the rows that are left out, if they are shown."""
    schema: pa.Schema | None = None
    """The columns of the result, for rows that are left out beside it."""
    without_rows: pa.Table | None = None
    """The panes that stand for no rows, if a parcel asks for them."""
    at_once: bool = False
    """True if the rows of all inputs are one bundle at the end, also those of a step before."""

    passing: ClassVar[frozenset[str]] = frozenset()
    """The kinds of parcels that pass the step as they are."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shards: dict[int, list[Parcel]] = {}
        has_nothing = False
        for shard, _, payload in payloads(batches):
            parcel = Parcel.unpack(payload)
            if parcel.kind == "nothing":
                has_nothing = True
                continue
            if parcel.kind == LEFT_OUT:
                yield from self._beside(shard, parcel.table)
                continue
            if parcel.kind in self.passing:
                yield wire_batch([(shard, 0, parcel.pack())])
                continue
            shards.setdefault(shard, []).append(parcel)
        operator = self.operator()
        for shard in list(shards):
            running = self._started(operator)
            parcels = shards.pop(shard)
            by_input, clock = self._arrivals(parcels), clock_of(parcels)
            if self.at_once:
                by_input = [{END: all_at_once(own)} for own in by_input]
            del parcels
            if self.ends:
                by_input[0].setdefault(END, Arrival())
            running, instants = running.play(*by_input, until=clock)
            has_nothing &= not any(instant.panes.num_rows for instant in instants)
            yield from self._output(shard, running, instants)
        if has_nothing and self.without_rows is not None:
            yield from self._result(self.without_rows)

    def _arrivals(self, parcels: Sequence[Parcel]) -> list[dict[int, Arrival]]:
        return arrivals(parcels, len(self.inputs), self.whole)

    def _started(self, operator: StatefulOperator) -> Shard:
        return Shard.start(operator, *self.inputs, ports=self.ports)

    def _output(self, shard: int, running: Shard, instants: Sequence[Instant]) -> Iterator[pa.RecordBatch]:
        """The output of a shard that has played its rows."""
        if self.left_out is not None:
            yield from self._beside(shard, self.left_out.table(instants))
        if self.then is not None:
            for row in PaneLift(self.then, f"shard {shard}")(instants):
                yield wire_batch([row])
            return
        for instant in instants:
            yield from self._result(instant.panes)

    def _result(self, panes: pa.Table) -> Iterator[pa.RecordBatch]:
        rows = applied(self.after, panes)
        yield from batches_of(alone(rows, None if self.left_out is None else self.left_out.schema))

    def _beside(self, shard: int, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Rows that were left out, on their way to the result or in it."""
        if rows.num_rows == 0:
            return
        if self.then is not None:
            yield wire_batch([(shard, 0, Parcel(LEFT_OUT, rows).pack())])
            return
        assert self.schema is not None
        yield from batches_of(beside(self.schema.empty_table(), rows))
