"""The route of a history: bounded rows, played to their end and no further, whose result is the state of each step.

The tasks write the rows of their shards into the folder of a seed. Only what the manifest says of them, some hundred
bytes a shard, comes to the driver.

Guarded by tests/sparkops/checkpoints/test_history_seeds.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from ...flows.fingerprint.flow import Fingerprint
from ...flows.graph import Feed, Leaf, Step
from ...panes.parcels import MARKS, Parcel
from ...panes.rows.net_rows import net_rows
from ...panes.shard.arrivals import Arrival
from ...panes.shard.shard import Instant, Shard
from ...panes.state.operator import StatefulOperator
from ...panes.state.seed import SeedFile, SeedPiece, SeedStep, read_piece, write_corrections, write_piece
from ...panes.watermarks.stored_watermarks import stored
from ...panes.watermarks.watermarks import Watermarks
from ...windows.times import MIN_TIME
from ..inputs import wire_map
from ..wire import WIRE_DDL, payloads, wire_batch
from .replay import Replay
from .tasks import LiftLive, PaneLift, Play

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PIECE = "piece"
"""The kind of a parcel with what the manifest says of a shard, which passes all later steps."""


@dataclass(frozen=True)
class PlayHistory(Play):
    """Plays all rows of some shards, and writes the state of each with the panes that it shows at the end."""

    folder: str = ""
    step: int = 0
    diff: str | None = None
    """The column with the weights of the panes, if they can be retracted."""
    places: Mapping[int, int] | None = None
    """The place of each shard among all."""
    strategies: tuple[str, ...] = ()
    closed: int = MIN_TIME
    """The end of the last windows that expired in a former flow, and that stay so."""
    marks: tuple[Watermarks | None, ...] = ()
    """The watermarks that each input had in a former flow, which it comes to after the last rows."""
    now: int = MIN_TIME
    """The processing time of the former flow."""

    passing = frozenset({PIECE})

    def _started(self, operator: StatefulOperator) -> Shard:
        fresh = super()._started(operator)
        return replace(fresh, state=replace(fresh.state, closed=self.closed))

    def _arrivals(self, parcels: Sequence[Parcel]) -> list[dict[int, Arrival]]:
        by_input = super()._arrivals(parcels)
        for own, former in zip(by_input, self.marks, strict=False):
            if former is not None:
                own[self.now] = replace(own.get(self.now, Arrival()), marks=former)
        return by_input

    def _output(self, shard: int, running: Shard, instants: Sequence[Instant]) -> Iterator[pa.RecordBatch]:
        assert self.places is not None
        place, panes = self.places[shard], []
        if self.then is not None:
            for row in PaneLift(self.then, f"shard {shard}")(instants):
                yield wire_batch([row])
        elif some := [instant.panes for instant in instants if instant.panes.num_rows]:
            shown = pa.concat_tables(some)
            panes = [shown if self.diff is None else net_rows(shown, self.diff)]
        marks = stored(running.watermarks, self.strategies)
        piece, files = write_piece(self.folder, place, running.state, marks)
        written = {
            "step": self.step,
            "place": place,
            "piece": asdict(piece),
            "files": [asdict(file) for file in files],
            "corrections": [asdict(file) for file in write_corrections(self.folder, place, panes)],
        }
        table = pa.table({PIECE: [json.dumps(written)]})
        yield wire_batch([(shard, 0, Parcel(PIECE, table).pack())])


@dataclass(frozen=True, eq=False)
class History(Replay):
    """Runs a flow over bounded rows, and leaves its state in the folder of a seed."""

    folder: str = ""
    marks: tuple[Watermarks | None, ...] = ()
    """For each feed of a source, the watermarks of a former flow, which it comes to and does not pass."""
    now: int = MIN_TIME
    """The processing time of the former flow."""
    closed: Mapping[int, int] = field(default_factory=dict)
    """For each step, the end of the last windows that expired in a former flow, and that stay so."""

    def clock(self, leaf: Leaf) -> str | None:
        return leaf.settings.processing_time

    def inputs(self, step: Step) -> tuple[Watermarks, ...]:
        pairs = zip(super().inputs(step), self._marks_of(step), strict=True)
        return tuple(own if former is None else replace(own, hold=former.least) for own, former in pairs)

    def packed(self, step: Step) -> DataFrame:
        """The rows of all feeds of a step, and the reports of the former flow after them."""
        packed = super().packed(step)
        clock = Parcel("clock", MARKS.empty_table(), at=self.now).pack()
        for shard in self.ids if any(self._marks_of(step)) else ():  # also one without rows
            packed = self.input.with_row(packed, shard, clock)
        return packed

    def _marks_of(self, step: Step) -> list[Watermarks | None]:
        """The watermarks of the former flow for each feed of a step."""
        feeds = [feed for one in self.graph.steps for feed in one.feeds if feed.leaf is not None]
        by_feed = dict(zip(feeds, self.marks or [None] * len(feeds), strict=True))
        return [by_feed.get(feed) for feed in step.feeds]

    def run_step(self, step: Step, packed: DataFrame, then: LiftLive | None) -> DataFrame:
        play = PlayHistory(
            operator=self.operator(step),
            inputs=self.inputs(step),
            ends=False,
            ports=step.ports,
            then=then,
            whole=self.whole,
            folder=self.folder,
            step=step.number,
            diff=step.stage.output().diff,
            places={shard: place for place, shard in enumerate(self.ids)},
            strategies=step.strategies,
            closed=self.closed.get(step.number, MIN_TIME),
            marks=tuple(self._marks_of(step)),
            now=self.now,
        )
        ordered = packed.repartition(len(self.ids), "shard").sortWithinPartitions("shard", "payload")
        return wire_map(ordered, play, WIRE_DDL)

    def shown(self, feed: Feed, packed: DataFrame) -> DataFrame:
        return packed

    def steps(self, made_by: Sequence[Fingerprint]) -> list[SeedStep]:
        """The steps of the seed, which have these fingerprints; one whose sources have no rows has no state."""
        found: dict[int, dict[int, PlayedShard]] = {}
        for _, _, payload in payloads(self.df().toArrow().to_batches()):
            for text in Parcel.unpack(payload).table[PIECE].to_pylist():
                one = PlayedShard.of(text)
                found.setdefault(one.step, {})[one.place] = one
        return [self._step(made_by[number - 1], found[number]) for number in sorted(found)]

    def _step(self, made_by: Fingerprint, shards: Mapping[int, PlayedShard]) -> SeedStep:
        known = next(iter(shards.values()))  # a shard that was never called knows what all others know
        pieces = [shards.get(place, known).piece for place in range(len(self.ids))]
        return SeedStep(
            made_by=made_by,
            pieces=tuple(pieces),
            files=tuple(file for one in shards.values() for file in one.files),
            corrections=tuple(file for one in shards.values() for file in one.corrections),
        )


@dataclass(frozen=True)
class PlayedShard:
    """The parts of a manifest that are of one shard of a step."""

    step: int
    place: int
    piece: SeedPiece
    files: tuple[SeedFile, ...]
    corrections: tuple[SeedFile, ...]

    @classmethod
    def of(cls, text: str) -> PlayedShard:
        """The parts that a task has written."""
        fields = json.loads(text)
        files, corrections = (tuple(SeedFile(**file) for file in fields[name]) for name in ("files", "corrections"))
        return cls(fields["step"], fields["place"], read_piece(fields["piece"]), files, corrections)


__all__ = ["History"]
