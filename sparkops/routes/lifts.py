"""The rows of one source on their way to several steps, each with a lift of its own.

Guarded by tests/sparkops/together/test_together_streams.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from ...panes.parcels import AT
from ...panes.watermarks.watermarks import Read
from ..pieces import pieces
from ..wire import wire_batch
from .tasks import Clocks, LiftLive


@dataclass(frozen=True)
class LiftSeveral:
    """Reads rows once, and lifts them for each step that reads them."""

    lifts: tuple[LiftLive, ...]
    clocks: tuple[int, ...] = ()
    """The shards of the steps to which no row comes: they get the processing times alone."""

    def __call__(self, tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
        """Lift rows, each with its processing time in the column `AT`."""
        ways = [(lift, lift.lift) for lift in self.lifts]
        clock = Clocks(self.clocks)
        for piece in pieces(tables):
            for live, lift in ways:
                names = [*live.schema.names, *([AT] if AT in piece.column_names else [])]
                yield wire_batch(live.lifted_rows(lift, piece.select(names)))
            if self.clocks:
                yield from clock([piece])

    @property
    def columns(self) -> list[str]:
        """The columns that the steps read."""
        return list(dict.fromkeys(name for lift in self.lifts for name in lift.schema.names))

    @property
    def coded(self) -> frozenset[str]:
        """The columns whose texts can stay dictionaries for all steps."""
        plain = frozenset(name for lift in self.lifts for name in lift.schema.names if name not in lift.coded)
        return frozenset(name for lift in self.lifts for name in lift.coded) - plain

    @property
    def needed(self) -> frozenset[str] | None:
        """The columns that decide a result; None means all."""
        every = [lift.needed for lift in self.lifts]
        return None if None in every else frozenset(name for some in every if some is not None for name in some)

    def hold(self, time: int, at: int) -> Iterator[tuple[int, int, bytes]]:
        """The least time of the rows that are not read after the batch of a processing time, for every shard."""
        for lift in self.lifts:
            yield from lift.hold(time, at)

    def read_to(self, reads: Mapping[str, Read], at: int) -> Iterator[tuple[int, int, bytes]]:
        """The place to which each source is read after the batch of a processing time, for every shard."""
        for lift in self.lifts:
            yield from lift.read_to(reads, at)


__all__ = ["LiftSeveral"]
