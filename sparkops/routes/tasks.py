"""What runs inside Spark's Python workers: lifting rows into parcels, and merging parcels into panes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter_ns

import pyarrow as pa

from ...combiners.rows.decoded_sizes import cut, fixed_bytes
from ...panes import Grouping, Operator
from ...panes.intake import Intake, Taken, int64s, transformed
from ...panes.late_rows import with_late_rows
from ...panes.operators.grouping.compiled import Compiled
from ...panes.operators.grouping.lift import Lift
from ...panes.shard.final_panes import Final
from ...panes.shard.parcels import AT, MARKS, Parcel
from ...panes.shard.shard import Played, Shard, arrivals
from ...panes.transforms import Transform, applied
from ...panes.watermark_strategies import Strategy
from ..wire import payloads, wire_batch

PIECE_ROWS = 2_000_000
PIECE_BYTES = 256 << 20
"""How much is combined at once: more rows together give fewer cells, and take more memory."""

MERGE_CELLS = 2_000_000
"""How many cells a merging task holds before it gives away what is complete."""

OUT_ROWS = 65_536


def pieces(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Tables joined until they are large enough, and cut where one alone is too large.

    >>> table = pa.table({"n": range(3)})
    >>> [piece.num_rows for piece in pieces([table, table.slice(0, 0), table])]
    [6]
    """
    held: list[pa.Table] = []
    rows = size = 0
    for table in _cut(tables):
        if held and (rows + table.num_rows > PIECE_ROWS or size + table.nbytes > PIECE_BYTES):
            yield pa.concat_tables(held)
            held, rows, size = [], 0, 0
        held.append(table)
        rows, size = rows + table.num_rows, size + table.nbytes
        del table  # a consumer that is done with a piece has let go of all of it
        if rows >= PIECE_ROWS or size >= PIECE_BYTES:
            yield pa.concat_tables(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.concat_tables(held)


def _cut(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    for table in tables:
        if table.num_rows:
            fixed = sum(map(fixed_bytes, table.schema.types))
            yield from cut(table, fixed, PIECE_ROWS, PIECE_BYTES)


class Stopwatch:
    """How long things took, in microseconds."""

    def __init__(self) -> None:
        self.last = perf_counter_ns()

    def lap(self) -> int:
        """Since the last lap, or the start."""
        now = perf_counter_ns()
        self.last, spent = now, now - self.last
        return spent // 1000


def batches_of(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """A table as Spark takes it."""
    yield from table.combine_chunks().to_batches(max_chunksize=OUT_ROWS)


@dataclass(frozen=True)
class Through:
    """Rows through the transforms of a flow that groups nothing."""

    transforms: Sequence[Transform]

    def __call__(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        for table in tables:
            yield from batches_of(applied(self.transforms, table))


@dataclass(frozen=True)
class LiftFinal:
    """Rows of one task combined for a grouping of which only the final panes are wanted."""

    grouping: Grouping
    schema: pa.Schema
    """Of the rows as they come, before the transforms."""
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
    def final(self) -> Final:
        """The grouping, compiled."""
        return Final(self.grouping, applied(self.transforms, self.schema.empty_table()).schema)


@dataclass(frozen=True)
class MergeFinal:
    """The parcels of some shards made into panes, or, with a stage that follows, into its parcels."""

    grouping: Grouping
    schema: pa.Schema
    """Of the rows that were lifted, after their transforms."""
    then: LiftFinal | None = None
    after: Sequence[Transform] = ()
    """What is done to panes that nobody groups any more."""

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
        held: list[Parcel] = []
        cells, reached, asked = 0, (0, 0), False
        for shard, lo, payload in payloads(batches):
            parcel = Parcel.unpack(payload)
            if parcel.kind == "nothing":
                asked = True
                continue
            if cells > MERGE_CELLS and (shard, lo) > reached:
                # Parcels come in the order of their place, so nothing more will come for what lies before this one.
                done, held = final.cut(held, lo) if shard == reached[0] else (held, [])
                yield from self._merged(final, done)
                cells = sum(parcel.table.num_rows for parcel in held)
            held.append(parcel)
            cells += parcel.table.num_rows
            reached = (shard, lo)
        last = list(self._merged(final, held))
        # All cells of a grouping without keys are the last ones of their task.
        yield from [final.nothing()] if asked and not any(table.num_rows for table in last) else last

    def _merged(self, final: Final, parcels: list[Parcel]) -> Iterator[pa.Table]:
        if parcels:
            yield final.lean(final.merged(parcels))


@dataclass(frozen=True)
class LiftLive:
    """Rows combined for a grouping that keeps windows, and sent to its shards with what is said of the watermark."""

    grouping: Grouping
    schema: pa.Schema
    """Of the rows as they come, before the transforms."""
    transforms: Sequence[Transform]
    ids: tuple[int, ...]
    time: str = ""
    strategy: Strategy | None = None
    """How a source's rows tell of the watermark, by the time column of the source; None behind another stage."""
    timed: bool = False
    """Whether rows have a processing time each."""

    def __call__(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Rows of a source, each with its processing time in the column `AT`."""
        lift, clock = self.lift, Stopwatch()
        for piece in pieces(tables):
            read = clock.lap()
            sent = self._lifted(lift, piece)
            del piece
            spent = Parcel("spent", MARKS.empty_table(), spent=(read, clock.lap())).pack()
            yield wire_batch([*sent, (self.ids[0], 0, spent)])

    def _lifted(self, lift: Lift, piece: pa.Table) -> list[tuple[int, int, bytes]]:
        """The parcels of a piece, and the watermark reports of its rows."""
        at = int64s(piece[AT])
        taken = Intake(self.grouping, self.time, self.strategy, self.transforms)(piece.drop_columns([AT]), at)
        return list(self.sent(lift, taken))

    @property
    def lift(self) -> Lift:
        """The lift that makes the parcels."""
        compiled = Compiled.of(self.grouping, applied(self.transforms, self.schema.empty_table()).schema)
        return Lift(compiled, len(self.ids), self.timed)

    def sent(self, lift: Lift, taken: Taken) -> Iterator[tuple[int, int, bytes]]:
        """The parcels of rows, and their watermark reports for every shard."""
        reports = Parcel("marks", taken.reports).pack()
        for number in self.ids:
            yield number, 0, reports
        for shard, parcel in lift(taken.rows, taken.at):
            yield self.ids[shard], parcel.lo, parcel.pack()


@dataclass(frozen=True)
class Passing:
    """The panes of a stage on their way into the next: rows for its grouping, and the watermark behind them."""

    lift: LiftLive
    source: str

    def __call__(self, played: Iterable[Played]) -> Iterator[tuple[int, int, bytes]]:
        lift = self.lift.lift
        for instant in played:
            mark = {"source": self.source, "time": instant.stepped.output_watermark, "at": instant.at}
            marks = pa.Table.from_pylist([mark], schema=MARKS)
            yield from self.lift.sent(lift, transformed(self.lift.transforms, instant.panes, instant.at, marks))


def source_names(ids: Iterable[int]) -> list[str]:
    """What the shards of a stage are called as sources of the next one's watermark."""
    return [f"shard {number}" for number in ids]


@dataclass(frozen=True)
class Play:
    """The history of some shards, in order of processing time, made into panes or into the next stage's parcels."""

    grouping: Grouping
    schema: pa.Schema
    sources: tuple[str, ...]
    idle_after: int | None
    ends: bool
    """Whether the watermark goes to the end of time when the history is over."""
    then: LiftLive | None = None
    after: Sequence[Transform] = ()
    late: pa.Schema | None = None
    """The columns of late rows, where they are to be seen."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shards: dict[int, list[Parcel]] = {}
        for shard, _, payload in payloads(batches):
            shards.setdefault(shard, []).append(Parcel.unpack(payload))
        operator = Operator(self.grouping, self.schema)
        for shard in list(shards):
            running = Shard.start(operator, self.sources, self.idle_after)
            running, played = running.play(arrivals(shards.pop(shard)))
            if self.ends:
                played += running.close()[1]
            if self.then is not None:
                for row in Passing(self.then, f"shard {shard}")(played):
                    yield wire_batch([row])
                continue
            for instant in played:
                yield from batches_of(applied(self.after, shown(instant, self.late)))


def shown(instant: Played, late: pa.Schema | None) -> pa.Table:
    """The panes of a step, and after them its late rows, where they are asked for."""
    return instant.panes if late is None else with_late_rows(instant.panes, instant.stepped.late_rows, late)
